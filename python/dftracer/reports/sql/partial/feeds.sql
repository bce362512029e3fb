-- What else happens to batches in the process that uses them: taken off the queue, copied into pinned memory; and starts of
-- workers, and garbage collections.
select process, tid, name as kind, ts as start_ns, ts + dur as stop_ns, try_cast(args ->> '$.loader' as bigint) as loader,
  try_cast(args ->> '$.pass' as bigint) as pass, try_cast(args ->> '$.batch' as bigint) as batch,
  try_cast(args ->> '$.workers' as bigint) as workers, try_cast(args ->> '$.prefetch' as bigint) as prefetch,
  try_cast(args ->> '$.persistent' as boolean) as persistent, try_cast(args ->> '$.in_order' as boolean) as in_order,
  try_cast(args ->> '$.pins' as boolean) as pins, try_cast(args ->> '$.cpus' as bigint) as cpus,
  try_cast(args ->> '$.cpu_us' as bigint) as cpu_us
from e join kinds using (c, n)
where ts is not null and (cat = 'dataloader' and name in ('arrive', 'pin', 'start_workers') or cat = 'python' and name = 'gc')
