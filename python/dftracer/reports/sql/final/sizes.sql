-- How large the transfers were, by powers of two. What moves bytes both ways is in both directions.
with all_sizes as (
  select cat, name, lower, big(sum(count)) as count, big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
  from p_sizes group by all
)
select 'read' as direction, *, lower * 2 as upper from all_sizes where reads(name)
union all
select 'write' as direction, *, lower * 2 as upper from all_sizes where writes(name)
order by direction, cat, name, lower
