-- How long each training step waited for ranks that came later to a collective, and the collective in which it waited longest.
select s.process, s.start_ns, least(big(sum(m.waited_ns)), any_value(s.communication_ns)) as waited_ns,
  arg_max({'family': m.family, 'ranks': m.ranks, 'seq': m.seq, 'run': m.run, 'operation': m.operation, 'function': m.function,
    'late_ns': m.last_late_ns, 'last_process': m.last_process}, (m.waited_ns, -m.arrival_ns)) as top
from (select * from matched where waited_ns > 0) m asof join p_steps s on m.process = s.process and m.arrival_ns >= s.start_ns
where m.arrival_ns < s.start_ns + s.dur_ns
group by s.process, s.start_ns
