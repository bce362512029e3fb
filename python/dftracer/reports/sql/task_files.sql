-- Calls of each batch on each file, in the thread that makes the batch.
select t.id, e.f, count(*) as calls, sum(e.dur) as total_ns, sum(e.read_bytes) as read_bytes
from e join task_lanes using (c, n)
join task_places t on e.process = t.process and e.tid = t.tid and e.ts >> $slice = t.slice
where lane = 1 and e.ts >= t.ts and e.ts < t.stop
group by all
