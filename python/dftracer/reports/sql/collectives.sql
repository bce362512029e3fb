-- Collectives of this block that can be matched with those of other ranks: they carry the process group, its ranks, and a number in it.
-- `before` is the end of the previous one of the process: from there on it was on its own.
select row_number() over (order by process, ts, stop) - 1 as id, *,
  max(stop) over (partition by process order by ts, stop rows between unbounded preceding and 1 preceding) as before
from (
  select process, ts, ts + dur as stop, name as operation, name = 'wait' as waits, args ->> '$.function' as function,
    args ->> '$.group' as family, args ->> '$.ranks' as ranks, try_cast(args ->> '$.seq' as bigint) as seq,
    try_cast(args ->> '$.rank' as bigint) as rank, try_cast(args ->> '$.bytes' as bigint) as bytes,
    coalesce(try_cast(args ->> '$.async' as boolean), false) as launched, epoch, step
  from e join kinds using (c, n)
  where ts is not null and not many and class = 'communication' and cat = 'comm' and contains(args, '"seq"')
)
where seq is not null and family is not null and ranks is not null
