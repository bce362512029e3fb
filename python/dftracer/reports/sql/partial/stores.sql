-- Requests to object stores, with a histogram of the time to the first byte, and what was asked of files above them (layer).
-- `ttfb` is in microseconds. A prefix is a key up to its last slash.
with told as (
  select dur, name, args ->> '$.store' as store, coalesce(args ->> '$.layer', 'request') as layer,
    coalesce(args ->> '$.bucket', args ->> '$.host') as bucket, regexp_replace(args ->> '$.key', '[^/]*$', '') as prefix,
    asked_from is not null as ranged, asked as size, try_cast(args ->> '$.bytes' as bigint) as bytes,
    try_cast(args ->> '$.status' as bigint) as status, args ->> '$.error' as error,
    coalesce(try_cast(args ->> '$.retries' as bigint), 0) as retries,
    coalesce(try_cast(args ->> '$.throttled' as bigint), 0) as throttled, args ->> '$.cached' as cached,
    try_cast(args ->> '$.ttfb' as bigint) as ttfb
  from e join kinds using (c, n) where cat = 'STORE' and not many
), numbers as (
  -- least() and greatest() pass over null, hence the cases.
  select * replace (case when size >= 0 then least(size, 4000000000000000000) end as size,
    case when bytes >= 0 then least(bytes, 4000000000000000000) end as bytes, greatest(retries, 0) as retries,
    greatest(throttled, 0) as throttled, case when ttfb >= 0 then least(ttfb, 4000000000000000) * 1000 end as ttfb)
  from told
)
select layer, store, bucket, prefix, name as operation, case when ttfb is not null then step_of(ttfb) end as step, count(*) as requests,
  min(ttfb) as least_ttfb, max(ttfb) as most_ttfb, count(*) filter (ranged) as ranged, big(sum(size)) as size_bytes, big(sum(bytes)) as bytes,
  count(*) filter (error is not null or status >= 400) as errors, big(sum(retries)) as retries, big(sum(throttled)) as throttled,
  big(coalesce(sum(dur) filter (retries > 0 or throttled > 0), 0)) as retry_ns,
  count(*) filter (ranged and bytes < $range) as small, big(coalesce(sum(bytes) filter (ranged and bytes < $range), 0)) as small_bytes,
  big(coalesce(sum(dur) filter (ranged and bytes < $range), 0)) as small_ns,
  count(*) filter (cached = 'hit') as hits, count(*) filter (cached = 'miss') as misses, big(sum(dur)) as total_ns
from numbers group by all
