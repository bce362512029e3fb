-- The files of batches whose calls took the most time, at most three of each.
select n.number as process, m.loader, m.pass, m.batch, f.place, f.fname, f.calls, f.total_ns, f.read_bytes
from made m join p_batch_files f on f.process = m.maker and f.id = m.id join numbers n on n.process = m.process
order by n.number, coalesce(m.wanted_ns, m.ready_ns), m.loader, m.pass, m.batch, f.place
