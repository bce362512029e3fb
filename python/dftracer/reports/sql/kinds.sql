-- What each name of the block means. Calls on pipes, sockets and locks have categories of their own, see pipes.sql and
-- locks.sql; the life of a generator has no class, see events.sql.
select c, n, cat, k.name, case when n < $life then class_of(cat, k.name) end as class,
  lower(cat) = 'compute' and k.name = 'backward' as gradients, role,
  coalesce(role in ('read', 'copy', 'collect'), false) as reads,
  coalesce(role in ('write', 'copy', 'collect'), false) as writes,
  -- Which way I/O goes: what is open at a moment is reading, writing, or neither.
  case when role in ('read', 'collect') then 'read' when role in ('write', 'copy', 'sync') then 'write' else '' end as way,
  coalesce(role = 'copy', false) as copies, coalesce(first_is_written, false) as first_is_written
from (
  select c, n, coalesce(w.word, '') || case when c >= $pipe then if(w.word = 'NET', ' local', ' pipe') when c >= $lock then ' lock'
      when c >= $net then ' net' else '' end as cat,
    coalesce(w.word, '') in ('POSIX', 'STDIO', 'NET', 'IO_URING', 'AIO') as is_call, coalesce(v.word, '') as name
  from (select distinct c, n from e) left join cats w on c % $net = w.code left join names v on n % $life = v.code
) k
left join lateral (select * from role_of(k.name) where is_call) on true
