-- Pieces of 2^k nanoseconds that begin at multiples of it, so that those of one block can be joined to
-- wider ones of the whole. Bytes are spread by differences of rounded-down sums: joined pieces are exact.
with spans as (
  select c, n, ts, greatest(dur, 1) as dur, dur as busy, coalesce(read_bytes, 0) as read_bytes, coalesce(write_bytes, 0) as write_bytes,
    ts >> $k as first, (ts + greatest(dur, 1) - 1) >> $k as last
  from e where ts is not null
), pieces as (
  select c, n, first as piece, count(*) as ops, sum(read_bytes) as read_bytes, sum(write_bytes) as write_bytes, sum(busy) as busy_ns
  from spans where first = last group by all
  union all by name
  select c, n, piece, count(*) filter (piece = first) as ops, sum(read_share) as read_bytes, sum(write_share) as write_bytes,
    sum(stop - start) as busy_ns
  from (
    select *, read_bytes::hugeint * (stop - ts) // dur - read_bytes::hugeint * (start - ts) // dur as read_share,
      write_bytes::hugeint * (stop - ts) // dur - write_bytes::hugeint * (start - ts) // dur as write_share
    from (
      select *, greatest(ts, piece << $k) as start, least(ts + dur, (piece + 1) << $k) as stop
      from (select *, unnest(range(first, last + 1)) as piece from spans where first <> last)
    )
  ) group by all
)
select cat, piece << $k as start_ns, big(sum(ops)) as ops, big(coalesce(sum(read_bytes), 0)) as read_bytes,
  big(coalesce(sum(write_bytes), 0)) as write_bytes, big(sum(busy_ns)) as busy_ns
from pieces join kinds using (c, n) group by all
