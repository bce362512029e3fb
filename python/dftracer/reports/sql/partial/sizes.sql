-- Histogram of what transfers moved, by powers of two. A copy, which reads and writes the same bytes, is there once.
with moved as (
  select c, n, case when copies then 'copy' else 'read' end as direction, read_bytes as bytes, dur
  from e join kinds using (c, n) where reads and read_bytes is not null and (role <> 'collect' or read_bytes > 0)
  union all
  select c, n, case when copies then 'copy' else 'write' end as direction, write_bytes as bytes, dur
  from e join kinds using (c, n) where writes and write_bytes is not null and (role <> 'collect' or write_bytes > 0)
    and not (copies and read_bytes is not null)
)
select direction, cat, name, lower, big(sum(count)) as count, big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
from (
  select c, n, direction, case when bytes > 0 then 1::bigint << octave(bytes) else 0 end as lower,
    count(*) as count, sum(bytes) as bytes, sum(dur) as total_ns
  from moved group by all
) join kinds using (c, n) group by all
