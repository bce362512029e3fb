-- Calls of MPI and MPI-IO by process, with the rank in MPI_COMM_WORLD that a message was sent to: null where a call sends none, -1 where it
-- is not known. Messages of persistent requests are counted when they are complete, all others when they are sent.
with told as (
  select process, cat, name, dur, args, try_cast(args ->> '$.bytes' as bigint) as bytes,
    coalesce(try_cast(args ->> '$.world_peer' as bigint), try_cast(args ->> '$.peer' as bigint)) as peer
  from e join kinds using (c, n)
  where ts is not null and not many and cat in ('MPI', 'MPIIO', 'MPI_REQUEST', 'MPIIO_REQUEST') and name <> 'MPI_Comm'
), kept as (
  select *, cat in ('MPI', 'MPIIO') as is_call,
    (cat = 'MPI' and regexp_matches(name, '^MPI_I?([bsr]?send|Send|Bsend|Ssend|Rsend|[sS]endrecv|[sS]endrecv_replace)$'))
      or (cat = 'MPI_REQUEST' and regexp_matches(name, '^MPI_(P|B|S|R)?[sS]end_init$')) as sends,
    cat = 'MPIIO' or cat = 'MPIIO_REQUEST' as is_file,
    cat = 'MPI' and contains(args, '"seq"') as collective
  from told
)
select process, case when sends then peer end as peer, count(*) filter (is_call and not is_file) as calls,
  big(coalesce(sum(dur) filter (is_call and not is_file), 0)) as time_ns, big(coalesce(sum(dur) filter (collective), 0)) as collective_ns,
  count(*) filter (sends and peer is not null) as messages, big(coalesce(sum(bytes) filter (sends and peer is not null), 0)) as sent_bytes,
  count(*) filter (cat = 'MPIIO') as file_calls, big(coalesce(sum(dur) filter (cat = 'MPIIO'), 0)) as file_ns,
  -- What is read by a request is known when it is complete; what is written when it is started.
  big(coalesce(sum(bytes) filter (is_file and name like '%read%'), 0)) as read_bytes,
  big(coalesce(sum(bytes) filter (cat = 'MPIIO' and name like '%write%'), 0)) as write_bytes
from kept group by all
