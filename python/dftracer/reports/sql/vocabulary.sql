-- What names mean: the class of an event's time, the way of its bytes, the role of a call on a file.
-- docs/report.md explains the classes. Unknown categories have none: they are shown, not judged.

-- The body of an annotated loop; `.last` of the item in which the loop was left.
create or replace macro is_body(name) as regexp_matches(name, '[.](block|yield)([.]last)?$');

-- Categories of reading and preparing data.
create or replace macro feeds(cat) as lower(cat) in ('dataloader', 'data', 'data_loader', 'reader');

-- Of events of the class fetch: the wait for a whole batch, by the process that uses it.
create or replace macro is_batch(cat, name) as
  (lower(cat) in ('dataloader', 'data_loader') and (name = 'fetch' or regexp_matches(name, '[.]iter([.]last)?$|__next__$')))
  or (cat = 'dlio_benchmark' and regexp_matches(name, '[.]iter([.]last)?$'));

-- Passes over the validation or test set.
create or replace macro is_evaluation(cat, name) as
  (cat = 'pipeline' and regexp_matches(name, '^(evaluate|evaluation|validate|validation|test|predict)([.](block|yield)([.]last)?)?$'))
  or (cat = 'dlio_benchmark' and name like '%._eval');

-- One pass over the training set.
create or replace macro is_epoch(cat, name) as
  regexp_matches(name, '^epochs?[.](block|yield)([.]last)?$') or (cat = 'pipeline' and name = 'epoch')
  or (cat = 'dlio_benchmark' and name like '%._train');

-- Whose `step` is that of the training loop. Functions of other categories may have a parameter of that name.
create or replace macro numbers_steps(cat) as lower(cat) in ('compute', 'comm', 'communication', 'device', 'dynamo');

create or replace macro class_of(cat, name) as case
  -- The body of an annotated loop, a profiler's step: what stands around the others.
  when is_body(name) or name like 'ProfilerStep%' then null
  -- Calls that begin, wait for or end a process are no I/O, however long they take.
  when cat in ('POSIX', 'STDIO')
    and regexp_matches(name, '^(wait|v?fork|exec|posix_spawn|system$|popen|pclose|_?_?exit|kill)') then null
  -- Requests that wait for a moment, a descriptor or another process, and what administers a ring, are no I/O either.
  when cat in ('IO_URING', 'AIO') and regexp_matches(name,
    '^(nop|poll|timeout|link_timeout|accept|connect|epoll|futex|waitid|msg_ring|async_cancel|files_update|(provide|remove)_buffers|request$)')
    then null
  when cat in ('POSIX', 'STDIO', 'IO_URING', 'AIO') then 'io'
  when cat = 'STORE' then 'store'
  when lower(cat) in ('comm', 'communication') then 'communication'
  -- Beginning and ending is no communication. MPI-IO is above the I/O calls inside of it, and requests are above the calls that wait for them.
  when cat = 'MPI' then case when regexp_matches(name, '^MPI_(Init|Init_thread|Finalize|Abort|Session_.*|Comm)$') then null else 'communication' end
  when lower(cat) = 'checkpoint' then 'checkpoint'
  when lower(cat) in ('device', 'gpu_memcpy', 'gpu_memset') then 'transfer'
  -- Constructors, and iterators as a whole: what happens while they live is no wait for data.
  when feeds(cat) and regexp_matches(name, '(^|[.])(__init__|init|worker_init|finalize|next|__iter__)$') then null
  when feeds(cat) then 'fetch'
  when lower(cat) = 'compute' then 'compute'
  -- DLIO: its loop over batches, and what stands for a model in it.
  when is_batch(cat, name) then 'fetch'
  when cat = 'ai_framework' and (name = 'compute' or name like '%.compute') then 'compute'
  -- Operations of PyTorch, by us or by its profiler.
  when cat in ('dynamo', 'PP', 'cpu_op', 'kernel', 'user_annotation') then case
    when name like 'enumerate(DataLoader)%' then 'fetch'
    when name like 'nccl%' or name like 'gloo:%' or name like 'c10d::%' or name like 'mpi:%' then 'communication'
    -- Lightning's names for its loops.
    when name like '[pl]%' then null
    when cat = 'user_annotation' and name not like 'Optimizer.step%' then null
    else 'compute'
  end
