-- What was mapped of each file, and what the program touched of it: records of the category MMAP.
with m as (
  select f, fnames.word as fname, args, dur from e join cats on c = cats.code join fnames on f = fnames.code
  where cats.word = 'MMAP'
)
select fname,
  big(count(*) filter (told is not null)) as mappings,
  big(coalesce(sum(length), 0)) as told_bytes,
  big(coalesce(sum(told), 0)) as touched_bytes,
  big(coalesce(sum(ranges), 0)) as ranges,
  big(coalesce(sum(faults), 0)) as faults,
  big(coalesce(sum(major), 0)) as major_faults,
  big(coalesce(sum(unseen), 0)) as unseen,
  big(coalesce(sum(dur) filter (faults is not null), 0)) as faulting_ns,
  big(coalesce(sum(major_us), 0) * 1000) as major_ns
from (
  select fname, dur, try_cast(args->>'$.touched' as bigint) as told, try_cast(args->>'$.length' as bigint) as length,
    try_cast(args->>'$.ranges' as bigint) as ranges, try_cast(args->>'$.faults' as bigint) as faults,
    try_cast(args->>'$.major' as bigint) as major, try_cast(args->>'$.major_us' as bigint) as major_us,
    try_cast(args->>'$.unseen' as bigint) as unseen
  from m
) group by fname
