-- Collectives of all ranks, matched by process group and number: one row per rank, with when it came, how much later than the others, and
-- how long it waited for the last one. A collective counts if every rank of its group recorded it, as the same operation.
with each as (
  -- A call that only launches it is followed by a `wait`: it came with the call, and was blocked in the wait.
  select r.run, c.family, c.ranks, c.seq, c.process, any_value(coalesce(c.rank, p.rank)) as rank, any_value(p.host) as host,
    arg_min(c.operation, (c.waits, c.start_ns)) as operation, arg_min(c.function, (c.waits, c.start_ns)) as function,
    arg_min(c.start_ns, (c.waits, c.start_ns)) as arrival_ns, max(c.stop_ns) as stop_ns, max(c.bytes) as bytes, bool_or(c.launched) as launched,
    arg_min(c.epoch, (c.waits, c.start_ns)) as epoch, arg_min(c.step, (c.waits, c.start_ns)) as step,
    arg_min({'gap_ns': c.gap_ns, 'communication_ns': c.communication_ns, 'transfer_ns': c.transfer_ns, 'checkpoint_ns': c.checkpoint_ns,
      'compute_ns': c.compute_ns, 'fetch_ns': c.fetch_ns, 'io_ns': c.io_ns}, (c.waits, c.start_ns)) as own
  from p_collectives c join p_processes p using (process) join run_numbers r using (process) group by r.run, c.family, c.ranks, c.seq, c.process
), groups as (
  select run, family, ranks, seq, count(*) as members, count(distinct host) as hosts, max(arrival_ns) as last_ns,
    arg_max(process, (arrival_ns, process)) as last_process,
    -- The median of the others: of those that came after `low` it is `low`, of all others it is `high`.
    list_sort(list(arrival_ns))[(count(*) - 1) // 2 + 1] as low, list_sort(list(arrival_ns))[(count(*) - 1) // 2 + 2] as high,
    case when not bool_or(launched) and any_value(operation) in ('all_reduce', 'barrier', 'all_gather', 'reduce_scatter', 'all_to_all')
      then max(stop_ns) - min(stop_ns) end as spread_ns
  from each group by run, family, ranks, seq
  having count(*) > 1 and count(*) = members_of(any_value(ranks)) and count(distinct rank) = count(*) and count(distinct operation) = 1
    and count(distinct coalesce(function, '')) = 1
), clocks as (
  -- All ranks leave such an operation at the same time: how far they seem not to is how well their clocks agree. A host has one clock.
  select run, case when max(hosts) > 1 then coalesce(quantile_disc(spread_ns, 0.9) filter (hosts > 1), 9223372036854775807) else 0 end as uncertainty_ns
  from groups group by run
), blocked as (
  select r.run, c.family, c.ranks, c.seq, c.process, big(sum(c.stop_ns - c.start_ns)) as time_ns,
    big(sum(greatest(least(c.stop_ns, g.last_ns) - c.start_ns, 0))) as waited_ns
  from p_collectives c join run_numbers r using (process)
  join groups g on g.run = r.run and g.family = c.family and g.ranks = c.ranks and g.seq = c.seq
  where c.waits or not c.launched group by all
)
select e.* exclude (own, launched), own.*, g.members, g.last_process, e.process = g.last_process as is_last,
  g.last_ns - case when g.last_ns > g.low then g.low else g.high end as last_late_ns,
  e.arrival_ns - case when e.arrival_ns > g.low then g.low else g.high end as late_ns, coalesce(b.time_ns, 0) as time_ns,
  -- Where clocks agree less well than that, nobody is known to have come late.
  last_late_ns > greatest(k.uncertainty_ns, 0) as is_clear,
  case when last_late_ns > greatest(k.uncertainty_ns, 0) then coalesce(b.waited_ns, 0) else 0 end as waited_ns, k.uncertainty_ns
from each e join groups g using (run, family, ranks, seq) join clocks k using (run) left join blocked b using (run, family, ranks, seq, process)
