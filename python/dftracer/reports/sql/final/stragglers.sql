-- Ranks and workers beside the median of their kind. Of ranks: what a step takes, and what of it is the rank's own: not
-- communication, and not the backward pass, in which ranks that share gradients wait for each other. Of workers: what
-- an item takes. Workers are compared with those of one parent.
with steps as (
  select process, count(*) as count, unnest([
    {'measure': 'step time', 'value': big(sum(dur_ns)) // count(*)},
    {'measure': 'own time', 'value': big(sum(dur_ns - communication_ns - backward_ns)) // count(*)},
    {'measure': 'fetch time', 'value': big(sum(fetch_ns)) // count(*)},
    {'measure': 'compute time', 'value': big(sum(compute_ns - backward_ns)) // count(*)}
  ], recursive := true)
  from p_steps group by process
), bytes as (
  select process, 'read bytes' as measure, coalesce(read_bytes, 0) as value, 1 as count
  from p_processes left join p_moved using (process)
), items as (
  select process, 'item time' as measure, big(sum(total_ns)) // greatest(big(sum(count)), 1) as value, big(sum(count)) as count
  from p_work where cat = 'data' and name = 'item' and class is not null and process not in (select process from p_steps)
  group by process
), kinds as (
  select 'rank' as kind, '' as family, * from steps
  union all by name select 'rank' as kind, '' as family, b.* from bytes b
    where process in (select process from p_steps)
  union all by name select 'worker' as kind, concat(p.host, ' ', p.ppid) as family, i.*
    from items i join p_processes p using (process)
), medians as (
  select kind, family, measure, quantile_disc(value, 0.5) as median, count(*) as members
  from kinds group by all
)
select kind, n.number as process,
  coalesce(p.rank, (select min(q.rank) from p_processes q where q.pid = p.ppid and q.host is not distinct from p.host)) as rank,
  measure, value, count, median, case when median > 0 then value / median end as ratio
from kinds join medians using (kind, family, measure) join numbers n using (process) join p_processes p using (process)
where members > 1
order by ratio desc nulls last, kind, measure, 2
