-- The runs that the traces are of.
select l.run, i.id, i.guessed, min(l.start_ns) as start_ns, max(l.end_ns) as end_ns,
  big(max(l.end_ns)::hugeint - min(l.start_ns)) as dur_ns, count(*) as processes, big(sum(p.events)) as events,
  arg_min(p.command, coalesce(l.start_ns, 9223372036854775807)) as command
from lives l join p_processes p using (process) left join run_ids i on i.run = l.run group by l.run, i.id, i.guessed order by l.run
