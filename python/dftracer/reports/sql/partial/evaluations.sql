-- Passes over the validation or test set, with the epoch of the step before them, or else after them. Like a step, one
-- ends where the next step of its epoch begins, unless the program marks its end.
with periods as (
  select process, passed, min(start) as start, max(stop) as stop, bool_or(marked) as marked
  from (
    select *, sum(trains::int) over (partition by process order by unit rows unbounded preceding) as passed from units
  ) where evaluates group by all
)
select p.process, coalesce(b.epoch, n.epoch) as epoch, p.start as start_ns,
  case
    when n.start is null then p.stop
    when not marked and n.epoch is not distinct from b.epoch then n.start
    else greatest(least(p.stop, n.start), p.start)
  end - p.start as dur_ns
from periods p
asof left join windows b on p.process = b.process and p.start >= b.start
left join (
  select p.process, p.passed, min(w.start) as start, arg_min(w.epoch, w.start) as epoch
  from periods p asof join windows w on p.process = w.process and p.start < w.start group by all
) n on p.process = n.process and p.passed = n.passed
