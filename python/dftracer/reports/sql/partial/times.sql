-- By process: the union of I/O, of compute, of both at once, and the time in which it only waited: for a lock,
-- for processes that it began, for the other end of a pipe or local socket, for an object store, for the network. No moment is in two of these.
select process,
  big(coalesce(sum(ns) filter (lanes & io_bits <> 0), 0)) as io_ns,
  big(coalesce(sum(ns) filter (lanes & compute_bits <> 0), 0)) as compute_ns,
  big(coalesce(sum(ns) filter (lanes & io_bits <> 0 and lanes & compute_bits <> 0), 0)) as hidden_io_ns,
  big(coalesce(sum(ns) filter (lanes & read_bits <> 0), 0)) as read_ns,
  big(coalesce(sum(ns) filter (lanes & write_bits <> 0 and lanes & read_bits = 0), 0)) as write_ns,
  big(coalesce(sum(ns) filter (lanes & lock_bits <> 0 and lanes & io_bits = 0), 0)) as lock_ns,
  big(coalesce(sum(ns) filter (lanes & child_bits <> 0 and lanes & (io_bits | lock_bits | work_bits) = 0), 0)) as child_ns,
  big(coalesce(sum(ns) filter (lanes & pipe_bits <> 0
    and lanes & (io_bits | lock_bits | child_bits | work_bits) = 0), 0)) as pipe_ns,
  big(coalesce(sum(ns) filter (lanes & store_bits <> 0
    and lanes & (io_bits | lock_bits | child_bits | pipe_bits | work_bits) = 0), 0)) as store_ns,
  big(coalesce(sum(ns) filter (lanes & net_bits <> 0
    and lanes & (io_bits | lock_bits | child_bits | pipe_bits | store_bits | work_bits) = 0), 0)) as net_ns,
  big(coalesce(sum(ns) filter (lanes & mpi_bits <> 0 and lanes & (io_bits | lock_bits | compute_bits) = 0), 0)) as mpi_ns,
  big(coalesce(sum(ns) filter (lanes & fetch_bits <> 0), 0)) as fetch_ns,
  big(coalesce(sum(ns) filter (lanes & checkpoint_bits <> 0), 0)) as checkpoint_ns
from sweep, (select *, compute_bits | transfer_bits | communication_bits as work_bits from masks) where kind = 0 and pass = 0 group by process
