-- Files that were mapped into memory, those whose pages took longest to come first.
with m as (
  select fname, big(sum(mappings)) as told, big(sum(told_bytes)) as told_bytes, big(sum(touched_bytes)) as touched_bytes,
    big(sum(ranges)) as ranges, big(sum(faults)) as faults, big(sum(major_faults)) as major_faults,
    big(sum(unseen)) as unseen, big(sum(faulting_ns)) as faulting_ns, big(sum(major_ns)) as major_ns
  from p_mappings group by fname
), f as (
  select fname, big(sum(mapped_bytes)) as mapped_bytes from p_files group by fname having sum(mapped_bytes) > 0
)
select coalesce(f.fname, m.fname) as fname, greatest(coalesce(mapped_bytes, 0), coalesce(told_bytes, 0)) as mapped_bytes,
  case when told > 0 then touched_bytes end as touched_bytes,
  case when told > 0 then ranges end as ranges,
  coalesce(faults, 0) as faults, coalesce(major_faults, 0) as major_faults, coalesce(unseen, 0) as unseen,
  coalesce(faulting_ns, 0) as faulting_ns, coalesce(major_ns, 0) as major_ns
from f full join m on f.fname = m.fname
where not no_file(coalesce(f.fname, m.fname))
order by major_ns desc, faulting_ns desc, mapped_bytes desc, fname
