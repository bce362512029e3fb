-- Places in the programs, the costliest first, each with the file on which it spent most, and with the description of
-- the calls that took most of its time.
with s as (
  select p_sites.*, place, shown from p_sites join places using (site)
), by_file as (
  select place, fname, big(sum(total_ns)) as file_ns from s where fname is not null group by all
), files as (
  select place, count(*) as files, arg_max(fname, (file_ns, fname)) as costliest from by_file group by place
), by_site as (
  select place, site, big(sum(total_ns)) as site_ns from s group by all
), sites as (
  select place, arg_max(site, (site_ns, site)) as site from by_site group by place
), sums as (
  select place, any_value(shown) as shown, big(sum(calls)) as calls,
    big(coalesce(sum(calls) filter (role = 'read'), 0)) as reads,
    big(coalesce(sum(calls) filter (role = 'write'), 0)) as writes,
    big(coalesce(sum(calls) filter (role in ('open', 'close', 'duplicate', 'seek', 'map', 'metadata')), 0)) as metadata,
    big(sum(small)) as small, big(sum(read_bytes)) as read_bytes, big(sum(write_bytes)) as write_bytes,
    big(sum(total_ns)) as total_ns
  from s group by place
)
select site, shown, total_ns, calls, read_bytes, write_bytes, reads, writes, metadata, small, coalesce(files, 0) as files,
  costliest
from sums join sites using (place) left join files using (place) order by total_ns desc, calls desc, place
