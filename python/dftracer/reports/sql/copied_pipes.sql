-- Of a copy between a file and a pipe, only the file's side is I/O.
update $events as e set
  read_bytes = case when source is null or source not in (select code from fnames where no_file(word)) then read_bytes end,
  write_bytes = case when target is null or target not in (select code from fnames where no_file(word)) then write_bytes end
from (
  select c, n, f, g, case when first_is_written then g else f end as source, case when first_is_written then f else g end as target
  from (select distinct c, n, f, g from e where g is not null) join kinds using (c, n) where copies and c < $pipe
) k
where e.c = k.c and e.n = k.n and e.f is not distinct from k.f and e.g = k.g
