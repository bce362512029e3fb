-- What was done for the batches of each process, and the part of it that the process waited for. Work of workers, and pinning, may
-- be hidden; all else is only known from waits.
with made_sums as (
  select process, big(sum(reading_ns)) as reading, big(sum(decoding_ns)) as decoding, big(sum(collating_ns)) as collating,
    big(sum(gc_ns)) as gc, big(sum(ready_ns - begun_ns - reading_ns - decoding_ns - collating_ns - gc_ns)) as other
  from made where maker is not null group by process
), pins as (
  select process, big(sum(stop_ns - start_ns)) as pinning from p_feeds where kind = 'pin' group by process
), waits as (
  select process, big(sum(reading_ns)) as reading, big(sum(decoding_ns)) as decoding, big(sum(collating_ns)) as collating,
    big(sum(gc_ns)) as gc, big(sum(main_gc_ns)) as main_gc, big(sum(working_ns)) as working, big(sum(unknown_ns)) as unknown,
    big(sum(turn_ns)) as turn, big(sum(pinning_ns)) as pinning, big(sum(start_ns)) as start, big(sum(dispatch_ns)) as dispatch,
    big(sum(queue_ns)) as queue
  from exposed group by process
), rows as (
  select coalesce(m.process, w.process) as process, unnest([
    {'place': 0, 'activity': 'reading', 'total_ns': coalesce(m.reading, 0), 'exposed_ns': coalesce(w.reading, 0)},
    {'place': 1, 'activity': 'decoding', 'total_ns': coalesce(m.decoding, 0), 'exposed_ns': coalesce(w.decoding, 0)},
    {'place': 2, 'activity': 'collating', 'total_ns': coalesce(m.collating, 0), 'exposed_ns': coalesce(w.collating, 0)},
    {'place': 3, 'activity': 'garbage collection', 'total_ns': coalesce(m.gc, 0) + coalesce(w.main_gc, 0), 'exposed_ns': coalesce(w.gc, 0)},
    {'place': 4, 'activity': 'unattributed', 'total_ns': coalesce(m.other, 0) + coalesce(w.unknown, 0),
      'exposed_ns': coalesce(w.working, 0) + coalesce(w.unknown, 0)},
    {'place': 5, 'activity': 'pinning', 'total_ns': greatest(coalesce(p.pinning, 0), coalesce(w.pinning, 0)), 'exposed_ns': coalesce(w.pinning, 0)},
    {'place': 6, 'activity': 'worker start-up', 'total_ns': coalesce(w.start, 0), 'exposed_ns': coalesce(w.start, 0)},
    {'place': 7, 'activity': 'not yet begun', 'total_ns': coalesce(w.dispatch, 0), 'exposed_ns': coalesce(w.dispatch, 0)},
    {'place': 8, 'activity': 'waiting for its turn', 'total_ns': coalesce(w.turn, 0), 'exposed_ns': coalesce(w.turn, 0)},
    {'place': 9, 'activity': 'queue transfer', 'total_ns': coalesce(w.queue, 0), 'exposed_ns': coalesce(w.queue, 0)}
  ], recursive := true)
  from made_sums m full join waits w on m.process = w.process left join pins p on p.process = coalesce(m.process, w.process)
)
select n.number as process, p.rank, activity, total_ns, total_ns - exposed_ns as hidden_ns, exposed_ns,
  100.0 * (total_ns - exposed_ns) / total_ns as hidden_percent
from rows join numbers n using (process) join p_processes p using (process)
where total_ns > 0 order by n.number, place
