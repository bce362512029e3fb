-- The training steps of each process, as windows of its time that do not overlap: units that train (units.sql), those
-- in a row with one number together until the weights are updated; or else ProfilerStep of torch.profiler. A step ends
-- where the next one of its epoch begins, unless evaluation comes first, or else with its last event.
with trained as (
  select *, sum(case when number is null or number is distinct from before or evaluated or updated then 1 else 0 end)
    over (partition by process order by unit) as key
  from (
    select process, unit, start, stop, epoch, step, case when step is not null then (epoch, step) end as number,
      lag(case when step is not null then (epoch, step) end) over w as before,
      coalesce(passed <> lag(passed) over w, false) as evaluated, coalesce(lag(updates) over w, false) as updated, passed
    from (select *, sum(evaluates::int) over (partition by process order by unit rows unbounded preceding) as passed from units)
    where trains window w as (partition by process order by unit)
  )
), steps as (
  select process, key, min(start) as start, max(stop) as stop, any_value(epoch) as epoch, any_value(step) as step,
    any_value(passed) as passed
  from trained group by process, key
), spans as (
  -- Epochs that the program marks; the outermost ones.
  select process, ts, stop, told, row_number() over (partition by process order by ts) - 1 as number from (
    select process, ts, ts + dur as stop, case when cat = 'dlio_benchmark' then epoch end as told,
      max(ts + dur) over (partition by process order by ts, dur desc
        rows between unbounded preceding and 1 preceding) as before
    from e join kinds using (c, n) where ts is not null and dur > 0 and is_epoch(cat, name)
  ) where before is null or ts >= before
), located as materialized (
  select s.*, case when s.start < p.stop then p.number end as span, case when s.start < p.stop then p.told end as told
  from steps s asof left join spans p on s.process = p.process and s.start >= p.ts
), sources as (
  -- Numbers of epochs count if each marked epoch has one, and no other has it.
  select process, count(span) > 0 as marked,
    count(*) filter (span is not null and epoch is null) = 0
      and count(distinct span) = count(distinct epoch) filter (span is not null)
      and count(distinct span) = count(distinct (span, epoch)) filter (span is not null) as agree,
    count(epoch) > 0 as numbered,
    count(*) filter (span is not null and told is null) = 0 and count(distinct told) = count(distinct span) as spoken
  from located group by process
), dated as materialized (
  select process, key, start, stop, step, passed, case
    when marked and agree then epoch
    when marked then coalesce(case when spoken then told end, span, epoch)
    when numbered then epoch
    -- Nothing tells of epochs, but steps that are counted from the beginning again.
    when max(again) over (partition by process) > 0 then again
  end as epoch
  from (
    select *, sum(case when step < before then 1 else 0 end) over (partition by process order by key) as again
    from (select *, lag(step) over (partition by process order by key) as before from located)
  ) join sources using (process)
), profiled as (
  select process, coalesce(step, try_cast(regexp_extract(name, '#([0-9]+)', 1) as bigint),
      row_number() over (partition by process order by ts) - 1) as step,
    ts as start, ts + dur as stop
  from e join kinds using (c, n)
  where ts is not null and name like 'ProfilerStep%' and process not in (select process from dated where step is not null)
), all_steps as (
  select process, key, start, stop, step, epoch, passed, false as fixed from dated
  where process not in (select process from profiled)
  union all by name select *, 0 as key, 0 as passed, true as fixed from profiled
), next as (
  select *, lead(start) over w as next_start,
    lead(epoch) over w is not distinct from epoch and lead(passed) over w = passed as goes_on
  from all_steps window w as (partition by process order by start, key, step)
)
select
  row_number() over (order by process, start, key, step) - 1 as id, process, epoch,
  -- Without numbers, in the order of the run.
  coalesce(step, lag(step) over (partition by process, epoch order by start, key) + 1,
    row_number() over (partition by process order by start, key) - 1) as step, start,
  case
    when next_start is null then stop
    when goes_on and not fixed then next_start
    else least(stop, next_start)
  end as stop
from next
