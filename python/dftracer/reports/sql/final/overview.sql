-- The whole trace in one row.
with p as (
  select min(first_ns) as first_ns, max(last_ns) as last_ns, count(*) as processes, count(distinct rank) as ranks,
    count(distinct host) as hosts, big(coalesce(sum(threads), 0)) as threads, big(coalesce(sum(events), 0)) as events,
    big(coalesce(sum(lost), 0)) as lost, count(*) filter (recovered) as recovered,
    big(coalesce(sum(ring_requests), 0)) as ring_requests
  from p_processes where events > 0 or starts > 0
), m as (
  select big(coalesce(sum(read_bytes), 0)) as read_sum, big(coalesce(sum(write_bytes), 0)) as write_sum,
    big(coalesce(sum(read_unknown), 0)) as read_unknown, big(coalesce(sum(write_unknown), 0)) as write_unknown,
    big(coalesce(sum(mapped_bytes), 0)) as mapped_bytes
  from p_moved
), t as (
  select big(coalesce(sum(io_ns), 0)) as io_ns, big(coalesce(sum(read_ns), 0)) as reading_ns,
    big(coalesce(sum(write_ns), 0)) as writing_ns, big(coalesce(sum(compute_ns), 0)) as compute_ns,
    big(coalesce(sum(hidden_io_ns), 0)) as hidden_io_ns, big(coalesce(sum(mpi_ns), 0)) as mpi_ns
  from p_times
), spans as (
  select min(start_ns) as start_ns, max(end_ns) as end_ns from lives group by run
), ordered as (
  select *, max(end_ns) over (order by start_ns, end_ns rows between unbounded preceding and 1 preceding) as before from spans
), job as (
  -- Time between runs belongs to none.
  select big(sum(greatest(end_ns::hugeint - greatest(start_ns, before), 0))) as job_ns, count(*) as runs from ordered
), l as (
  select min(start_ns) as start_ns, max(end_ns) as end_ns, big(coalesce(sum(busy_ns), 0)) as busy_ns,
    big(coalesce(sum(lock_ns), 0)) as lock_ns, big(coalesce(sum(pipe_ns), 0)) as pipe_wait_ns,
    big(coalesce(sum(child_ns), 0)) as child_wait_ns, big(coalesce(sum(untraced_child_ns), 0)) as untraced_child_ns,
    big(coalesce(sum(idle_ns), 0)) as idle_ns, big(coalesce(sum(store_ns), 0)) as store_wait_ns, big(coalesce(sum(net_ns), 0)) as net_wait_ns,
    case when count(cpu_ns) = count(*) then big(sum(cpu_ns)) end as cpu_ns, big(sum(cpu_wait_ns)) as cpu_wait_ns,
    timed_by(arg_min(started, start_ns), arg_max(ended, end_ns)) as timed_by
  from lives
)
select p.*, job.*, l.*, t.*, told(read_sum, read_unknown) as read_bytes, told(write_sum, write_unknown) as write_bytes,
  read_unknown, write_unknown, mapped_bytes, any_ns,
  case when any_ns > 0 and read_sum + write_sum::hugeint > 0 then (read_sum::double + write_sum) * 1e9 / any_ns end as bandwidth,
  io_ns - hidden_io_ns as unhidden_io_ns,
  (select big(coalesce(sum(files), 0)) from p_blocks) as traces,
  (select big(coalesce(sum(damaged), 0)) from p_blocks) as damaged,
  (select big(coalesce(sum(major_ns), 0)) from p_mappings) as fault_wait_ns,
  null::varchar as not_traced, null::varchar as bound, null::varchar as bound_by, null::varchar as clock
from p, m, t, job, l, (select any_ns from open_times where cat is null)
