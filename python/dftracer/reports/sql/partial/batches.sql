-- Batches, where they were made, and what they read.
select process, t.id, tid, ts as begun_ns, stop as ready_ns, parent, loader, pass, batch, worker, samples,
  coalesce(f.files, 0) as files, coalesce(f.calls, 0) as calls, coalesce(f.read_bytes, 0) as read_bytes
from tasks t left join (
  select id, count(f) as files, big(sum(calls)) as calls, big(coalesce(sum(read_bytes), 0)) as read_bytes from task_files group by id
) f using (id)
