-- Every wait for a batch, shared out: at each moment to what was being done for that batch. Its way is: begun by a worker, made
-- (the pieces of partial/batch_pieces.sql), taken off the queue, pinned, handed over. Moments out of this order are moved to the
-- nearest one in it, so that the parts of a wait add up to it.
with pinned as (
  select m.process, m.loader, m.pass, m.batch, max(p.start_ns) as pin_start, arg_max(p.stop_ns, p.start_ns) as pin_stop
  from made m join p_feeds p on p.kind = 'pin' and p.process = m.process and p.batch = m.batch
  where coalesce(p.loader, m.loader) = m.loader and coalesce(p.pass, m.pass) = m.pass
    and p.start_ns < m.handed_ns and p.stop_ns > coalesce(m.ready_ns, m.wanted_ns) group by all
), moments as materialized (
  select m.process, m.loader, m.pass, m.batch, tid, maker, id, coalesce(alone, false) as alone, is_first, wanted_ns, pin_start, pin_stop,
    -- What the queue, and the thread that pins, did before: it was this batch's turn afterwards.
    lag(greatest(arrived_ns, pin_stop)) over (partition by m.process, m.loader, m.pass order by arrived_ns, batch) as free_ns,
    greatest(handed_ns, wanted_ns) as handed,
    least(greatest(coalesce(begun_ns, handed_ns), wanted_ns), handed_ns) as begun,
    least(greatest(coalesce(ready_ns, handed_ns), wanted_ns), handed_ns) as ready,
    least(greatest(coalesce(arrived_ns, ready_ns, handed_ns), coalesce(ready_ns, wanted_ns), wanted_ns), handed_ns) as arrived
  from made m left join pinned using (process, loader, pass, batch) where wanted_ns is not null
), worked as (
  -- By differences of sums, so that the rounded parts add up, and no part exceeds its share of the piece.
  select m.process, m.loader, m.pass, m.batch, sum(part) as part_ns,
    sum(part * p.reading_ns // p.dur) as reading_ns,
    sum(part * (p.reading_ns + p.decoding_ns) // p.dur - part * p.reading_ns // p.dur) as decoding_ns,
    sum(part * (p.reading_ns + p.decoding_ns + p.collating_ns) // p.dur - part * (p.reading_ns + p.decoding_ns) // p.dur) as collating_ns,
    sum(part * (p.reading_ns + p.decoding_ns + p.collating_ns + p.gc_ns) // p.dur
      - part * (p.reading_ns + p.decoding_ns + p.collating_ns) // p.dur) as gc_ns
  from (select * from moments where ready > begun) m join p_batch_pieces p on p.process = m.maker and p.id = m.id,
    lateral (select (least(p.moment + p.dur, m.ready) - greatest(p.moment, m.begun))::hugeint as part)
  where part > 0 group by m.process, m.loader, m.pass, m.batch
), collected as (
  -- Collections in the thread that waits, after the batch was made: before that, it would have waited all the same.
  select m.process, m.loader, m.pass, m.batch, sum(least(g.stop_ns, m.handed) - greatest(g.start_ns, m.ready)) as gc_ns
  from (select * from p_feeds where kind = 'gc') g asof join moments m
    on g.process = m.process and g.tid = m.tid and g.start_ns >= m.wanted_ns
  where g.start_ns < m.handed and g.stop_ns > m.ready and not m.alone and m.maker is not null group by all
), parts as (
  select m.*, coalesce(w.part_ns, 0) as part_ns, coalesce(w.reading_ns, 0) as reading_ns, coalesce(w.decoding_ns, 0) as decoding_ns,
    coalesce(w.collating_ns, 0) as collating_ns, coalesce(w.gc_ns, 0) as worker_gc_ns,
    case when free_ns > ready then least(free_ns, arrived, coalesce(pin_start, arrived)) - ready else 0 end as turn,
    case when pin_start is null then 0 else greatest(least(pin_stop, handed) - greatest(pin_start, ready), 0) end as pinning_ns, coalesce(c.gc_ns, 0) as collected
  from moments m left join worked w using (process, loader, pass, batch) left join collected c using (process, loader, pass, batch)
), shares as (
  select *, greatest(turn, 0) as turn_ns, case when alone or maker is null then 0 else
    least(collected, handed - ready - greatest(turn, 0) - pinning_ns) end as main_gc_ns
  from parts
)
select process, loader, pass, batch, (handed - wanted_ns)::bigint as wait_ns, reading_ns::bigint as reading_ns,
  decoding_ns::bigint as decoding_ns, collating_ns::bigint as collating_ns, (worker_gc_ns + main_gc_ns)::bigint as gc_ns,
  main_gc_ns::bigint as main_gc_ns, turn_ns::bigint as turn_ns, pinning_ns::bigint as pinning_ns,
  case when alone or maker is null or not is_first then 0 else begun - wanted_ns end::bigint as start_ns,
  case when alone or maker is null or is_first then 0 else begun - wanted_ns end::bigint as dispatch_ns,
  case when alone or maker is null then 0 else handed - ready - turn_ns - pinning_ns - main_gc_ns end::bigint as queue_ns,
  -- In the batch, but in none of these; and where nothing is known about a batch.
  (part_ns - reading_ns - decoding_ns - collating_ns - worker_gc_ns)::bigint as working_ns,
  case when alone or maker is null then handed - wanted_ns - part_ns - pinning_ns - turn_ns else 0 end::bigint as unknown_ns
from shares