end;

-- Sockets that are named after their peer; docs/interception.md lists the forms. Without a number behind #, which keeps the
-- connections of a process to one peer apart, it is the peer.
create or replace macro is_socket(fname) as regexp_matches(fname, '^((tcp|udp|sctp|raw|unix)(-[a-z]+)?|socketpair):');
create or replace macro peer_of(fname) as regexp_replace(fname, '#[0-9]+$', '');
-- Where the peer is: network, loopback (this host, through its network), local (a socket of this host), none (not connected).
create or replace macro reach_of(fname) as case
  when regexp_matches(fname, '^(unix(-[a-z]+)?|socketpair):') then 'local'
  when fname like '%:unconnected' then 'none'
  when regexp_matches(fname, '^[a-z]+(-[a-z]+)?://([^/]*/)?(127[.]|\[::1\])|^[a-z]+://(0[.]0[.]0[.]0|\[::\]):') then 'loopback'
  else 'network'
end;

-- Files through which workers of PyTorch's loaders hand over tensors.
create or replace macro is_shared_by_torch(fname) as regexp_full_match(fname, '/dev/shm/torch_[0-9]+_[0-9]+_[0-9]+( \(deleted\))?');

-- Names of the kernel that are not files, and terminals. A named pipe looks like a file; see pipes.sql.
create or replace macro no_file(fname) as
  regexp_matches(fname, '^(pipe|socket|anon_inode):|^/dev/(pts/|tty|ptmx$|console$)') or is_socket(fname);

-- What a call does, from the reader's list of calls (src/reader/stats/call_bytes.cpp); of those that are not in it, metadata.
create or replace macro role_of(call) as table
  select coalesce(min(role), 'metadata') as role, coalesce(bool_or(first_is_written), false) as first_is_written
  from roles where name = call;

-- How many ranks a text such as 0-3,8 stands for.
create or replace macro members_of(ranks) as list_sum([
  coalesce(try_cast(split_part(x, '-', 2) as bigint), try_cast(x as bigint))::hugeint - try_cast(split_part(x, '-', 1) as bigint) + 1
  for x in string_split(ranks, ',')]);

-- A sum that includes calls of unknown size is unknown itself, unless the known part is not zero.
create or replace macro told(total, unknown) as
  case when coalesce(unknown, 0) > 0 and coalesce(total, 0) = 0 then null else coalesce(total, 0) end;

-- The records that the time of a process or job comes from. The end record of a recovered process has the time of its last event.
create or replace macro timed_by(started, ended) as case
  when started and ended then 'its start and end records'
  when started then 'its start record and its last event'
  when ended then 'its first event and its end record'
  else 'its events'
end;

-- Sums of hostile numbers saturate at the largest value of a cell.
create or replace macro big(x) as (case when x > 9223372036854775807 then 9223372036854775807 else x end)::bigint;

-- Histograms have 32 steps per octave: accurate to 1.6 %, and exact up to 64.
create or replace macro octave(x) as
  floor(log2(x))::int - (case when (1::bigint << floor(log2(x))::int) > x then 1 else 0 end);
create or replace macro step_of(x) as
  case when x < 64 then x::int else octave(x) * 32 + ((x >> (octave(x) - 5)) & 31)::int end;
create or replace macro step_start(s) as
  case when s < 192 then s::bigint else (32 + s % 32)::bigint << (s // 32 - 5) end;
create or replace macro step_end(s) as
  case when s < 64 then s::bigint + 1 when s < 192 then 64::bigint else step_start(s) + (1::bigint << (s // 32 - 5)) end;
