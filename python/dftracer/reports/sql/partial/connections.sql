-- Calls on sockets by peer. A connection is a connect or an accept and what follows on the same descriptor: the names of
-- sockets have its number, and where there are too many names, without it, the time to the first byte is not known.
with calls as (
  select e.process, e.f, e.ts, e.dur, name, reads and not copies as reads, writes and not copies as writes,
    failed, name in ('connect', 'accept', 'accept4') as meets, meets and (begun or not negative) as met, begun, read_bytes, write_bytes
  from e join kinds using (c, n)
  where not many and not copies and f in (select code from fnames where is_socket(word))
  union all by name
  -- Of sendfile and splice, the socket's side.
  select process, f, null as ts, dur, name, k.reads and c.reads as reads, k.writes and not c.reads as writes, false as failed,
    false as meets, false as met, false as begun, read_bytes, write_bytes
  from copies c join kinds k using (c, n) where f in (select code from fnames where is_socket(word))
), moments as (
  -- From the call of connect, and from the return of accept, to the return of the call that received something.
  select process, f, case when name = 'connect' then ts else ts + dur end as moment, true as begins
  from calls where met and ts is not null
  union all
  select process, f, ts + dur, false from calls where reads and read_bytes > 0 and ts is not null
), lives as (
  select process, f, moment, begins, max(moment) filter (begins)
    over (partition by process, f order by moment, not begins rows unbounded preceding) as began
  from moments
), firsts as (
  select f, wait from (
    select process, f, began, min(moment) filter (not begins) - began as wait from lives
    where began is not null and f in (select code from fnames where regexp_matches(word, '#[0-9]+$')) group by process, f, began
  ) where wait is not null
), waits as (
  select f, count(*) as answered, sum(wait) as wait_ns, max(wait) as longest_wait_ns from firsts group by f
), sums as (
  select f, count(*) filter (met) as connections, count(*) filter (meets and begun) as in_progress,
    count(*) filter (failed and meets) as refused, count(*) filter (failed) as errors, count(*) as calls,
    count(*) filter (writes) as sends, count(*) filter (reads) as receives,
    sum(write_bytes) filter (writes) as sent_bytes, sum(read_bytes) filter (reads) as received_bytes,
    sum(dur) filter (writes) as send_ns, sum(dur) filter (reads) as receive_ns, sum(dur) filter (meets) as connect_ns,
    max(dur) filter (reads) as stall_ns
  from calls group by f
)
select peer_of(word) as peer, big(sum(connections)) as connections, big(sum(in_progress)) as in_progress,
  big(sum(refused)) as refused, big(sum(errors)) as errors, big(sum(calls)) as calls, big(sum(sends)) as sends,
  big(sum(receives)) as receives, big(coalesce(sum(sent_bytes), 0)) as sent_bytes,
  big(coalesce(sum(received_bytes), 0)) as received_bytes, big(coalesce(sum(send_ns), 0)) as send_ns,
  big(coalesce(sum(receive_ns), 0)) as receive_ns, big(coalesce(sum(connect_ns), 0)) as connect_ns,
  big(coalesce(max(stall_ns), 0)) as stall_ns, big(coalesce(sum(answered), 0)) as answered,
  big(coalesce(sum(wait_ns), 0)) as first_byte_ns, big(coalesce(max(longest_wait_ns), 0)) as longest_first_byte_ns
from sums left join waits using (f) join fnames on f = code group by all
