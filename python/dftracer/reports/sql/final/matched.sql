-- Collectives of all ranks, matched by process group and number: one row per rank, with when it came, how much later than the others, and
-- how long it waited for the last one. A collective counts if every rank of its group recorded it, as the same operation.
with named as materialized (
  -- Process groups as numbers: there are few, and many joins.
  select run, family, ranks, row_number() over () as family_number, members_of(ranks) as expected
  from (select distinct run, family, ranks from p_collectives join run_numbers using (process))
), calls as materialized (
  select c.rowid as call, n.run, n.family_number, n.expected, c.seq, c.process, c.start_ns, c.stop_ns, c.bytes, c.waits, c.launched
  from p_collectives c join run_numbers r using (process) join named n on n.run = r.run and n.family = c.family and n.ranks = c.ranks
), firsts as (
  -- A call that only launches it is followed by a `wait`: it came with the call, and was blocked in the wait.
  select run, family_number, any_value(expected) as expected, seq, process,
    coalesce(arg_min(call, start_ns) filter (not waits), arg_min(call, start_ns) filter (waits)) as call,
    max(stop_ns) as stop_ns, max(bytes) as bytes, bool_or(launched) as launched
  from calls group by run, family_number, seq, process
), each as materialized (
  select f.run, f.family_number, f.expected, c.family, c.ranks, f.seq, f.process, coalesce(c.rank, p.rank) as rank, p.host, c.operation, c.function,
    c.start_ns as arrival_ns, f.stop_ns, f.bytes, f.launched, c.epoch, c.step, c.gap_ns, c.communication_ns, c.transfer_ns, c.checkpoint_ns,
    c.compute_ns, c.fetch_ns, c.io_ns
  from firsts f join p_collectives c on c.rowid = f.call join p_processes p on p.process = f.process
), groups as materialized (
  select * exclude (came), came[-1].arrival_ns as last_ns, came[-1].process as last_process,
    -- The median of the others: of those that came after `low` it is `low`, of all others it is `high`.
    came[(members - 1) // 2 + 1].arrival_ns as low, came[(members - 1) // 2 + 2].arrival_ns as high
  from (
    select run, family_number, seq, count(*) as members, count(distinct host) as hosts,
      list_sort(list({'arrival_ns': arrival_ns, 'process': process})) as came,
      case when not bool_or(launched) and any_value(operation) in ('all_reduce', 'barrier', 'all_gather', 'reduce_scatter', 'all_to_all',
        'MPI_Allreduce', 'MPI_Barrier', 'MPI_Allgather', 'MPI_Allgatherv', 'MPI_Alltoall', 'MPI_Alltoallv', 'MPI_Comm_dup', 'MPI_Comm_split')
        then max(stop_ns) - min(stop_ns) end as spread_ns
    from each group by run, family_number, seq
    having count(*) > 1 and count(*) = any_value(expected) and count(distinct rank) = count(*) and min(operation) = max(operation)
      and min(coalesce(function, '')) = max(coalesce(function, ''))
  )
), clocks as (
  -- All ranks leave such an operation at the same time: how far they seem not to is how well their clocks agree. A host has one clock.
  select run, case when max(hosts) > 1 then coalesce(quantile_disc(spread_ns, 0.9) filter (hosts > 1), 9223372036854775807) else 0 end as uncertainty_ns
  from groups group by run
), blocked as (
  select c.run, c.family_number, c.seq, c.process, big(sum(c.stop_ns - c.start_ns)) as time_ns,
    big(sum(greatest(least(c.stop_ns, g.last_ns) - c.start_ns, 0))) as waited_ns
  from calls c join groups g using (run, family_number, seq) where c.waits or not c.launched group by all
)
select e.* exclude (family_number, expected, launched), g.members, g.last_process, e.process = g.last_process as is_last,
  g.last_ns - case when g.last_ns > g.low then g.low else g.high end as last_late_ns,
  e.arrival_ns - case when e.arrival_ns > g.low then g.low else g.high end as late_ns, coalesce(b.time_ns, 0) as time_ns,
  -- Where clocks agree less well than that, nobody is known to have come late.
  last_late_ns > greatest(k.uncertainty_ns, 0) as is_clear,
  case when last_late_ns > greatest(k.uncertainty_ns, 0) then coalesce(b.waited_ns, 0) else 0 end as waited_ns, k.uncertainty_ns
from each e join groups g using (run, family_number, seq) join clocks k using (run)
left join blocked b using (run, family_number, seq, process)
