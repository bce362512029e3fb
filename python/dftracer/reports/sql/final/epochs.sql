-- Sums of steps, and the evaluation that follows them.
with evaluations as (
  select process, epoch, min(start_ns) as first_ns, max(start_ns + dur_ns) as last_ns, big(sum(dur_ns)) as evaluation_ns
  from p_evaluations group by all
), sums as (
  select process, epoch, min(start_ns) as first_ns, max(start_ns + dur_ns) as last_ns,
    count(*) as steps, big(sum(fetch_ns)) as fetch_ns, big(sum(compute_ns)) as compute_ns,
    big(sum(backward_ns)) as backward_ns, big(sum(transfer_ns)) as transfer_ns, big(sum(communication_ns)) as communication_ns,
    big(sum(checkpoint_ns)) as checkpoint_ns, big(sum(io_ns)) as io_ns, big(sum(unhidden_io_ns)) as unhidden_io_ns,
    big(coalesce(sum(waited_ns), 0)) as waited_ns
  from p_steps left join step_waits using (process, start_ns) group by all
), whole as (
  select s.* exclude (first_ns, last_ns), least(s.first_ns, v.first_ns) as start_ns,
    greatest(s.last_ns, v.last_ns) - least(s.first_ns, v.first_ns) as dur_ns, coalesce(evaluation_ns, 0) as evaluation_ns
  from sums s left join evaluations v on s.process = v.process and s.epoch is not distinct from v.epoch
)
select n.number as process, p.rank, w.* exclude (process),
  dur_ns - fetch_ns - compute_ns - transfer_ns - communication_ns - checkpoint_ns - evaluation_ns as unattributed_ns
from whole w join numbers n using (process) join p_processes p using (process)
order by n.number, start_ns
