-- The processes, and how each spent its time. A worker feeds another process: it reads or prepares data and
-- does not compute. A main process computes, or was not started by a traced process.
with work as (
  select process,
    coalesce(sum(count) filter (class = 'compute'), 0) > 0 as computes,
    coalesce(sum(count) filter (cat in ('data', 'reader')), 0) > 0 as feeds,
    min(first_ns) filter (class = 'fetch') as ready_ns
  from p_work group by process
), parents as (
  -- The number of a process is used again after its end: the latest one that began before.
  select p.process as child, arg_max(q.process, m.start_ns) as process, arg_max(n.number, m.start_ns) as number
  from p_processes p join lives l using (process)
  join p_processes q on q.pid = p.ppid and q.host is not distinct from p.host and q.process <> p.process
  join lives m on m.process = q.process join numbers n on n.process = q.process
  where m.start_ns <= l.start_ns or l.start_ns is null group by p.process
)
select n.number as process, p.pid, p.host, p.rank, p.name, p.command, p.events, p.threads, p.first_ns, p.last_ns,
  l.start_ns, l.end_ns, l.life_ns, l.timed_by, l.run, l.busy_ns, l.lock_ns, l.child_ns + l.pipe_ns + l.store_ns + l.net_ns as wait_ns,
  l.idle_ns, l.cpu_ns, l.cpu_wait_ns,
  case
    when coalesce(computes, false) then 'main'
    when coalesce(feeds, false) then 'worker'
    when parents.process is not null then 'helper'
    else 'main'
  end as role,
  parents.number as parent, case when not coalesce(computes, false) and coalesce(feeds, false) then ready_ns end as ready_ns,
  coalesce(t.io_ns, 0) as io_ns, l.child_ns as child_wait_ns, l.pipe_ns as pipe_wait_ns, l.net_ns as net_wait_ns, coalesce(t.compute_ns, 0) as compute_ns, coalesce(t.hidden_io_ns, 0) as hidden_io_ns,
  coalesce(t.io_ns - t.hidden_io_ns, 0) as unhidden_io_ns,
  case when t.io_ns > 0 then 100.0 * t.hidden_io_ns / t.io_ns end as overlap_percent,
  told(m.read_bytes, m.read_unknown) as read_bytes, told(m.write_bytes, m.write_unknown) as write_bytes,
  coalesce(h.ops, 0) as ops, p.lost,
  case when p.recovered then 'recovered' when p.ends > 0 then 'cleanly' else 'not known' end as ended,
  p.trace
from p_processes p join numbers n using (process) join lives l using (process) left join p_times t using (process) left join work using (process)
left join parents on p.process = parents.child
left join p_moved m using (process)
left join (select process, sum(ops)::bigint as ops from p_heat group by process) h using (process)
order by 1
