-- Collectives by process group and operation, over all ranks.
with lasts as (
  select run, family, ranks, operation, function, rank, count(*) as times
  from matched where is_last and is_clear group by all
), most as (
  select run, family, ranks, operation, function, arg_max(rank, (times, -rank)) as last_rank, max(times) as last_count from lasts group by all
), sums as (
  select run, family, ranks, operation, function, count(*) filter (is_last) as count, big(coalesce(sum(bytes) filter (is_last), 0)) as bytes,
    big(sum(time_ns)) as time_ns, big(sum(waited_ns)) as waited_ns, max(last_late_ns) as longest_ns
  from matched group by all
), unmatched as (
  select run, family, ranks, operation, function, count(distinct seq) as unmatched
  from p_collectives join run_numbers using (process)
  where not waits and (run, family, ranks, seq) not in (select (run, family, ranks, seq) from matched) group by all
)
select coalesce(s.run, u.run) as run, coalesce(s.family, u.family) as "group", coalesce(s.ranks, u.ranks) as ranks,
  coalesce(s.operation, u.operation) as operation, coalesce(s.function, u.function) as function, coalesce(s.count, 0) as count,
  coalesce(unmatched, 0) as unmatched, coalesce(s.bytes, 0) as bytes, coalesce(s.time_ns, 0) as time_ns, coalesce(s.waited_ns, 0) as waited_ns,
  coalesce(s.longest_ns, 0) as longest_ns, m.last_rank, coalesce(m.last_count, 0) as last_count
from sums s left join most m on s.run = m.run and s.family = m.family and s.ranks = m.ranks and s.operation = m.operation
  and s.function is not distinct from m.function
full join unmatched u on s.run = u.run and s.family = u.family and s.ranks = u.ranks and s.operation = u.operation
  and s.function is not distinct from u.function
order by waited_ns desc, time_ns desc, run, "group", ranks, operation, function
