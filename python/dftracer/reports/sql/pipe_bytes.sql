-- What was moved through pipes and the like is no I/O of the process.
update p_processes as p
set read_bytes = greatest(p.read_bytes - m.read_bytes, 0), write_bytes = greatest(p.write_bytes - m.write_bytes, 0)
from (
  select process + $base as process, big(coalesce(sum(bytes) filter (reads), 0)) as read_bytes,
    big(coalesce(sum(bytes) filter (writes), 0)) as write_bytes
  from e join kinds using (c, n) where c >= $pipe and bytes is not null group by process
) m where p.process = m.process
