-- The training steps of each process, as windows of its time that do not overlap. In this order:
-- 1. events that carry `step` (the ai vocabulary, `dftracer run --torch`), from the first of a step to the
--    first of the next one in the same epoch, or else to its last end. Where a process has backward passes
--    or optimizer steps, only what holds one is a step: evaluation is none.
-- 2. ProfilerStep of torch.profiler.
-- 3. the fetches of batches: a step begins with each.
with seen as (
  select process, cat, name, class, epoch, step, ts, ts + dur as stop, args
  from e join kinds using (c, n)
  where ts is not null and (class <> 'io' or name like 'ProfilerStep%')
), trainers as (
  select process,
    bool_or(step is not null and (class <> 'fetch' or cat = 'dataloader')) as told,
    bool_or(step is not null and cat = 'compute' and name in ('backward', 'step')) as learns,
    bool_or(name like 'ProfilerStep%') as profiled
  from seen group by process
), told as (
  select process, epoch, step, min(ts) as start, max(stop) as stop
  from seen join trainers using (process)
  where told and step is not null and class is not null
  group by process, epoch, step, learns
  having not learns or bool_or(cat = 'compute' and name in ('backward', 'step'))
), profiled as (
  select process, null::bigint as epoch,
    coalesce(step, try_cast(regexp_extract(name, '#([0-9]+)', 1) as bigint),
      row_number() over (partition by process order by ts) - 1) as step,
    ts as start, stop
  from seen join trainers using (process)
  where not told and profiled and name like 'ProfilerStep%'
), epochs as (
  select process, ts, row_number() over (partition by process order by ts) - 1 as epoch
  from e join kinds using (c, n) where cat = 'pipeline' and name in ('epoch.block', 'epoch') and ts is not null
), fetched as (
  select s.process, s.ts as start, row_number() over (partition by s.process order by s.ts) - 1 as step
  from seen s join trainers using (process)
  where not told and not profiled and s.cat in ('dataloader', 'data_loader') and s.class = 'fetch'
    and (s.name = 'fetch' or s.name like '%.iter' or s.name like '%.iter.last')
), fetches as (
  select f.process, p.epoch, f.step, f.start from fetched f
  asof left join epochs p on f.process = p.process and f.start >= p.ts
), bodies as (
  select f.process, f.epoch, f.step, f.start, max(s.stop) as stop
  from seen s asof join fetches f on s.process = f.process and s.ts >= f.start
  where s.class is not null
  group by all
), all_steps as (
  select *, false as fixed from told
  union all by name select *, true as fixed from profiled
  union all by name select *, false as fixed from bodies
), next as (
  select *,
    lead(start) over (partition by process order by start, step) as next_start,
    lead(epoch) over (partition by process order by start, step) is not distinct from epoch as same_epoch
  from all_steps
)
select
  row_number() over (order by process, start, step) - 1 as id, process, epoch, step, start,
  case
    when next_start is null then stop
    when same_epoch and not fixed then next_start
    else least(stop, next_start)
  end as stop
from next
