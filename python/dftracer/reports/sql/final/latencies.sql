-- The histogram itself, by octaves.
select cat, name, lower_ns, case when lower_ns = 0 then 1 else lower_ns * 2 end as upper_ns, big(sum(count)) as count
from (
  select cat, name, count,
    case when step_start(step) = 0 then 0 else 1::bigint << octave(step_start(step)) end as lower_ns
  from p_latencies
) group by all order by cat, name, lower_ns
