-- Training steps; what no class has of a step's time is unattributed.
select n.number as process, p.rank, s.* exclude (process),
  dur_ns - fetch_ns - compute_ns - transfer_ns - communication_ns - checkpoint_ns as unattributed_ns
from p_steps s join numbers n using (process) join p_processes p using (process)
order by n.number, start_ns, step
