-- Each process's time, from its start record to its end record, or from its first to its last event where there is
-- none, and what of it was spent waiting. Of one whose processor time is known, and is less than a tenth of the
-- time that no traced call explains, that time is idle: it slept, or waited for what is not traced. Waiting for a
-- processor is neither. A thread that
-- waits does not make its process wait while others compute: it is busy at least as long as it used a processor.
with ends as (
  select process, pid, ppid, host, cpu_ns, cpu_wait_ns, recovered,
    -- greatest() passes over null: one who left a start record alone ended when it began, as far as is known.
    least(began_ns, first_ns, ended_ns) as start_ns, greatest(ended_ns, last_ns, began_ns) as end_ns,
    began_ns is not null as started, ended_ns is not null and not recovered as ended
  from p_processes join numbers using (process)
), sums as (
  select e.*, big(end_ns::hugeint - start_ns) as life_ns, coalesce(io_ns, 0) as io_ns, coalesce(lock_ns, 0) as lock_ns,
    coalesce(child_ns, 0) as child_ns, coalesce(pipe_ns, 0) as pipe_ns, coalesce(store_ns, 0) as store_ns,
    coalesce(net_ns, 0) as net_ns
  from ends e left join p_times using (process)
), others as (
  select *, greatest(life_ns - io_ns - lock_ns - child_ns - pipe_ns - store_ns - net_ns, 0) as other_ns from sums
), idles as (
  select * exclude (rest_ns), case when cpu_ns * 10::hugeint < rest_ns then rest_ns - cpu_ns else 0 end as idle_ns
  from (select *, greatest(other_ns - coalesce(cpu_wait_ns, 0), 0) as rest_ns from others)
), busy as (
  select *, big(greatest(life_ns - child_ns - pipe_ns - store_ns - net_ns - idle_ns, least(life_ns, coalesce(cpu_ns, 0)))::hugeint) as busy_ns from idles
), children as (
  select ppid, host, big(sum(life_ns)) as children_ns from sums group by all
)
select b.* exclude (ppid, pid, host), coalesce(run, 1) as run, timed_by(started, ended) as timed_by,
  -- Time that its own children explain, as far as they are traced.
  greatest(child_ns - coalesce(children_ns, 0), 0) as untraced_child_ns
from busy b left join children c on b.pid = c.ppid and b.host is not distinct from c.host left join run_numbers using (process)
