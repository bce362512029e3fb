"""How much a full and a quick run do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """How much is done. The peer gets fewer events where it would take minutes."""

    repeats: int
    burst: int
    sustained: int
    peer_sustained: int
    threads: int
    peer_threads: int
    memory: int
    peer_memory: int
    worst: int
    peer_worst: int
    starts: int
    sizes: int
    # Interception: bursts of calls, reads in a loop from C and from Python, names of a tree.
    call_bursts: int
    call_repeats: int
    reads: int
    peer_reads: int
    loop_repeats: int
    names: int
    # Python: bursts of calls in a process, calls without a pause, imports.
    python_bursts: int
    python_sustained: int
    python_imports: int


FULL = Sizes(
    repeats=5,
    burst=100,
    sustained=5_000_000,
    peer_sustained=500_000,
    threads=2_000_000,
    peer_threads=160_000,
    memory=10_000_000,
    peer_memory=1_000_000,
    worst=10_000_000,
    peer_worst=500_000,
    starts=200,
    sizes=1_000_000,
    call_bursts=20,
    call_repeats=15,
    reads=250_000,
    peer_reads=50_000,
    loop_repeats=60,
    names=200_000,
    python_bursts=20,
    python_sustained=2_000_000,
    python_imports=60,
)
QUICK = Sizes(
    repeats=3,
    burst=40,
    sustained=1_000_000,
    peer_sustained=100_000,
    threads=400_000,
    peer_threads=40_000,
    memory=2_000_000,
    peer_memory=300_000,
    worst=1_000_000,
    peer_worst=150_000,
    starts=100,
    sizes=200_000,
    call_bursts=10,
    call_repeats=7,
    reads=100_000,
    peer_reads=25_000,
    loop_repeats=15,
    names=40_000,
    python_bursts=8,
    python_sustained=400_000,
    python_imports=20,
)
