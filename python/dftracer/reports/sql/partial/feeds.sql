-- What else happens to batches in the process that uses them: taken off the queue, copied into pinned memory; and starts of
-- workers, and garbage collections.
select process, tid, name as kind, ts as start_ns, ts + dur as stop_ns, try_cast(args ->> '$.loader' as bigint) as loader,
  try_cast(args ->> '$.pass' as bigint) as pass, try_cast(args ->> '$.batch' as bigint) as batch,
  try_cast(args ->> '$.workers' as bigint) as workers
from e join kinds using (c, n)
where ts is not null and (cat = 'dataloader' and name in ('arrive', 'pin', 'start_workers') or cat = 'python' and name = 'gc')
