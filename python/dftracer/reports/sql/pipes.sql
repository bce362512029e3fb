-- Marks the calls on pipes, sockets, terminals and the like. A read of these waits for another process, not for
-- storage: they are listed as a category of their own, which has no class. They have no offsets either.
-- A copy from or to a file is a call on a file; see copies.sql.
update $events set c = c + $pipe, access = null, reached = null
where c in (select code from cats where word in ('POSIX', 'STDIO'))
  and f in (select code from fnames where no_file(word))
  and (g is null or g in (select code from fnames where no_file(word)))
