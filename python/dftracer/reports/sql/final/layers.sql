-- Categories of events. The class is that of most of a category's time. A category's rate is that of its I/O calls
-- alone, over the time in which any process had one open: waiting for a process is no I/O.
with calls as (
  select cat, arg_max(class, total_ns) as class, big(sum(events)) as events, big(sum(total_ns)) as total_ns,
    told(big(sum(read_bytes)), sum(unknown) filter (role in ('read', 'copy', 'collect'))) as read_bytes,
    told(big(sum(write_bytes)), sum(unknown) filter (role in ('write', 'copy', 'collect'))) as write_bytes
  from (
    select cat, name, any_value(role) as role, sum(events) as events, sum(total_ns) as total_ns, sum(read_bytes) as read_bytes,
      sum(write_bytes) as write_bytes, sum(unknown) as unknown,
      case when 2 * sum(life_ns) <= sum(total_ns) or sum(life_ns) = 0 then class_of(cat, name) end as class
    from p_calls group by cat, name
  ) group by cat
)
select cat, class, events, total_ns, coalesce(union_ns, 0) as union_ns,
  coalesce(any_ns, 0) as any_ns, read_bytes, write_bytes,
  case when any_ns > 0 and coalesce(read_bytes, write_bytes) is not null
    then (coalesce(read_bytes, 0)::double + coalesce(write_bytes, 0)) * 1e9 / any_ns end as bandwidth,
  coalesce(files, 0) as files, processes,
  case when union_ns > 0 then 100.0 * coalesce(hidden_ns, 0) / union_ns end as overlap_percent
from calls
left join (select cat, big(sum(union_ns)) as union_ns, big(sum(hidden_ns)) as hidden_ns from p_unions group by cat) using (cat)
left join open_times using (cat)
left join (select cat, big(sum(processes)) as processes from p_layers group by cat) using (cat)
left join (select cat, count(distinct fname) as files from p_files group by cat) using (cat)
order by total_ns desc, cat
