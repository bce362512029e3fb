-- Calls by the place in the program that made them.
with rows as (
  select s, f, c, n, count(*) as calls, coalesce(sum(read_bytes), 0) as read_bytes,
    coalesce(sum(write_bytes), 0) as write_bytes, sum(dur) as total_ns,
    count(*) filter (greatest(coalesce(read_bytes, 0), coalesce(write_bytes, 0)) between 1 and $small - 1) as small
  from e where s is not null and not many group by all
)
select sites.word as site, fnames.word as fname, coalesce(role, '') as role, big(sum(calls)) as calls,
  big(sum(read_bytes)) as read_bytes, big(sum(write_bytes)) as write_bytes, big(sum(total_ns)) as total_ns,
  big(sum(small)) as small
from rows join kinds using (c, n) join sites on s = sites.code left join fnames on f = fnames.code
where class = 'io' group by all
