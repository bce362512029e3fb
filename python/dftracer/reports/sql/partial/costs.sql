-- What calls of some kinds cost, by the file that they were on and the place that made them. A failed call is also of its other kind.
with rows as (
  select f, s, c, n, bytes > 0 and bytes < $small as small, read_bytes > 0 as got, failed, negative, count(*) as calls,
    sum(bytes) as bytes, sum(dur) as total_ns
  from (
    select *, greatest(coalesce(read_bytes, 0), coalesce(write_bytes, 0)) as bytes from e where f is not null and not many
  ) group by all
), named as (
  select f, s, cat, name, class, calls, coalesce(bytes, 0) as bytes, total_ns, failed or (negative and class = 'io') as failed,
    case
      when cat in ('POSIX lock', 'STDIO lock') then 'lock'
      when class is distinct from 'io' then null
      when name in ($syncs) then 'sync'
      when role in ('open', 'close', 'duplicate', 'seek', 'map', 'metadata') then 'metadata'
      when copies then null
      when small and reads and got then 'small read'
      when small and writes then 'small write'
    end as kind
  from rows join kinds using (c, n)
), all_kinds as (
  select f, s, cat, name, kind, calls, bytes, total_ns from named where kind is not null
  union all by name
  select f, s, cat, name, 'failed' as kind, calls, bytes, total_ns from named where failed and class = 'io'
)
select kind, cat, name, fnames.word as fname, sites.word as site, big(sum(calls)) as calls, big(sum(bytes)) as bytes,
  big(sum(total_ns)) as total_ns
from all_kinds join fnames on f = fnames.code left join sites on s = sites.code group by all
