-- Directories of these files.
select coalesce(nullif(regexp_replace(fname, '/[^/]*$', ''), ''), '/') as dir, count(distinct fname) as files,
  big(sum(calls)) as calls, big(sum(opens + metadata)) as metadata, big(sum(total_ns)) as total_ns,
  big(sum(read_bytes)) as read_bytes, big(sum(write_bytes)) as write_bytes
from p_files where contains(fname, '/') group by 1 order by total_ns desc, dir
