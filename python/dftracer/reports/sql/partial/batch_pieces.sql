-- What the thread that made a batch did in each piece of it; the rest of a piece is none of these.
with sums as (
  select key as piece, sum(ns) filter (lanes & 1 <> 0) as gc_ns, sum(ns) filter (lanes & 3 = 2) as reading_ns,
    sum(ns) filter (lanes & 7 = 4) as collating_ns, sum(ns) filter (lanes & 15 = 8) as decoding_ns
  from task_sweep group by key
)
select t.process, p.id, p.moment, p.stop - p.moment as dur, coalesce(reading_ns, 0)::bigint as reading_ns,
  coalesce(decoding_ns, 0)::bigint as decoding_ns, coalesce(collating_ns, 0)::bigint as collating_ns, coalesce(gc_ns, 0)::bigint as gc_ns
from task_pieces p join tasks t using (id) left join sums using (piece) where p.stop > p.moment
