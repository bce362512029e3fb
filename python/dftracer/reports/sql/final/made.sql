-- Batches from where they were made to the process that used them.
with owners as (
  -- The number of a process is used again after its end: the latest one that began before.
  select m.process, m.parent, coalesce(arg_max(q.process, l.start_ns), m.process) as owner
  from (select process, parent, min(begun_ns) as begun_ns from p_batches group by all) m join p_processes p using (process)
  left join p_processes q on q.pid = m.parent and q.host is not distinct from p.host
  left join lives l on l.process = q.process and l.start_ns <= m.begun_ns
  group by m.process, m.parent
), tasks as (
  select b.*, o.owner, coalesce(s.reading_ns, 0) as reading_ns, coalesce(s.decoding_ns, 0) as decoding_ns,
    coalesce(s.collating_ns, 0) as collating_ns, coalesce(s.gc_ns, 0) as gc_ns, f.fname, f.total_ns as file_ns, f.read_bytes as file_bytes,
    row_number() over (partition by b.process, b.tid order by b.begun_ns, b.id) = 1 as is_first
  from p_batches b join owners o on b.process = o.process and b.parent is not distinct from o.parent
  left join (
    select process, id, big(sum(reading_ns)) as reading_ns, big(sum(decoding_ns)) as decoding_ns,
      big(sum(collating_ns)) as collating_ns, big(sum(gc_ns)) as gc_ns
    from p_batch_pieces group by all
  ) s on b.process = s.process and b.id = s.id
  left join p_batch_files f on b.process = f.process and b.id = f.id and f.place = 1
  qualify row_number() over (partition by o.owner, b.loader, b.pass, b.batch order by b.begun_ns, b.process, b.id) = 1
), fetches as (
  select * from p_fetches
  qualify row_number() over (partition by process, loader, pass, batch order by wanted_ns, handed_ns, tid) = 1
), arrivals as (
  select process, loader, pass, batch, min(stop_ns) as arrived_ns from p_feeds where kind = 'arrive' and batch is not null group by all
)
select coalesce(f.process, t.owner) as process, coalesce(f.loader, t.loader) as loader, coalesce(f.pass, t.pass) as pass,
  coalesce(f.batch, t.batch) as batch, coalesce(f.worker, t.worker) as worker, f.tid, f.epoch, f.step, f.step_ns,
  f.wanted_ns, f.handed_ns, t.process as maker, t.id, t.begun_ns, t.ready_ns, a.arrived_ns,
  t.samples, t.files, t.read_bytes, t.fname, t.file_ns, t.file_bytes, t.reading_ns, t.decoding_ns, t.collating_ns, t.gc_ns,
  coalesce(t.is_first, false) as is_first, t.process = f.process as alone
from fetches f full join tasks t
  on f.process = t.owner and f.loader = t.loader and f.pass = t.pass and f.batch = t.batch
left join arrivals a on a.process = coalesce(f.process, t.owner) and a.loader = coalesce(f.loader, t.loader)
  and a.pass = coalesce(f.pass, t.pass) and a.batch = coalesce(f.batch, t.batch)
