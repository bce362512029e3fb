-- Batches that a process of this block waited for: when it wanted one, when it had it, and the training step that this was part of.
select f.process, f.tid, f.ts as wanted_ns, f.stop as handed_ns, f.loader, f.pass, f.batch, f.worker, f.epoch, f.step,
  case when f.ts < w.stop then w.start end as step_ns
from (
  select process, tid, ts, ts + dur as stop, epoch, step, try_cast(args ->> '$.loader' as bigint) as loader,
    try_cast(args ->> '$.pass' as bigint) as pass, try_cast(args ->> '$.batch' as bigint) as batch,
    try_cast(args ->> '$.worker' as bigint) as worker
  from e join kinds using (c, n) where ts is not null and cat = 'dataloader' and name = 'fetch'
) f asof left join windows w on f.process = w.process and f.ts >= w.start
where loader is not null and pass is not null and batch is not null
