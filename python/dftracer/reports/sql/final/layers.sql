-- Categories of events. The class is that of most of a category's time.
with calls as (
  select cat, arg_max(class, total_ns) as class, big(sum(events)) as events, big(sum(total_ns)) as total_ns,
    big(coalesce(sum(bytes) filter (reads(name)), 0)) as read_bytes,
    big(coalesce(sum(bytes) filter (writes(name)), 0)) as write_bytes
  from (
    select cat, name, sum(events) as events, sum(total_ns) as total_ns, sum(bytes) as bytes,
      case when 2 * sum(life_ns) <= sum(total_ns) or sum(life_ns) = 0 then class_of(cat, name) end as class
    from p_calls group by cat, name
  ) group by cat
)
select cat, class, events, total_ns, coalesce(union_ns, 0) as union_ns, read_bytes, write_bytes,
  case when union_ns > 0 and class = 'io' then (read_bytes::double + write_bytes) * 1e9 / union_ns end as bandwidth,
  coalesce(files, 0) as files, processes,
  case when union_ns > 0 then 100.0 * coalesce(hidden_ns, 0) / union_ns end as overlap_percent
from calls
left join (select cat, big(sum(union_ns)) as union_ns, big(sum(hidden_ns)) as hidden_ns from p_unions group by cat) using (cat)
left join (select cat, big(sum(processes)) as processes from p_layers group by cat) using (cat)
left join (select cat, count(distinct fname) as files from p_files group by cat) using (cat)
order by total_ns desc, cat
