-- Peers of sockets, those that took the most time first.
with rows as (
  select peer, big(sum(connections)) as connections, big(sum(in_progress)) as in_progress, big(sum(refused)) as refused,
    big(sum(errors)) as errors, big(sum(calls)) as calls, big(sum(sends)) as sends, big(sum(receives)) as receives,
    big(sum(sent_bytes)) as sent_bytes, big(sum(received_bytes)) as received_bytes, big(sum(connect_ns)) as connect_ns,
    big(sum(send_ns)) as send_ns, big(sum(receive_ns)) as receive_ns, max(stall_ns) as stall_ns, sum(answered) as answered,
    sum(first_byte_ns) as first_byte_ns, max(longest_first_byte_ns) as longest_first_byte_ns
  from p_connections group by peer
)
select *, reach_of(peer) as reach, case when answered > 0 then first_byte_ns::double / answered end as first_byte_mean_ns,
  case when answered > 0 then longest_first_byte_ns end as first_byte_max_ns
from rows where connections > 0 or errors > 0 or sends > 0 or receives > 0
order by connect_ns::hugeint + send_ns + receive_ns desc, peer
