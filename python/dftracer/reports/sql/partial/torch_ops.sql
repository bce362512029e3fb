-- Operations of PyTorch, with a histogram of their durations.
select name, args ->> '$.phase' as phase, step_of(dur) as step, count(*) as count, big(sum(dur)) as total_ns
from e join kinds using (c, n) where cat in ('dynamo', 'PP', 'cpu_op', 'kernel') and not many and name not like 'ProfilerStep%' group by all
