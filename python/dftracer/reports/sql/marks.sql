-- Events that show what a training process does: waits for batches, computes, updates weights. `epoch` and `step` only where they
-- are those of the training loop.
select process, tid, ts, ts + dur as stop, class,
  class = 'fetch' and is_batch(cat, name) as fetches,
  class = 'compute' and cat <> 'dynamo' as computes,
  class = 'compute' and cat = 'dynamo' as operates,
  lower(cat) = 'compute' and name in ('backward', 'step') as learns,
  lower(cat) = 'compute' and name = 'step' as updates,
  case when lower(cat) = 'compute' and name = 'forward' then try_cast(args ->> '$.training' as int) end as training,
  case when numbers_steps(cat) or is_batch(cat, name) then epoch end as epoch,
  case when numbers_steps(cat) or is_batch(cat, name) then step end as step
from e join kinds using (c, n)
where ts is not null and class is not null and class not in ('io', 'store') and cat not in ('PP', 'cpu_op', 'kernel', 'user_annotation')
