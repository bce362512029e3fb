-- Files of fsspec that have a cache: what the program read from them, and what was fetched for that.
select store, bucket, prefix, big(coalesce(sum(requests) filter (layer = 'file'), 0)) as reads,
  big(coalesce(sum(hits) filter (layer = 'file'), 0)) as hits, big(coalesce(sum(misses) filter (layer = 'file'), 0)) as misses,
  big(coalesce(sum(bytes) filter (layer = 'file'), 0)) as read_bytes,
  big(coalesce(sum(requests) filter (layer = 'cache'), 0)) as fetches,
  big(coalesce(sum(bytes) filter (layer = 'cache'), 0)) as fetched_bytes,
  sum(bytes) filter (layer = 'cache')::double / nullif(sum(bytes) filter (layer = 'file'), 0) as amplification,
  big(coalesce(sum(hits) filter (layer = 'copy'), 0)) as copy_hits, big(coalesce(sum(misses) filter (layer = 'copy'), 0)) as copy_misses,
  big(coalesce(sum(total_ns) filter (layer in ('file', 'copy')), 0)) as total_ns
from p_stores where layer in ('file', 'cache', 'copy') group by store, bucket, prefix
order by total_ns desc, store, bucket, prefix
