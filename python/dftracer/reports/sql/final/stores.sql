-- Requests to object stores. Percentiles as in percentiles.sql, of the requests that tell their time to the first byte.
with steps as (
  select store, bucket, prefix, operation, step, sum(requests) as requests from p_stores
  where layer = 'request' and step is not null group by all
), sums as (
  select *, sum(requests) over (partition by store, bucket, prefix, operation order by step) as until,
    sum(requests) over (partition by store, bucket, prefix, operation) as total,
    (step_start(step) + step_end(step) - 1) // 2 as middle
  from steps
), percentiles as (
  select store, bucket, prefix, operation, min(middle) filter (until > 0.50 * total or until = total) as ttfb_p50_ns,
    min(middle) filter (until > 0.99 * total or until = total) as ttfb_p99_ns
  from sums group by all
), rows as (
  select store, bucket, prefix, operation, big(sum(requests)) as requests, big(sum(ranged)) as ranged,
    big(sum(size_bytes)) as requested_bytes, big(sum(bytes)) as bytes, big(sum(errors)) as errors, big(sum(retries)) as retries,
    big(sum(throttled)) as throttled, big(sum(retry_ns)) as retry_ns, big(sum(small)) as small, big(sum(small_bytes)) as small_bytes,
    big(sum(small_ns)) as small_ns, big(sum(total_ns)) as total_ns, min(least_ttfb) as least_ttfb, max(most_ttfb) as most_ttfb
  from p_stores where layer = 'request' group by all
)
select r.*, greatest(least_ttfb, least(most_ttfb, p.ttfb_p50_ns)) as ttfb_p50_ns,
  greatest(least_ttfb, least(most_ttfb, p.ttfb_p99_ns)) as ttfb_p99_ns
from rows r left join percentiles p on r.store is not distinct from p.store and r.bucket is not distinct from p.bucket
  and r.prefix is not distinct from p.prefix and r.operation = p.operation
order by r.total_ns desc, r.store, r.bucket, r.prefix, r.operation
