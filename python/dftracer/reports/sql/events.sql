-- The events of a block of the trace, as far as the tables need them. Texts are numbers here: c and n, the
-- category and the name, are explained by `kinds`, f and g, the file and the second one of a copy, by `fnames`.
-- Times that no clock can have had are taken for none, and nothing is shorter than nothing, so that no sum
-- below can fail.
select
  cat as c,
  -- The life of a decorated generator, from its first item to its last: bodies of loops are in it. `busy` is how long it
  -- worked, but not when, so that it counts as nothing; what a loop waits for it is an event of its own (`.iter`).
  case when fname is null and regexp_matches(args, '"busy":[0-9]') then name + $life else name end as n,
  process,
  coalesce(tid % 4194304, -1) as tid, -- generators, coroutines and torch.profiler have lanes beside their thread
  case when abs(ts) < 4000000000000000000 and ph in ('X', 'A', 'i', 'I', 'B') then ts end as ts,
  case when ph = 'X' then least(greatest(coalesce(dur, 0), 0), 4000000000000000000) else 0 end as dur,
  fname as f,
  other as g,
  site as s,
  coalesce(errno, 0) > 0 as failed,
  coalesce(ret, 0) < 0 as negative,
  coalesce(errno, 0) in (11, 114, 115) as later, -- EAGAIN, EALREADY, EINPROGRESS: on a socket, not yet
  coalesce(errno, 0) = 115 as begun,
  epoch,
  step,
  -- least() passes over null, hence the cases.
  case when read_bytes is not null then least(read_bytes, 4000000000000000000) end as read_bytes,
  case when write_bytes is not null then least(write_bytes, 4000000000000000000) end as write_bytes,
  case when mapped_bytes is not null then least(mapped_bytes, 4000000000000000000) end as mapped_bytes,
  access, -- 0 first, 1 sequential, 2 strided, 3 random; null if its place in the file is not known
  case when position is not null
    then least(position, 4000000000000000000) + least(bytes, 4000000000000000000) end as reached,
  -- An aggregate of DFTracer 2.x stands for many calls; its times are microseconds.
  ph = 'A' as many,
  -- Of a request to an object store.
  case when fname is null then "offset" end as asked_from,
  case when fname is null then size end as asked,
  -- What a command (of fcntl) is, what has no file, what was touched of a mapped one, and what MPI-IO moved.
  case when fname is null or contains(args, '"cmd"')
    or (ret is null and (contains(args, '"faults"') or contains(args, '"touched"') or contains(args, '"bytes"'))) then args end as args
from stream
