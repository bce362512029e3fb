-- Files that the programs used, then pipes and the like, which have no name; sockets are in `connections`. The pattern is what three
-- quarters of the transfers are whose place is known; of a file that was mostly mapped it is not known.
with f as (
  select fname, big(sum(opens)) as opens, big(sum(reads)) as reads, big(sum(writes)) as writes,
    big(sum(metadata)) as metadata, big(sum(read_bytes)) as read_bytes, big(sum(write_bytes)) as write_bytes,
    big(sum(read_unknown)) as read_unknown, big(sum(write_unknown)) as write_unknown,
    big(sum(mapped_bytes)) as mapped_bytes,
    big(sum(total_ns)) as total_ns, big(sum(moved)) as moved,
    big(sum(sequential)) as sequential, big(sum(strided)) as strided, big(sum(random)) as random,
    big(sum(unplaced)) as unplaced, big(sum(random_ns)) as random_ns,
    max(extent) as extent_bytes, max(read_extent) as read_extent, big(sum(read_placed)) as read_placed
  from p_files where not is_socket(fname) group by fname
), t as (
  select fname, big(sum(touched_bytes)) as touched_bytes from p_mappings group by fname having sum(mappings) > 0
), u as (
  select fname, big(sum(processes)) as processes from p_users group by fname
)
select fname, opens, reads, writes, metadata, told(read_bytes, read_unknown) as read_bytes,
  told(write_bytes, write_unknown) as write_bytes, read_unknown, write_unknown, mapped_bytes, touched_bytes, total_ns,
  case when moved > 0 then (read_bytes::double + write_bytes) / moved end as mean_size,
  sequential, strided, random, random_ns,
  case
    when no_file(fname) then 'none'
    when greatest(coalesce(touched_bytes, mapped_bytes), 1) > read_bytes::double + write_bytes and mapped_bytes > 0 then 'mapped'
    when reads + writes = 0 then 'none'
    when unplaced > greatest(sequential + strided + random, opens) then 'unknown'
    when sequential + strided + random = 0 then 'whole'
    when sequential >= 0.75 * (sequential + strided + random) then 'sequential'
    when strided >= 0.75 * (sequential + strided + random) then 'strided'
    when random >= 0.75 * (sequential + strided + random) then 'random'
    else 'mixed'
  end as pattern,
  extent_bytes,
  case when read_placed > read_extent then read_placed - read_extent else 0 end as reread_bytes,
  processes
from f left join u using (fname) left join t using (fname)
order by no_file(fname), total_ns desc, fname
