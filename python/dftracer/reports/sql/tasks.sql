-- The batches that were made in this block (`batch` of the category dataloader): one row per span, in the thread that made it.
-- A batch is known by the process that iterates the loader (`parent`), and by `loader`, `pass` and `batch` there. Spans of one
-- thread do not overlap; of hostile ones that do, the first counts.
select row_number() over (order by process, tid, ts) - 1 as id, dense_rank() over (order by process, tid) - 1 as thread, * exclude (before)
from (
  select process, tid, ts, ts + dur as stop, try_cast(args ->> '$.parent' as bigint) as parent,
    try_cast(args ->> '$.loader' as bigint) as loader, try_cast(args ->> '$.pass' as bigint) as pass,
    try_cast(args ->> '$.batch' as bigint) as batch, try_cast(args ->> '$.worker' as bigint) as worker,
    coalesce(try_cast(args ->> '$.count' as bigint), try(json_array_length(args ->> '$.index'))::bigint) as samples,
    max(ts + dur) over (partition by process, tid order by ts, dur desc rows between unbounded preceding and 1 preceding) as before
  from e join kinds using (c, n)
  where ts is not null and cat = 'dataloader' and name = 'batch' and try_cast(args ->> '$.batch' as bigint) is not null
    and try_cast(args ->> '$.loader' as bigint) is not null and try_cast(args ->> '$.pass' as bigint) is not null
)
where before is null or ts >= before
