-- Calls on each file, by category.
with calls as (
  select f, c, n, count(*) as calls, count(bytes) as transfers, count(*) filter (bytes > 0) as moved,
    sum(bytes) as bytes, sum(dur) as total_ns, count(*) filter (access = 1) as sequential,
    count(*) filter (access = 2) as strided, count(*) filter (access = 3) as random,
    sum(dur) filter (access = 3) as random_ns, max(reached) as extent
  from e where f is not null group by all
)
select word as fname, cat, big(sum(calls)) as calls, big(coalesce(sum(calls - transfers) filter (opens), 0)) as opens,
  big(coalesce(sum(transfers) filter (reads), 0)) as reads, big(coalesce(sum(transfers) filter (writes), 0)) as writes,
  big(coalesce(sum(calls - transfers) filter (not opens), 0)) as metadata,
  big(coalesce(sum(bytes) filter (reads), 0)) as read_bytes, big(coalesce(sum(bytes) filter (writes), 0)) as write_bytes,
  big(sum(moved)) as moved, big(coalesce(sum(bytes), 0)) as bytes, big(sum(sequential)) as sequential,
  big(sum(strided)) as strided, big(sum(random)) as random,
  big(coalesce(sum(random_ns), 0)) as random_ns, max(extent) as extent,
  max(extent) filter (reads) as read_extent, big(sum(total_ns)) as total_ns
from calls join kinds using (c, n) join fnames on f = code group by all
