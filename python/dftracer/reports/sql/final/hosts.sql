-- Sums of the processes of each host.
select host, count(*) as processes, big(sum(events)) as events, big(coalesce(sum(io_ns), 0)) as io_ns,
  big(coalesce(sum(compute_ns), 0)) as compute_ns, big(sum(read_bytes)) as read_bytes,
  big(sum(write_bytes)) as write_bytes
from p_processes left join p_times using (process) where host is not null group by host order by host
