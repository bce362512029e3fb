-- What names mean: the class of an event's time, the way of its bytes, the role of a call on a file.
-- docs/report.md explains the classes. Unknown categories have none: they are shown, not judged.

create or replace macro class_of(cat, name) as case
  -- The body of an annotated loop, a profiler's step: what stands around the others.
  when name like '%.block' or name like '%.block.last' or name like 'ProfilerStep%' then null
  -- Calls that begin, wait for or end a process are no I/O, however long they take.
  when cat in ('POSIX', 'STDIO')
    and regexp_matches(name, '^(wait|v?fork|exec|posix_spawn|system$|popen|pclose|_?_?exit|kill)') then null
  when cat in ('POSIX', 'STDIO') then 'io'
  when cat in ('comm', 'communication') then 'communication'
  when cat = 'checkpoint' then 'checkpoint'
  when cat in ('device', 'gpu_memcpy', 'gpu_memset') then 'transfer'
  when cat in ('dataloader', 'data', 'data_loader', 'reader') then 'fetch'
  when cat = 'compute' then 'compute'
  -- Operations of PyTorch, by us or by its profiler.
  when cat in ('dynamo', 'PP', 'cpu_op', 'kernel', 'user_annotation') then case
    when name like 'enumerate(DataLoader)%' then 'fetch'
    when name like 'nccl%' or name like 'gloo:%' or name like 'c10d::%' or name like 'mpi:%' then 'communication'
    when cat = 'user_annotation' and name not like 'Optimizer.step%' then null
    else 'compute'
  end
end;

-- What the kernel names and is no file, and terminals. A named pipe cannot be told from a file.
create or replace macro no_file(fname) as
  regexp_matches(fname, '^(pipe|socket|anon_inode):|^/dev/(pts/|tty|ptmx$|console$)');

-- Only of calls that the reader knows to move bytes.
create or replace macro reads(name) as not regexp_matches(name, 'write|print|put');
create or replace macro writes(name) as regexp_matches(name, 'write|print|put|^copy_file_range|^sendfile|^splice');

create or replace macro opens(name) as regexp_matches(name, '^(f?open|creat|freopen|fdopen|__open)');

-- What the time of a process, or of a job, is known by. A recovered process's end record has the time of its last event.
create or replace macro timed_by(started, ended) as case
  when started and ended then 'its start and end records'
  when started then 'its start record and its last event'
  when ended then 'its first event and its end record'
  else 'its events'
end;

-- Sums of hostile numbers end at the largest that a cell can hold.
create or replace macro big(x) as (case when x > 9223372036854775807 then 9223372036854775807 else x end)::bigint;

-- Histograms have 32 steps an octave, so that a value is known to 1.6 %; up to 64 exactly.
create or replace macro octave(x) as
  floor(log2(x))::int - (case when (1::bigint << floor(log2(x))::int) > x then 1 else 0 end);
create or replace macro step_of(x) as
  case when x < 64 then x::int else octave(x) * 32 + ((x >> (octave(x) - 5)) & 31)::int end;
create or replace macro step_start(s) as
  case when s < 192 then s::bigint else (32 + s % 32)::bigint << (s // 32 - 5) end;
create or replace macro step_end(s) as
  case when s < 64 then s::bigint + 1 when s < 192 then 64::bigint else step_start(s) + (1::bigint << (s // 32 - 5)) end;
