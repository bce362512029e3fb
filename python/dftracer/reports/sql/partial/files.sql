-- Calls on each file, by category. A copy is a call on both of its files.
with calls as (
  select f, c, n, null::boolean as copied, count(*) as calls, count(*) filter (read_bytes > 0 or write_bytes > 0) as moved,
    count(*) filter (read_bytes is null and write_bytes is null) as untold,
    count(*) filter (read_bytes > 0) as read_some, count(*) filter (write_bytes > 0) as wrote_some,
    sum(read_bytes) as read_bytes, sum(write_bytes) as write_bytes, sum(mapped_bytes) as mapped_bytes,
    sum(dur) as total_ns, count(*) filter (access = 1) as sequential,
    count(*) filter (access = 2) as strided, count(*) filter (access = 3) as random,
    count(*) filter (access is null and (read_bytes > 0 or write_bytes > 0)) as unplaced,
    sum(dur) filter (access = 3) as random_ns, max(reached) as extent,
    sum(read_bytes) filter (reached is not null) as read_placed,
    max(reached) filter (read_bytes is not null) as read_extent
  from e where f is not null and n not in (select n from kinds where copies)
    and c not in (select code from cats where word = 'MMAP') group by all
  union all by name
  select f, c, n, reads as copied, count(*) as calls, count(*) filter (read_bytes > 0 or write_bytes > 0) as moved,
    count(*) filter (read_bytes is null and write_bytes is null) as untold,
    count(*) filter (read_bytes > 0) as read_some, count(*) filter (write_bytes > 0) as wrote_some,
    sum(read_bytes) as read_bytes, sum(write_bytes) as write_bytes, sum(mapped_bytes) as mapped_bytes,
    sum(dur) as total_ns, count(*) filter (access = 1) as sequential,
    count(*) filter (access = 2) as strided, count(*) filter (access = 3) as random,
    count(*) filter (access is null and (read_bytes > 0 or write_bytes > 0)) as unplaced,
    sum(dur) filter (access = 3) as random_ns, max(reached) as extent,
    sum(read_bytes) filter (reached is not null) as read_placed,
    max(reached) filter (read_bytes is not null) as read_extent
  from copies group by all
), known as (
  -- Which way a call goes, and a side of a copy; what was collected, as its bytes say.
  select calls.*, cat, role,
    case when role = 'collect' then read_some + untold when coalesce(copied, reads) then calls else 0 end as read_calls,
    case when role = 'collect' then wrote_some + untold when coalesce(not copied, writes) then calls else 0 end as write_calls
  from calls join kinds using (c, n)
)
select word as fname, cat, big(sum(calls)) as calls, big(coalesce(sum(calls) filter (role = 'open'), 0)) as opens,
  big(sum(read_calls)) as reads, big(sum(write_calls)) as writes,
  big(coalesce(sum(calls) filter (role not in
    ('read', 'write', 'copy', 'collect', 'open', 'submit', 'wait', 'lock', 'process')), 0)) as metadata,
  big(coalesce(sum(read_bytes), 0)) as read_bytes, big(coalesce(sum(write_bytes), 0)) as write_bytes,
  big(coalesce(sum(untold) filter (read_calls > 0), 0)) as read_unknown,
  big(coalesce(sum(untold) filter (write_calls > 0), 0)) as write_unknown,
  big(coalesce(sum(mapped_bytes), 0)) as mapped_bytes,
  big(sum(moved)) as moved, big(sum(sequential)) as sequential,
  big(sum(strided)) as strided, big(sum(random)) as random, big(sum(unplaced)) as unplaced,
  big(coalesce(sum(random_ns), 0)) as random_ns, max(extent) as extent,
  max(read_extent) as read_extent, big(coalesce(sum(read_placed), 0)) as read_placed, big(sum(total_ns)) as total_ns
from known join fnames on f = code group by all
