-- Bytes of files that each process moved, and the calls that moved bytes which the trace does not tell.
with sums as (
  select process, c, n, sum(read_bytes) as read_bytes, sum(write_bytes) as write_bytes, sum(mapped_bytes) as mapped_bytes,
    count(*) filter (read_bytes is null and write_bytes is null) as untold
  from e group by all
)
select process, big(coalesce(sum(read_bytes), 0)) as read_bytes, big(coalesce(sum(write_bytes), 0)) as write_bytes,
  big(coalesce(sum(untold) filter (reads), 0)) as read_unknown,
  big(coalesce(sum(untold) filter (writes), 0)) as write_unknown,
  big(coalesce(sum(mapped_bytes), 0)) as mapped_bytes
from sums join kinds using (c, n) where class = 'io' group by process
