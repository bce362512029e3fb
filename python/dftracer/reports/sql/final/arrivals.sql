-- Ranks by how they came to collectives. `net_ns` is of the median step: how long the others waited for this rank there, on average, less
-- how long it waited for them. What is outside of steps does not count there; in a run without steps every collective is one.
with marked as (
  select *, case when bool_or(step is not null) over (partition by run) then case when step is not null then concat(epoch, ' ', step) end
    else concat(family, ' ', ranks, ' ', seq) end as round
  from matched
), sizes as (
  select run, count(distinct process) as ranks from matched group by run
), rounds as (
  select distinct run, process, round from marked where round is not null
), given as (
  select run, last_process as process, round, big(sum(waited_ns)) as given_ns from marked where not is_last group by all
), taken as (
  select run, process, round, big(sum(waited_ns)) as taken_ns from marked group by all
), nets as (
  select r.run, r.process, count(*) as steps, quantile_disc(coalesce(given_ns, 0) // greatest(z.ranks - 1, 1) - taken_ns, 0.5) as net_ns
  from rounds r join sizes z using (run) join taken t using (run, process, round) left join given g using (run, process, round)
  group by r.run, r.process
), grown as (
  select process, big(sum(late_ns)) as late_ns, [
    {'more_ns': sum(communication_ns), 'part': 'communication'}, {'more_ns': sum(transfer_ns), 'part': 'transfer'},
    {'more_ns': sum(checkpoint_ns), 'part': 'checkpoint'}, {'more_ns': sum(compute_ns), 'part': 'compute'},
    {'more_ns': sum(fetch_ns), 'part': 'fetch'}, {'more_ns': sum(io_ns), 'part': 'io'}, {'more_ns': sum(other_ns), 'part': 'unattributed'}
  ] as parts
  from reasons group by process
), reason as (
  -- The part that grew most, if it is at least half of all that grew, and that explains at least half of how late the rank came.
  select process, part, big(more_ns) as more_ns from (
    select process, late_ns, list_sort(parts)[-1].part as part, list_sort(parts)[-1].more_ns as more_ns,
      list_sum([greatest(p.more_ns, 0) for p in parts]) as every_ns
    from grown
  ) where 2 * more_ns >= every_ns and 2 * every_ns >= late_ns and more_ns > 0
), sums as (
  select run, process, any_value(rank) as rank, count(*) as collectives, count(*) filter (is_last and is_clear) as last,
    big(coalesce(sum(late_ns) filter (is_last and is_clear), 0)) as late_ns,
    quantile_disc(late_ns, 0.5) filter (is_last and is_clear) as median_late_ns, big(sum(waited_ns)) as waited_ns,
    any_value(uncertainty_ns) as uncertainty_ns
  from matched group by run, process
)
select n.number as process, s.rank, s.collectives, s.last, s.late_ns, s.median_late_ns, s.waited_ns, coalesce(g.given_ns, 0) as given_ns,
  coalesce(t.steps, 0) as steps, coalesce(t.net_ns, 0) as net_ns,
  r.part as reason, r.more_ns as reason_ns, case when s.uncertainty_ns < 9223372036854775807 then s.uncertainty_ns end as uncertainty_ns
from sums s left join nets t using (run, process) join numbers n using (process) left join reason r using (process)
left join (select last_process as process, big(sum(waited_ns)) as given_ns from matched where not is_last group by last_process) g using (process)
order by given_ns desc, n.number
