-- Time in equal pieces, by process.
select n.number as process, (start_ns >> $k) << $k as start_ns, 1::bigint << $k as dur_ns,
  big(sum(io_ns)) as io_ns, big(sum(compute_ns)) as compute_ns, big(sum(unhidden_io_ns)) as unhidden_io_ns,
  big(sum(ops)) as ops, big(sum(bytes)) as bytes
from p_heat join numbers n using (process) group by all order by 1, 2
