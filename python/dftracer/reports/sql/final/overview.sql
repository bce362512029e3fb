-- The whole trace in one row.
with p as (
  select min(first_ns) as first_ns, max(last_ns) as last_ns, count(*) as processes, count(distinct rank) as ranks,
    count(distinct host) as hosts, big(coalesce(sum(threads), 0)) as threads, big(coalesce(sum(events), 0)) as events,
    big(coalesce(sum(lost), 0)) as lost, count(*) filter (recovered) as recovered,
    big(coalesce(sum(read_bytes), 0)) as read_bytes, big(coalesce(sum(write_bytes), 0)) as write_bytes
  from p_processes where events > 0 or starts > 0
), t as (
  select big(coalesce(sum(io_ns), 0)) as io_ns, big(coalesce(sum(compute_ns), 0)) as compute_ns,
    big(coalesce(sum(hidden_io_ns), 0)) as hidden_io_ns
  from p_times
)
select p.*, big(last_ns::hugeint - first_ns) as job_ns, t.*, io_ns - hidden_io_ns as unhidden_io_ns,
  (select big(coalesce(sum(files), 0)) from p_blocks) as traces,
  (select big(coalesce(sum(damaged), 0)) from p_blocks) as damaged,
  null::varchar as not_traced
from p, t
