-- Sums of the processes of each host.
select host, count(*) as processes, big(sum(events)) as events, big(coalesce(sum(io_ns), 0)) as io_ns,
  big(coalesce(sum(compute_ns), 0)) as compute_ns, told(big(sum(read_bytes)), sum(read_unknown)) as read_bytes,
  told(big(sum(write_bytes)), sum(write_unknown)) as write_bytes
from p_processes left join p_times using (process) left join p_moved using (process)
where host is not null group by host order by host
