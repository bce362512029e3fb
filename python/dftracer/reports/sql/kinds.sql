-- What each name of the block means. Calls on pipes and on locks have categories of their own, see pipes.sql and
-- locks.sql; the life of a generator has no class, see events.sql.
select c, n, cat, name, case when n < $life then class_of(cat, name) end as class, lower(cat) = 'compute' and name = 'backward' as gradients,
  reads(name) as reads, writes(name) as writes, opens(name) as opens
from (
  select c, n, coalesce(w.word, '') || case when c >= $pipe then ' pipe' when c >= $lock then ' lock' else '' end as cat, coalesce(v.word, '') as name
  from (select distinct c, n from e) left join cats w on c % $lock = w.code left join names v on n % $life = v.code
)
