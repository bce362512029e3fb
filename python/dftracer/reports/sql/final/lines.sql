-- Places in the programs, the costliest first, each with the file on which it spent most.
with by_file as (
  select site, fname, big(sum(total_ns)) as file_ns from p_sites where fname is not null group by all
), files as (
  select site, count(*) as files, arg_max(fname, (file_ns, fname)) as costliest from by_file group by site
), sums as (
  select site, big(sum(calls)) as calls, big(coalesce(sum(calls) filter (role = 'read'), 0)) as reads,
    big(coalesce(sum(calls) filter (role = 'write'), 0)) as writes,
    big(coalesce(sum(calls) filter (role in ('open', 'close', 'duplicate', 'seek', 'map', 'metadata')), 0)) as metadata,
    big(sum(small)) as small, big(sum(read_bytes)) as read_bytes, big(sum(write_bytes)) as write_bytes,
    big(sum(total_ns)) as total_ns
  from p_sites group by site
)
select site, calls, reads, writes, metadata, small, read_bytes, write_bytes, total_ns, coalesce(files, 0) as files, costliest
from sums left join files using (site) order by total_ns desc, calls desc, site
