-- Bytes of files that each process moved, and the calls that moved bytes which the trace does not tell.
select process, big(coalesce(sum(read_bytes), 0)) as read_bytes, big(coalesce(sum(write_bytes), 0)) as write_bytes,
  count(*) filter (reads and read_bytes is null and write_bytes is null) as read_unknown,
  count(*) filter (writes and read_bytes is null and write_bytes is null) as write_unknown,
  big(coalesce(sum(mapped_bytes), 0)) as mapped_bytes
from e join kinds using (c, n) where class = 'io' and (reads or writes or mapped_bytes is not null) group by process
