-- Sums of steps.
select n.number as process, p.rank, epoch, min(start_ns) as start_ns, max(start_ns + dur_ns) - min(start_ns) as dur_ns,
  count(*) as steps, big(sum(fetch_ns)) as fetch_ns, big(sum(compute_ns)) as compute_ns,
  big(sum(transfer_ns)) as transfer_ns, big(sum(communication_ns)) as communication_ns,
  big(sum(checkpoint_ns)) as checkpoint_ns, big(sum(io_ns)) as io_ns, big(sum(unhidden_io_ns)) as unhidden_io_ns,
  max(start_ns + dur_ns) - min(start_ns)
    - big(sum(fetch_ns + compute_ns + transfer_ns + communication_ns + checkpoint_ns)) as unattributed_ns
from p_steps s join numbers n using (process) join p_processes p using (process)
group by all order by n.number, start_ns
