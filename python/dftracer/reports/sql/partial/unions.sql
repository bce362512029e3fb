-- Union of each category's time, and its intersection with compute, by process and added up.
select l.cat, big(sum(s.ns)) as union_ns, big(sum(s.ns) filter (s.lanes & m.compute_bits <> 0)) as hidden_ns
from (select pass, cat, bit_or(1::bigint << bit) as mask from lanes group by all) l
join sweep s on s.pass = l.pass and s.kind = 0 and s.lanes & l.mask <> 0, masks m
group by l.cat
