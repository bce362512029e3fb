-- Both files of each copy, one row each: one was read, the other one written. Where in the second one is not known.
select process, c, n, f, dur, access, reached, mapped_bytes,
  case when not first_is_written then read_bytes end as read_bytes,
  case when first_is_written then write_bytes end as write_bytes, not first_is_written as reads
from e join kinds using (c, n) where copies and f is not null
union all
select process, c, n, g, dur, null, null, null,
  case when first_is_written then read_bytes end, case when not first_is_written then write_bytes end, first_is_written
from e join kinds using (c, n) where copies and g is not null
