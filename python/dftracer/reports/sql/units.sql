-- What the thread that trains did, cut into units: each fetch of a batch begins one, as does a step number that changes
-- while the thread computes, and a pass over the validation set. A unit is part of a training step (`trains`), or it is
-- evaluation, or neither: a batch that was fetched and not used. A batch that is fetched ahead of evaluation is part of that.
--
-- Where a process has backward passes or optimizer steps, only units with one of them train; where it computes at all,
-- only units that compute. A unit without them that carries the number of the step which follows belongs to that step:
-- a batch that was skipped, a checkpoint.
with evaluations as materialized (
  select process, ts, stop from (
    select process, ts, ts + dur as stop, max(ts + dur) over (partition by process order by ts, dur desc
      rows between unbounded preceding and 1 preceding) as before
    from e join kinds using (c, n) where ts is not null and is_evaluation(cat, name)
  ) where before is null or ts >= before
), listed as (
  select process, m.ts, m.stop, fetches, m.computes or operates as computes, m.learns, updates, training, epoch, step
  from marks m join trainers t using (process, tid)
  where fetches or m.computes or (operates and not t.computes)
  union all by name
  select process, ts, stop, false as fetches, false as computes, false as learns from evaluations join trainers using (process)
  union all by name
  -- The end of a loop's body.
  select process, ts + dur as ts, ts + dur as stop, true as fetches, false as computes, false as learns, true as ended
  from e join kinds using (c, n) join trainers using (process, tid)
  where ts is not null and is_body(name) and is_batch(cat, regexp_replace(name, '[a-z]+$', 'iter'))
), seen as materialized (
  -- DFTracer 1.x and 2.x lose the wait and the body of the iteration in which a loop is left, but not what is in it: there
  -- the thread computes after the end of a body, without a wait between the two.
  select * from listed
  qualify ended is null or lead(computes) over (partition by process order by ts, stop desc, ended nulls last)
), placed as (
  select m.*, v.ts is not null and m.ts < v.stop as inside,
    -- A wait inside another one is part of it.
    fetches and m.ts >= coalesce(max(m.stop) filter (fetches) over earlier, m.ts) as begins,
    row_number() over (partition by m.process order by m.ts, m.stop desc) as place
  from seen m asof left join evaluations v on m.process = v.process and m.ts >= v.ts
  window earlier as (partition by m.process order by m.ts, m.stop desc rows between unbounded preceding and 1 preceding)
), counted as materialized (
  select *, sum(begins::int) over (partition by process order by place rows unbounded preceding) as batch from placed
), numbered as (
  -- Where a process learns, a new step begins after an update, so that the number may change between forward and backward.
  select process, place, changed from (
    select process, place, coalesce(
        lag((epoch, step)) over w is distinct from (epoch, step) and lag(place) over w is not null
        and (not p.learns or (sum(counted.learns::int) over earlier > 0
          and last_value(case when counted.learns then (epoch, step) end ignore nulls) over earlier is distinct from (epoch, step))),
      false) as changed
    from counted join trainers p using (process) where counted.computes and step is not null
    window w as (partition by process, batch, inside order by place),
      earlier as (partition by process, batch, inside order by place rows between unbounded preceding and 1 preceding)
  ) where changed
), cut as (
  select *, sum((begins or coalesce(changed, false) or coalesce(inside <> was, true))::int)
    over (partition by process order by place rows unbounded preceding) as unit
  from (select *, lag(inside) over (partition by process order by place) as was from counted)
  left join numbered using (process, place)
), units as (
  select process, unit, min(ts) as start, max(stop) as stop, bool_or(inside) as inside, bool_or(computes) as computes,
    bool_or(learns) as learns, coalesce(bool_or(updates), false) as updates, coalesce(max(training), -1) as training, bool_or(fetches) as fetches,
    coalesce(arg_min({'epoch': epoch, 'step': step}, place) filter (learns and step is not null),
      arg_min({'epoch': epoch, 'step': step}, place) filter (computes and step is not null),
      arg_min({'epoch': epoch, 'step': step}, place) filter (step is not null)) as number
  from cut group by process, unit
), judged as (
  select u.*, lag(stop) over (partition by process order by unit) as before, not inside and case
    when p.learns then u.learns
    when p.computes then u.computes and training <> 0
    else true
  end as trained
  from units u join trainers p using (process)
), passed as (
  -- Evaluation: without what may yet belong to a step.
  select *, not trained and (inside or (computes and training <> 1)) as evaluated,
    sum((not trained and (inside or (computes and training <> 1)))::int)
      over (partition by process order by unit rows unbounded preceding) as passes
  from judged
), joined as materialized (
  select *, trained or (not evaluated and number is not null and (number, passes) is not distinct from
    first_value(case when trained then (number, passes) end ignore nulls)
      over (partition by process order by unit rows between 1 following and unbounded following)) as trains
  from passed
), ends as (
  -- With what else is open after the last of its marks: transfers, collectives, a checkpoint.
  select j.process, j.unit, max(s.stop) as stop
  from marks s asof join (select process, start, max(unit) as unit from joined group by all) j
    on s.process = j.process and s.ts >= j.start
  group by all
), begins as (
  -- What carries the number of a step before it computes: reading and moving data where no batch is waited for.
  select j.process, j.unit, min(s.ts) as start
  from marks s join trainers using (process, tid)
  join joined j on s.process = j.process
  where not j.fetches and not j.inside and s.step = j.number.step and s.epoch is not distinct from j.number.epoch
    and s.ts < j.start and s.ts >= coalesce(j.before, s.ts) and not s.computes
  group by all
)
select j.process, j.unit, least(j.start, b.start) as start, coalesce(e.stop, j.stop) as stop, number.epoch as epoch,
  number.step as step, updates, trains, not trains and (inside or computes or coalesce(lead(evaluated) over (partition by j.process order by unit), false)) as evaluates,
  inside as marked
from joined j left join ends e using (process, unit) left join begins b using (process, unit)
