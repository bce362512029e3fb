-- Time in equal pieces, by category.
select (start_ns >> $k) << $k as start_ns, 1::bigint << $k as dur_ns, cat, big(sum(ops)) as ops,
  big(sum(read_bytes)) as read_bytes, big(sum(write_bytes)) as write_bytes, big(sum(busy_ns)) as busy_ns
from p_timeline group by all order by 1, cat
