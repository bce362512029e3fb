-- Batches, from the wish for one to the moment at which it was handed over.
select n.number as process, p.rank, m.loader, m.pass, m.batch, m.worker, k.number as worker_process, m.epoch, m.step, m.samples,
  m.wanted_ns, m.begun_ns, m.ready_ns, m.arrived_ns, m.handed_ns, x.wait_ns, m.ready_ns - m.begun_ns as work_ns,
  m.reading_ns, m.decoding_ns, m.collating_ns, m.gc_ns,
  m.ready_ns - m.begun_ns - m.reading_ns - m.decoding_ns - m.collating_ns - m.gc_ns as other_ns,
  greatest(m.arrived_ns - m.ready_ns, 0) as queued_ns, m.read_bytes, m.files, m.fname as file, m.file_ns, m.file_bytes,
  x.start_ns as waited_start_ns, x.dispatch_ns as waited_dispatch_ns, x.reading_ns as waited_reading_ns,
  x.decoding_ns as waited_decoding_ns, x.collating_ns as waited_collating_ns, x.gc_ns as waited_gc_ns, x.turn_ns as waited_turn_ns,
  x.queue_ns as waited_queue_ns, x.pinning_ns as waited_pinning_ns,
  x.working_ns + x.unknown_ns as waited_other_ns, m.step_ns
from made m join numbers n using (process) join p_processes p using (process) left join numbers k on k.process = m.maker
left join exposed x using (process, loader, pass, batch)
order by n.number, coalesce(m.wanted_ns, m.ready_ns), m.loader, m.pass, m.batch
