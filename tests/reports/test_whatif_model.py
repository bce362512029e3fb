"""The queue model of a DataLoader: cases worked out by hand, and against a naive simulation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.naive_loader import Naive

from dftracer.reports.whatif.loader import Run, Setup, Times, simulate


def run(
    work: list[float], own: list[float], *, cpu: Any = (), ready: Any = (), **setup: Any
) -> Run:
    none = [0.0] * len(work)
    times = Times(list(work), list(cpu) or none, list(own), none, list(ready))
    return simulate(times, Setup(**setup))


def test_one_worker_with_one_batch_ahead() -> None:
    # The next batch is sent when one is handed over: while the process computes for 3, the worker
    # works for 10, so each later wait is 7.
    found = run([10] * 4, [3] * 4, workers=1, prefetch=1)
    assert found.waits == [10, 7, 7, 7]
    assert found.own == [3, 3, 3, 3]


def test_a_worker_that_keeps_up_is_waited_for_once() -> None:
    assert run([10] * 5, [12] * 5, workers=1, prefetch=1).waits == [10, 0, 0, 0, 0]


def test_equal_times_on_two_workers() -> None:
    # Both are done at 10, 20, 30: one wait of 10 - 2 * 3 per pair, and none for its second batch.
    assert run([10] * 6, [3] * 6, workers=2, prefetch=2).waits == [10, 0, 4, 0, 4, 0]


def test_without_workers_every_batch_is_waited_for() -> None:
    assert run([10, 20], [5, 5], cpu=[1, 2], workers=0).waits == [11, 22]


def test_one_slow_batch_blocks_those_behind_it() -> None:
    # Batch 1 is ready at 100, batches 0, 2 at 10, 20. In order, 2 is kept back, and 3 was made
    # behind 1, at 110.
    work = [10, 100, 10, 10]
    assert run(work, [1] * 4, workers=2, prefetch=2).waits == [10, 89, 0, 8]
    # Otherwise what arrives is handed over: 0, 2, 1, 3 at 10, 20, 100 and 110.
    assert run(work, [1] * 4, workers=2, prefetch=2, in_order=False).waits == [10, 9, 79, 9]


def test_more_prefetch_bridges_a_slow_batch() -> None:
    # With one batch ahead, batch 8 is begun when 7 is handed over, 12 before it is wanted. With
    # four it is begun when 7 is ready, at 80, and is wanted at 10 + 8 * 12.
    work = [10.0] * 8 + [60.0] + [10.0] * 11
    few = sum(run(work, [12] * 20, workers=1, prefetch=1).waits)
    many = sum(run(work, [12] * 20, workers=1, prefetch=4).waits)
    assert (few, many) == (10 + 60 - 12, 10 + (80 + 60) - (10 + 8 * 12))


def test_what_each_hand_over_costs() -> None:
    found = run([10] * 2, [0, 0], workers=1, prefetch=2, reach=1, pause=2, transfer=3, take=4)
    # Begun at 1, ready at 11, at the other end at 14, taken at 18; the next is begun at 13.
    assert found.waits == [18, (23 + 3 + 4) - 18]


def test_a_new_worker_begins_when_it_is_up() -> None:
    assert run([10] * 3, [0] * 3, workers=2, prefetch=1, ready=[50, 70]).waits == [60, 20, 0]


def test_pinning_takes_its_turn() -> None:
    # All are there at 10; the thread that pins needs 5 for each.
    assert run([10] * 3, [1] * 3, workers=3, prefetch=1, pin=5.0).waits == [15, 4, 4]


def test_more_workers_than_cores_do_not_compute_faster() -> None:
    two = run([0] * 40, [0] * 40, cpu=[10] * 40, workers=2, prefetch=2, cores=2)
    four = run([0] * 40, [0] * 40, cpu=[10] * 40, workers=4, prefetch=2, cores=2)
    assert sum(two.waits) == sum(four.waits) == 200
    unlimited = run([0] * 40, [0] * 40, cpu=[10] * 40, workers=4, prefetch=2)
    assert sum(unlimited.waits) == 100


def test_the_training_process_shares_the_cores() -> None:
    # One core: the worker and the process each get half of it while both compute.
    times = Times([0, 0], [10, 10], [0, 0], [10, 10])
    found = simulate(times, Setup(1, 1, cores=1))
    # Batch 0 alone until 10; then both compute, each for 20, until 30; batch 1 is there.
    assert found.waits == [10, 0]
    assert found.own == [20, 10]


AMOUNT = st.integers(0, 30)


@st.composite
def loaders(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 14))
    some = st.lists(st.integers(1, 60), min_size=count, max_size=count)
    workers = draw(st.integers(0, 4))
    cores = draw(st.integers(0, 3))
    return {
        "blocked": draw(some),
        "cpu": draw(some | st.just([0] * count)),
        "own_blocked": draw(some),
        "own_cpu": draw(some | st.just([0] * count)),
        "workers": workers,
        "prefetch": draw(st.integers(1, 3)),
        "in_order": draw(st.booleans()),
        "ready": draw(st.lists(AMOUNT, max_size=workers)),
        "reach": draw(st.integers(0, 5)),
        "pause": draw(st.integers(0, 5)),
        "transfer": draw(st.integers(0, 5)),
        "take": draw(st.integers(0, 5)),
        "pin": draw(st.none() | AMOUNT),
        "cores": cores,
        "main_cores": draw(st.integers(1, min(cores or 2, 2))),
    }


@settings(max_examples=300, deadline=None)
@given(loaders())
def test_the_model_agrees_with_a_naive_simulation(given: dict[str, Any]) -> None:
    naive = Naive(**given).run()
    lists = ("blocked", "cpu", "own_blocked", "own_cpu", "ready")
    times = {key: [Fraction(value) for value in given.pop(key)] for key in lists}
    # Fractions, so that a rounded moment does not swap two events.
    costs = {key: value if value is None else Fraction(value) for key, value in given.items()}
    whole = {key: given[key] for key in ("workers", "prefetch", "in_order")}
    found = simulate(Times(**times), Setup(**{**costs, **whole}))
    assert found.waits == naive.waits
    assert found.own == naive.own
