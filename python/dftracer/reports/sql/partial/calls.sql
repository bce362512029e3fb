-- Every name with its counts and sums. An aggregate counts as the calls that it stands for.
with plain as (
  select c, n, count(*) as count, count(*) filter (failed) as failed, count(*) filter (failed or negative) as negative,
    sum(dur) filter (failed) as failed_ns, sum(dur) filter (failed or negative) as negative_ns,
    sum(dur) as total_ns, min(dur) as min_ns, max(dur) as max_ns, sum(read_bytes) as read_bytes,
    sum(write_bytes) as write_bytes, sum(read_bytes) filter (write_bytes is not null) as both_bytes,
    sum(mapped_bytes) as mapped_bytes,
    count(*) filter (read_bytes > 0 or write_bytes > 0) as moved,
    count(*) filter (read_bytes is null and write_bytes is null) as untold, count(*) as events
  from e where not many group by all
), told as (
  select c, n, greatest(coalesce(try_cast(args ->> '$.dft_cnt' as bigint), 1), 1) as calls,
    coalesce(try_cast(args ->> '$.dur_sum' as bigint), 0)::hugeint * 1000 as total_ns,
    coalesce(try_cast(args ->> '$.dur_min' as bigint), 0)::hugeint * 1000 as min_ns,
    coalesce(try_cast(args ->> '$.dur_max' as bigint), 0)::hugeint * 1000 as max_ns
  from e where many
), rows as (
  from plain
  union all by name
  select c, n, sum(calls) as count, 0 as failed, 0 as negative, 0 as failed_ns, 0 as negative_ns, sum(total_ns) as total_ns, min(min_ns) as min_ns,
    max(max_ns) as max_ns, null as read_bytes, null as write_bytes, null as both_bytes, null as mapped_bytes, 0 as moved,
    sum(calls) as untold, count(*) as events
  from told group by all
)
select cat, name, big(sum(count)) as count, big(sum(case when class = 'io' then negative else failed end)) as errors,
  big(coalesce(sum(case when class = 'io' then negative_ns else failed_ns end), 0)) as error_ns,
  big(sum(total_ns)) as total_ns, big(min(min_ns)) as min_ns, big(max(max_ns)) as max_ns,
  big(coalesce(sum(read_bytes), 0)) as read_bytes, big(coalesce(sum(write_bytes), 0)) as write_bytes,
  -- What a copy reads is what it writes, unless one of them is no file.
  big(coalesce(sum(read_bytes), 0) + coalesce(sum(write_bytes), 0) - coalesce(sum(both_bytes) filter (copies), 0)) as bytes,
  big(coalesce(sum(mapped_bytes), 0)) as mapped_bytes, big(sum(moved)) as moved,
  big(coalesce(sum(untold) filter (reads or writes), 0)) as unknown, any_value(role) as role,
  big(sum(events)) as events, big(coalesce(sum(total_ns) filter (n >= $life), 0)) as life_ns
from rows join kinds using (c, n) group by cat, name
