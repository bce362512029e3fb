-- Collectives by process, each with what the process did since the previous one: its own time before it arrived. As in steps, the first
-- class that is open at a moment has it; I/O comes last, where nothing else is open.
with split as (
  select key as id,
    sum(ns) filter (lanes & 1 <> 0) as communication_ns, sum(ns) filter (lanes & 3 = 2) as transfer_ns,
    sum(ns) filter (lanes & 7 = 4) as checkpoint_ns, sum(ns) filter (lanes & 15 = 8) as compute_ns,
    sum(ns) filter (lanes & 31 = 16) as fetch_ns, sum(ns) filter (lanes & 63 = 32) as io_ns
  from gap_sweep group by key
)
select process, family, ranks, seq, rank, operation, function, waits, launched, bytes, epoch, step, ts as start_ns, stop as stop_ns,
  greatest(ts - before, 0) as gap_ns, coalesce(s.communication_ns, 0)::bigint as communication_ns,
  coalesce(s.transfer_ns, 0)::bigint as transfer_ns, coalesce(s.checkpoint_ns, 0)::bigint as checkpoint_ns,
  coalesce(s.compute_ns, 0)::bigint as compute_ns, coalesce(s.fetch_ns, 0)::bigint as fetch_ns, coalesce(s.io_ns, 0)::bigint as io_ns
from collectives left join split s using (id)
