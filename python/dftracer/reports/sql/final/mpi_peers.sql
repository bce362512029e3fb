-- Messages from rank to rank: the communication matrix.
select r.run, p.rank as source, nullif(m.peer, -1) as target, big(sum(messages)) as messages, big(sum(sent_bytes)) as bytes
from p_mpi m join p_processes p using (process) join run_numbers r using (process)
where m.peer is not null and messages > 0
group by all order by bytes desc, messages desc, r.run, source, target
