-- Histogram of durations; see step_of in vocabulary.sql. An aggregate counts with its mean.
with steps as (
  select c, n, step_of(dur) as step, count(*) as count from e where not many group by all
  union all
  select c, n, step_of(least(greatest(total * 1000 // calls, 0), 4000000000000000000)::bigint) as step, sum(calls) as count
  from (
    select c, n, greatest(coalesce(try_cast(args ->> '$.dft_cnt' as bigint), 1), 1) as calls,
      coalesce(try_cast(args ->> '$.dur_sum' as bigint), 0)::hugeint as total
    from e where many
  ) group by all
)
select cat, name, step, big(sum(count)) as count from steps join kinds using (c, n) group by all
