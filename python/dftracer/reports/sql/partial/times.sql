-- By process: the union of I/O, of compute, of both at once.
select process,
  big(coalesce(sum(ns) filter (lanes & io_bits <> 0), 0)) as io_ns,
  big(coalesce(sum(ns) filter (lanes & compute_bits <> 0), 0)) as compute_ns,
  big(coalesce(sum(ns) filter (lanes & io_bits <> 0 and lanes & compute_bits <> 0), 0)) as hidden_io_ns,
  big(coalesce(sum(ns) filter (lanes & fetch_bits <> 0), 0)) as fetch_ns,
  big(coalesce(sum(ns) filter (lanes & checkpoint_bits <> 0), 0)) as checkpoint_ns
from sweep, masks where kind = 0 and pass = 0 group by process
