-- Histogram of what transfers moved, by powers of two.
select cat, name, lower, big(sum(count)) as count, big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
from (
  select c, n, case when bytes > 0 then 1::bigint << octave(bytes) else 0 end as lower,
    count(*) as count, sum(bytes) as bytes, sum(dur) as total_ns
  from e where bytes is not null group by all
) join kinds using (c, n) group by all
