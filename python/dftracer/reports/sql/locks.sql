-- Marks the calls that take, give back or wait for locks on files: they wait for another process, not for storage.
-- They are a category of their own, which has no class.
update $events set c = c + $lock
where c in (select code from cats where word in ('POSIX', 'STDIO'))
  and (
    n in (select code from names where word in ($calls))
    or n in (select code from names where word in ('fcntl', 'fcntl64')) and try_cast(args ->> '$.cmd' as bigint) in ($commands)
  )
