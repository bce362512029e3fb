-- Pipes and terminals by the processes at their ends, those that took the most time first.
select n.number as process, pipe, reads, writes, read_bytes, write_bytes, read_ns, write_ns
from p_pipes join numbers n using (process) order by read_ns::hugeint + write_ns desc, n.number, pipe
