-- Every name: counts, sums, and percentiles from the histogram (see percentiles.sql).
select c.cat, c.name, case when 2 * life_ns <= total_ns or life_ns = 0 then class_of(c.cat, c.name) end as class, role, count, errors, error_ns, total_ns,
  total_ns / greatest(count, 1) as mean_ns, min_ns, max_ns,
  greatest(min_ns, least(max_ns, p50)) as p50_ns, greatest(min_ns, least(max_ns, p90)) as p90_ns,
  greatest(min_ns, least(max_ns, p99)) as p99_ns,
  case when role in ('read', 'copy', 'collect') then told(read_bytes, unknown) else 0 end as read_bytes,
  case when role in ('write', 'copy', 'collect') then told(write_bytes, unknown) else 0 end as write_bytes,
  unknown, mapped_bytes,
  case when total_ns > 0 and role in ('read', 'write', 'copy', 'collect') then told(bytes, unknown) * 1e9 / total_ns end as bandwidth,
  case when moved > 0 then bytes / moved end as mean_size
from (
  select cat, name, any_value(role) as role, big(sum(count)) as count, big(sum(errors)) as errors,
    big(sum(error_ns)) as error_ns, big(sum(total_ns)) as total_ns,
    min(min_ns) as min_ns, max(max_ns) as max_ns, big(sum(read_bytes)) as read_bytes,
    big(sum(write_bytes)) as write_bytes, big(sum(bytes)) as bytes, big(sum(mapped_bytes)) as mapped_bytes,
    big(sum(moved)) as moved, big(sum(unknown)) as unknown, big(sum(life_ns)) as life_ns
  from p_calls group by cat, name
) c left join percentiles p using (cat, name)
order by total_ns desc, c.cat, c.name
