-- Operations of PyTorch.
with steps as (
  select name, phase, step, sum(count) as count, sum(total_ns) as total_ns from p_torch_ops group by all
), sums as (
  select *, sum(count) over (partition by name, phase order by step) as until,
    sum(count) over (partition by name, phase) as total from steps
)
select name, phase, big(sum(count)) as count, big(sum(total_ns)) as total_ns, sum(total_ns) / sum(count) as mean_ns,
  min((step_start(step) + step_end(step) - 1) // 2) filter (until > 0.99 * total or until = total) as p99_ns
from sums group by all order by total_ns desc, name, phase
