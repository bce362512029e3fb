-- Histogram of what transfers moved, by powers of two. A copy, which reads and writes the same bytes, is there once.
with moved as (
  select c, n, true as is_read, true as once, case when read_bytes > 0 then 1::bigint << octave(read_bytes) else 0 end as lower,
    count(*) as count, sum(read_bytes) as bytes, sum(dur) as total_ns
  from e where read_bytes is not null group by all
  union all
  select c, n, false, read_bytes is null, case when write_bytes > 0 then 1::bigint << octave(write_bytes) else 0 end,
    count(*), sum(write_bytes), sum(dur)
  from e where write_bytes is not null group by all
)
select case when copies then 'copy' when is_read then 'read' else 'write' end as direction, cat, name, lower,
  big(sum(count)) as count, big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
from moved join kinds using (c, n)
where not (copies and not once) and not (role = 'collect' and lower = 0) group by all
