-- Pieces of the time of each batch, for the sweep. A batch with at most $exact calls and samples is cut wherever something begins
-- or ends in it, so that each piece has one kind of time. Any other one has $exact pieces of the same length: what it did up to a
-- moment is known to a $exact-th of its time. A batch that was ready before it was wanted is not cut, if the block shows it.
with ready as (
  select t.id from tasks t join p_processes w on w.process = t.process + $base
  join p_processes p on p.pid = t.parent and p.host is not distinct from w.host
  join fetches f on f.process + $base = p.process and f.loader = t.loader and f.pass = t.pass and f.batch = t.batch
  group by t.id having bool_and(f.wanted_ns >= t.stop)
), counts as (
  select t.id, coalesce(sum(calls), 0) + coalesce(any_value(samples), 0) as calls from tasks t left join task_files using (id)
  where t.id not in (from ready) group by t.id
), few as materialized (
  select id from counts where calls <= $exact
), inside as (
  select t.id, e.ts, least(e.ts + e.dur, t.stop) as stop
  from e join task_lanes using (c, n)
  join (select * from task_places where id in (from few)) t on e.process = t.process and e.tid = t.tid and e.ts >> $slice = t.slice
  where e.dur > 0 and e.ts >= t.ts and e.ts < t.stop
), cuts as (
  select id, ts as moment from inside union select id, stop from inside
  union select id, ts from tasks where id in (from few) union select id, stop from tasks where id in (from few)
)
select (id << 24) + row_number() over (partition by id order by moment) as piece, id, moment,
  lead(moment) over (partition by id order by moment) as stop
from cuts
qualify stop is not null
union all
select (id << 24) + number, id, ts + ((stop - ts)::hugeint * number // $exact)::bigint as moment,
  ts + ((stop - ts)::hugeint * (number + 1) // $exact)::bigint as stop
from (select t.*, unnest(range(0, $exact)) as number from tasks t join counts using (id) where calls > $exact)
union all
select id << 24, id, ts, stop from tasks where id in (from ready)
