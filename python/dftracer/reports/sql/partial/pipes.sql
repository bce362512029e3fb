-- What each process read from and wrote to each pipe and terminal (sockets: connections.sql), and how long these calls took.
select process, word as pipe, big(coalesce(sum(calls) filter (reads), 0)) as reads, big(coalesce(sum(calls) filter (writes), 0)) as writes,
  big(coalesce(sum(read_bytes), 0)) as read_bytes, big(coalesce(sum(write_bytes), 0)) as write_bytes,
  big(coalesce(sum(total_ns) filter (reads), 0)) as read_ns, big(coalesce(sum(total_ns) filter (writes), 0)) as write_ns
from (
  select process, f, c, n, count(*) as calls, sum(read_bytes) as read_bytes, sum(write_bytes) as write_bytes, sum(dur) as total_ns
  from e where f is not null group by all
) join kinds using (c, n) join fnames on f = code
where cat in ('POSIX pipe', 'STDIO pipe') and not is_socket(word) and (reads or writes) group by all
