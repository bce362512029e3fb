-- Processes that may have training steps: the thread that trains, and whether it says what it waits for.
with facts as (
  select process, bool_or(learns) as learns, bool_or(computes) as computes from marks
  group by process having bool_or(fetches) or bool_or(step is not null)
)
select process, tid, bool_or(fetches) as waits, any_value(f.learns) as learns, any_value(f.computes) as computes
from marks m join facts f using (process)
where fetches or m.computes or operates group by process, tid
qualify row_number() over (partition by process order by
  count(*) filter (m.learns) desc, count(*) filter (m.computes) desc, count(*) filter (fetches) desc, tid) = 1
