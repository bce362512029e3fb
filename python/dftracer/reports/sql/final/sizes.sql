-- How large the transfers were, by powers of two.
select direction, cat, name, lower, lower * 2 as upper, big(sum(count)) as count, big(sum(bytes)) as bytes,
  big(sum(total_ns)) as total_ns
from p_sizes group by all order by direction, cat, name, lower
