-- The lanes of the sweep: one per category, class and way, and one for backward passes, in passes of at most 60. Lanes that have
-- a class are part of every pass, since every category is compared with compute, and so are those in which a process
-- waits; all lanes of a category share a pass. Fetching has a lane without a class too, for threads beside the one that trains.
with lanes as (
  select *, bool_or(class is not null or regexp_matches(cat, '^(POSIX|STDIO|NET|IO_URING|AIO)( (pipe|lock|net|local))?$'))
    over (partition by cat) as known
  from (
    select distinct cat, class, gradients, way from kinds
    union select cat, null, false, '' from kinds where class = 'fetch'
  )
), known as (
  select cat, class, gradients, way, row_number() over (order by cat, class nulls last, gradients, way) - 1 as bit from lanes where known
), others as (
  select cat, class, gradients, way, row_number() over (order by cat, gradients) - 1 as number from lanes where not known
), room as (select greatest(60 - count(*), 1) as size from known)
select cat, class, gradients, way, 0 as pass, bit, true as known from known
union all
select cat, class, gradients, way, number // size as pass, (select count(*) from known) + number % size as bit, false
from others, room
