-- Marks the calls on pipes, sockets, terminals and the like. A read of these waits for another process, not for
-- storage: they are listed as a category of their own, which has no class. They have no offsets either. Those on
-- sockets whose peer is on the network are a third one. A copy from or to a file is a call on a file; see copies.sql.
-- A named pipe looks like a file, unless the trace contains the call that made it.
with pipes as (
  select code from fnames where no_file(word)
  union
  select f from $events where n in (select code from names where word in ('mkfifo', 'mkfifoat')) and f is not null and not failed and not negative
)
update $events set c = c + case when f in (select code from fnames where is_socket(word) and reach_of(word) = 'network')
    then $net * (c in (select code from cats where word in ('POSIX', 'STDIO', 'IO_URING', 'AIO')))::int else $pipe end,
  access = null, reached = null,
  failed = failed and not (later and f in (select code from fnames where is_socket(word) or word like 'socket:%'))
where c in (select code from cats where word in ('POSIX', 'STDIO', 'NET', 'IO_URING', 'AIO'))
  and f in (from pipes) and (g is null or g in (from pipes))
