-- The three files of a batch whose calls took the most time.
select process, id, place, word as fname, calls, total_ns, read_bytes
from (
  select t.process, id, f, calls, big(total_ns) as total_ns, big(coalesce(read_bytes, 0)) as read_bytes,
    row_number() over (partition by id order by total_ns desc, calls desc, word) as place, word
  from task_files join tasks t using (id) join fnames on f = code
) where place <= 3
