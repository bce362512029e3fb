-- Where the time of each process that trains went, from its start to its end: rows of a process add up to its life. The waits of a
-- step are shared out as in exposed.sql; where other threads computed meanwhile, in proportion.
with waits as (
  select m.process, m.step_ns as start_ns, big(sum(x.wait_ns)) as waited, [
    sum(x.reading_ns), sum(x.decoding_ns), sum(x.collating_ns), sum(x.gc_ns), sum(x.start_ns), sum(x.dispatch_ns),
    sum(x.turn_ns), sum(x.queue_ns), sum(x.pinning_ns), sum(x.working_ns + x.unknown_ns)]::hugeint[] as parts
  from made m join exposed x using (process, loader, pass, batch) where m.step_ns is not null group by all
), cut as (
  select s.process, s.fetch_ns, waited, [list_sum(parts[1:i]) for i in range(1, 11)] as sums
  from p_steps s join waits using (process, start_ns)
), scaled as (
  select process, fetch_ns, [case when waited > fetch_ns then x * fetch_ns // waited else x end for x in sums] as sums from cut
), shared as (
  select process, unnest(['reading', 'decoding', 'collating', 'garbage collection', 'worker start-up', 'not yet begun', 'waiting for its turn', 'queue transfer',
      'pinning', 'unattributed']) as cause,
    unnest([sums[i] - (case when i > 1 then sums[i - 1] else 0 end) for i in range(1, 11)]) as ns
  from scaled
), causes as (
  select process, cause, big(sum(ns)) as ns from shared group by all
), sums as (
  select process, min(start_ns) as first_ns, max(start_ns + dur_ns) as last_ns, big(sum(dur_ns)) as dur_ns, big(sum(compute_ns)) as compute_ns,
    big(sum(communication_ns)) as communication_ns, big(sum(transfer_ns)) as transfer_ns, big(sum(checkpoint_ns)) as checkpoint_ns,
    big(sum(fetch_ns)) as fetch_ns, big(coalesce(sum(waited_ns), 0)) as others_ns
  from p_steps left join step_waits using (process, start_ns) group by process
), passes as (
  select process, min(start_ns) as first_ns, max(start_ns + dur_ns) as last_ns, big(sum(dur_ns)) as evaluation_ns from p_evaluations group by process
), whole as (
  select s.*, coalesce(evaluation_ns, 0) as evaluation_ns, least(s.first_ns, e.first_ns) as begin_ns, greatest(s.last_ns, e.last_ns) as finish_ns,
    least(l.start_ns, s.first_ns, e.first_ns) as start_ns, greatest(l.end_ns, s.last_ns, e.last_ns) as end_ns,
    coalesce((select big(sum(ns)) from causes c where c.process = s.process), 0) as explained_ns
  from sums s join lives l using (process) left join passes e using (process)
), rows as (
  select process, unnest([
    {'place': 0, 'part': 'start-up', 'time_ns': begin_ns - start_ns},
    {'place': 1, 'part': 'compute', 'time_ns': compute_ns},
    {'place': 2, 'part': 'communication', 'time_ns': communication_ns - others_ns},
    {'place': 2, 'part': 'waiting for others', 'time_ns': others_ns},
    {'place': 3, 'part': 'transfer', 'time_ns': transfer_ns},
    {'place': 4, 'part': 'checkpoint', 'time_ns': checkpoint_ns},
    {'place': 20, 'part': 'waiting for data', 'time_ns': fetch_ns - explained_ns},
    {'place': 21, 'part': 'unattributed', 'time_ns': dur_ns - fetch_ns - compute_ns - communication_ns - transfer_ns - checkpoint_ns},
    {'place': 22, 'part': 'evaluation', 'time_ns': evaluation_ns},
    {'place': 23, 'part': 'between steps', 'time_ns': finish_ns - begin_ns - dur_ns - evaluation_ns},
    {'place': 24, 'part': 'shut-down', 'time_ns': end_ns - finish_ns}
  ], recursive := true) from whole
  union all by name
  select process, 5 + list_position(['reading', 'decoding', 'collating', 'garbage collection', 'worker start-up', 'not yet begun', 'waiting for its turn', 'queue transfer',
      'pinning', 'unattributed'], cause) as place, 'waiting for data: ' || cause as part, ns as time_ns
  from causes
)
select n.number as process, p.rank, part, time_ns, case when w.end_ns > w.start_ns then time_ns / (w.end_ns - w.start_ns) end as share
from rows join whole w using (process) join numbers n using (process) join p_processes p using (process)
where time_ns <> 0 or part in ('start-up', 'shut-down') order by n.number, place, part
