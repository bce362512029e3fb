-- What each process did for the data: items, and batches that were waited for.
select process, class, cat, name, big(sum(count)) as count, big(sum(total_ns)) as total_ns, min(first_ns) as first_ns
from (select process, c, n, count(*) as count, sum(dur) as total_ns, min(ts) as first_ns from e group by all) join kinds using (c, n)
where (class in ('fetch', 'compute', 'checkpoint', 'communication') or feeds(cat)) and name not like 'aten::%'
  and cat not in ('dynamo', 'PP', 'cpu_op', 'kernel')
group by all
