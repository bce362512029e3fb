-- Collectives of this block that can be matched with those of other ranks: they carry the process group, its ranks, and a number in it.
-- Those of MPI name their communicator, and an instant says what it is: its ranks, and how many of the same ranks came before it. One that
-- is only started, and completed later, is left out: it tells when a rank came, but not when it waited.
-- `before` is the end of the previous one of the process: from there on it was on its own.
with told as (
  select process, ts, ts + dur as stop, cat, name, args, epoch, step
  from e join kinds using (c, n)
  where ts is not null and not many and ((class = 'communication' and cat = 'comm' and contains(args, '"seq"'))
    or (cat = 'MPI' and (name = 'MPI_Comm' or contains(args, '"seq"'))))
), communicators as (
  select process, try_cast(args ->> '$.comm' as bigint) as comm, any_value(args ->> '$.ranks') as ranks,
    any_value('MPI ' || (args ->> '$.nth')) as family
  from told where cat = 'MPI' and name = 'MPI_Comm' group by all
)
select row_number() over (order by process, ts, stop) - 1 as id, *,
  max(stop) over (partition by process order by ts, stop rows between unbounded preceding and 1 preceding) as before
from (
  select process, ts, stop, name as operation, name = 'wait' as waits, args ->> '$.function' as function,
    args ->> '$.group' as family, args ->> '$.ranks' as ranks, try_cast(args ->> '$.seq' as bigint) as seq,
    try_cast(args ->> '$.rank' as bigint) as rank, try_cast(args ->> '$.bytes' as bigint) as bytes,
    coalesce(try_cast(args ->> '$.async' as boolean), false) as launched, epoch, step
  from told where cat = 'comm'
  union all
  select t.process, ts, stop, name as operation, false as waits, null as function, c.family, c.ranks,
    try_cast(args ->> '$.seq' as bigint) as seq, null as rank, try_cast(args ->> '$.bytes' as bigint) as bytes, false as launched, epoch, step
  from told t join communicators c on c.process = t.process and c.comm = try_cast(t.args ->> '$.comm' as bigint)
  where cat = 'MPI' and name <> 'MPI_Comm' and not contains(args, '"request"')
)
where seq is not null and family is not null and ranks is not null
