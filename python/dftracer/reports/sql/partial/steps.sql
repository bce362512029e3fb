-- Each step's time, shared out so that no moment counts twice: the first class that is open at a moment,
-- in this order, has it. io_ns and unhidden_io_ns are no shares but views of the same time.
with split as (
  select s.process, s.key as id,
    sum(ns) filter (lanes & communication_bits <> 0) as communication_ns,
    sum(ns) filter (lanes & transfer_bits <> 0 and lanes & communication_bits = 0) as transfer_ns,
    sum(ns) filter (lanes & checkpoint_bits <> 0 and lanes & (communication_bits | transfer_bits) = 0) as checkpoint_ns,
    sum(ns) filter (lanes & compute_bits <> 0 and lanes & (communication_bits | transfer_bits | checkpoint_bits) = 0) as compute_ns,
    sum(ns) filter (lanes & backward_bits <> 0 and lanes & (communication_bits | transfer_bits | checkpoint_bits) = 0) as backward_ns,
    sum(ns) filter (lanes & fetch_bits <> 0
      and lanes & (communication_bits | transfer_bits | checkpoint_bits | compute_bits) = 0) as fetch_ns,
    sum(ns) filter (lanes & io_bits <> 0) as io_ns,
    sum(ns) filter (lanes & io_bits <> 0 and lanes & compute_bits = 0) as unhidden_io_ns,
    sum(ns) filter (lanes & io_bits <> 0
      and lanes & (communication_bits | transfer_bits | checkpoint_bits | compute_bits | fetch_bits) = 0) as loose_io_ns,
    sum(ns) filter (lanes & write_bits <> 0 and lanes & read_bits = 0
      and lanes & (communication_bits | transfer_bits | checkpoint_bits | compute_bits | fetch_bits) = 0) as loose_write_ns
  from sweep s, masks where kind = 1 and pass = 0 group by all
), collected as (
  -- Garbage collections of the thread that trains, in the step in which they began.
  select w.process, w.id, sum(least(g.stop, w.stop) - g.ts) as gc_ns
  from (
    select process, ts, ts + dur as stop from e join kinds using (c, n) join trainers using (process, tid)
    where ts is not null and cat = 'python' and name = 'gc'
  ) g asof join windows w on g.process = w.process and g.ts >= w.start
  where g.ts < w.stop group by all
)
select w.process, w.epoch, w.step, w.start as start_ns, w.stop - w.start as dur_ns,
  coalesce(fetch_ns, 0)::bigint as fetch_ns, coalesce(compute_ns, 0)::bigint as compute_ns,
  coalesce(backward_ns, 0)::bigint as backward_ns,
  coalesce(transfer_ns, 0)::bigint as transfer_ns, coalesce(communication_ns, 0)::bigint as communication_ns,
  coalesce(checkpoint_ns, 0)::bigint as checkpoint_ns, coalesce(io_ns, 0)::bigint as io_ns,
  coalesce(unhidden_io_ns, 0)::bigint as unhidden_io_ns, coalesce(loose_io_ns, 0)::bigint as loose_io_ns,
  coalesce(loose_write_ns, 0)::bigint as loose_write_ns, coalesce(gc_ns, 0)::bigint as gc_ns
from windows w left join split s using (process, id) left join collected using (process, id)
