-- Training steps; what no class has of a step's time is unattributed. Of the batches of a step, the one that it waited for longest.
with used as (
  select process, step_ns as start_ns, arg_max({'loader': loader, 'pass': pass, 'batch': batch}, (handed_ns - wanted_ns, -wanted_ns)) as used
  from made where step_ns is not null group by all
)
select n.number as process, p.rank, s.* exclude (process),
  dur_ns - fetch_ns - compute_ns - transfer_ns - communication_ns - checkpoint_ns as unattributed_ns,
  coalesce(w.waited_ns, 0) as waited_ns, used.loader as loader, used.pass as pass, used.batch as batch
from p_steps s join numbers n using (process) join p_processes p using (process) left join used using (process, start_ns)
left join step_waits w using (process, start_ns)
order by n.number, start_ns, step
