-- What the last rank of each collective did longer than the others before it: its own time since the previous collective, beside the median
-- of theirs.
with others as (
  select run, family, ranks, seq, quantile_disc(gap_ns, 0.5) as gap_ns, quantile_disc(communication_ns, 0.5) as communication_ns,
    quantile_disc(transfer_ns, 0.5) as transfer_ns, quantile_disc(checkpoint_ns, 0.5) as checkpoint_ns,
    quantile_disc(compute_ns, 0.5) as compute_ns, quantile_disc(fetch_ns, 0.5) as fetch_ns, quantile_disc(io_ns, 0.5) as io_ns,
    quantile_disc(gap_ns - communication_ns - transfer_ns - checkpoint_ns - compute_ns - fetch_ns - io_ns, 0.5) as other_ns
  from matched where not is_last and gap_ns is not null group by all
)
select m.run, m.family, m.ranks, m.seq, m.process, m.late_ns, m.gap_ns - o.gap_ns as gap_ns,
  m.communication_ns - o.communication_ns as communication_ns, m.transfer_ns - o.transfer_ns as transfer_ns,
  m.checkpoint_ns - o.checkpoint_ns as checkpoint_ns, m.compute_ns - o.compute_ns as compute_ns, m.fetch_ns - o.fetch_ns as fetch_ns,
  m.io_ns - o.io_ns as io_ns,
  m.gap_ns - m.communication_ns - m.transfer_ns - m.checkpoint_ns - m.compute_ns - m.fetch_ns - m.io_ns - o.other_ns as other_ns
from matched m join others o using (run, family, ranks, seq) where m.is_last and m.is_clear and m.gap_ns is not null
