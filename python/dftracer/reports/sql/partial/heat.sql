-- The same pieces of time by process: exact unions, and the calls that began in them.
with times as (
  select process, key as start_ns, sum(ns) filter (lanes & io_bits <> 0) as io_ns,
    sum(ns) filter (lanes & compute_bits <> 0) as compute_ns,
    sum(ns) filter (lanes & io_bits <> 0 and lanes & compute_bits = 0) as unhidden_io_ns
  from sweep, masks where kind = 2 and pass = 0 group by all
), calls as (
  select process, (ts >> $k) << $k as start_ns, count(*) as ops,
    sum(coalesce(read_bytes, 0)::hugeint + coalesce(write_bytes, 0)) as bytes
  from e where ts is not null and (c, n) in (select (c, n) from kinds where class = 'io') group by all
)
select process, start_ns, coalesce(io_ns, 0)::bigint as io_ns, coalesce(compute_ns, 0)::bigint as compute_ns,
  coalesce(unhidden_io_ns, 0)::bigint as unhidden_io_ns, coalesce(ops, 0)::bigint as ops,
  big(coalesce(bytes, 0)) as bytes
from times full join calls using (process, start_ns)
