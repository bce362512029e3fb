-- The middle of the step in which the share of calls is reached.
with steps as (
  select cat, name, step, sum(count) as count from p_latencies group by all
), sums as (
  select *, sum(count) over w as until, sum(count) over (partition by cat, name) as total
  from steps window w as (partition by cat, name order by step)
)
select cat, name,
  min(middle) filter (until > 0.50 * total or until = total) as p50,
  min(middle) filter (until > 0.90 * total or until = total) as p90,
  min(middle) filter (until > 0.99 * total or until = total) as p99
from (select *, (step_start(step) + step_end(step) - 1) // 2 as middle from sums)
group by cat, name
