-- What each process did in MPI.
select n.number as process, p.rank, big(sum(calls)) as calls, big(sum(time_ns)) as time_ns, big(sum(collective_ns)) as collective_ns,
  big(sum(messages)) as messages, big(sum(sent_bytes)) as sent_bytes, big(sum(file_calls)) as file_calls, big(sum(file_ns)) as file_ns,
  big(sum(m.read_bytes)) as read_bytes, big(sum(m.write_bytes)) as write_bytes
from p_mpi m join p_processes p using (process) join numbers n using (process)
group by n.number, p.rank order by p.rank nulls last, n.number
