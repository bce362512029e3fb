-- The files, the directories, and the places in the programs that calls of each kind cost most; ten of each.
with files as (
  select kind, fname as path, 1 as files, big(sum(calls)) as calls, big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
  from p_costs group by kind, fname
), folders as (
  select kind, regexp_replace(path, '[^/]*$', '') as path, count(*) as files, big(sum(calls)) as calls,
    big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
  from files where contains(path, '/') group by 1, 2
), lines as (
  select kind, any_value(shown) as path, count(distinct fname) as files, big(sum(calls)) as calls,
    big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
  from p_costs join places using (site) group by kind, place
), ranked as (
  select *, 'file' as place, row_number() over (partition by kind order by total_ns desc, calls desc, path) as place_at from files
  union all by name
  select *, 'directory' as place, row_number() over (partition by kind order by total_ns desc, calls desc, path) as place_at from folders
  union all by name
  select *, 'line' as place, row_number() over (partition by kind order by total_ns desc, calls desc, path) as place_at from lines
)
select kind, place, path, files, calls, bytes, total_ns from ranked where place_at <= 10 order by kind, place desc, place_at
