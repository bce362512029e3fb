-- What calls of some kinds cost, by the file that they were on. A failed call is also of its other kind.
with rows as (
  select f, c, n, case when bytes is null then null when bytes < $small and bytes > 0 then 'small' else 'large' end as size,
    failed, negative, count(*) as calls, sum(bytes) as bytes, sum(dur) as total_ns
  from e where f is not null and not many group by all
), named as (
  select f, cat, name, class, calls, coalesce(bytes, 0) as bytes, total_ns, failed or (negative and class = 'io') as failed,
    case
      when cat in ('POSIX lock', 'STDIO lock') then 'lock'
      when class is distinct from 'io' then null
      when name in ($syncs) then 'sync'
      when size is null then 'metadata'
      when size = 'small' and reads then 'small read'
      when size = 'small' and writes then 'small write'
    end as kind
  from rows join kinds using (c, n)
), all_kinds as (
  select f, cat, name, kind, calls, bytes, total_ns from named where kind is not null
  union all by name
  select f, cat, name, 'failed' as kind, calls, bytes, total_ns from named where failed and class = 'io'
)
select kind, cat, name, word as fname, big(sum(calls)) as calls, big(sum(bytes)) as bytes, big(sum(total_ns)) as total_ns
from all_kinds join fnames on f = code group by all
