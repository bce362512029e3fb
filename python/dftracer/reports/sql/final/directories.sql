-- Directories of these files.
select coalesce(nullif(regexp_replace(fname, '/[^/]*$', ''), ''), '/') as dir, count(distinct fname) as files,
  big(sum(calls)) as calls, big(sum(opens + metadata)) as metadata, big(sum(total_ns)) as total_ns,
  told(big(sum(read_bytes)), sum(read_unknown)) as read_bytes,
  told(big(sum(write_bytes)), sum(write_unknown)) as write_bytes
from p_files where contains(fname, '/') and not is_socket(fname) group by 1 order by total_ns desc, dir
