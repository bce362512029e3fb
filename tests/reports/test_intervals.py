"""The sweep against a slow, obvious version: how long which lanes were open at once."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dftracer import _reader
from dftracer.trace.stream import Longs

Span = tuple[int, int, int, int]


def table(rows: list[Span]) -> pa.Table:
    columns = list(zip(*rows)) if rows else [(), (), (), ()]
    return pa.table({str(i): pa.array(column, pa.int64()) for i, column in enumerate(columns)})


def sweep(spans: list[Span], windows: list[Span], shift: int) -> Counter[tuple[int, ...]]:
    """(kind, process, key, lanes) to time."""
    found = pa.table(Longs(_reader.sweep(table(spans), table(windows), shift=shift)[0]))
    names = ("kind", "process", "key", "lanes", "ns")
    rows = list(zip(*(found[name].to_pylist() for name in names)))
    keys = [row[:4] for row in rows]
    assert len(keys) == len(set(keys)), "a row twice"
    return Counter({row[:4]: row[4] for row in rows})


def obvious(spans: list[Span], windows: list[Span], shift: int) -> Counter[tuple[int, ...]]:
    """Looks at every nanosecond."""
    sums: Counter[tuple[int, ...]] = Counter()
    for process in {span[0] for span in spans}:
        own = [span[1:] for span in spans if span[0] == process]
        for now in range(min(s[1] for s in own), max(s[2] for s in own)):
            lanes = 0
            for lane, start, end in own:
                if start <= now < end:
                    lanes |= 1 << lane
            if not lanes:
                continue
            sums[0, process, 0, lanes] += 1
            sums[2, process, now >> shift << shift, lanes] += 1
            for owner, number, start, end in windows:
                if owner == process and start <= now < end:
                    sums[1, process, number, lanes] += 1
    return sums


SPANS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([0, 1, 2, 62]), st.integers(-40, 60), st.integers(0, 30)
    ).map(lambda s: (s[0], s[1], s[2], s[2] + s[3])),
    max_size=25,
)


@st.composite
def disjoint(draw: st.DrawFn) -> list[Span]:
    edges = sorted(draw(st.sets(st.integers(-50, 90), max_size=12)))
    pairs = list(zip(edges[::2], edges[1::2]))
    owners = draw(st.lists(st.integers(0, 2), min_size=len(pairs), max_size=len(pairs)))
    return [(owner, i, a, b) for i, (owner, (a, b)) in enumerate(zip(owners, pairs))]


@settings(max_examples=120, deadline=None)
@given(SPANS, disjoint(), st.integers(0, 6))
def test_sums_are_those_of_every_nanosecond(
    spans: list[Span], windows: list[Span], shift: int
) -> None:
    assert sweep(spans, windows, shift) == obvious(spans, windows, shift)


@settings(max_examples=25, deadline=None)
@given(SPANS, st.randoms(use_true_random=False))
def test_the_order_of_spans_is_no_matter(spans: list[Span], random: object) -> None:
    mixed = list(spans)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert sweep(spans, [], 3) == sweep(mixed, [], 3)


def test_the_ends_of_time() -> None:
    far = (1 << 62) - 1
    found = sweep([(0, 5, -far, far)], [(0, 9, far - 10, far)], 62)
    assert found[0, 0, 0, 32] == 2 * far
    assert found[1, 0, 9, 32] == 10


def test_other_tables_are_refused() -> None:
    wrong = pa.table({str(i): pa.array(["x"]) for i in range(4)})
    with pytest.raises(ValueError, match="64-bit integers"):
        _reader.sweep(wrong, table([]))
    nulls = pa.table({str(i): pa.array([None], pa.int64()) for i in range(4)})
    with pytest.raises(ValueError, match="null"):
        _reader.sweep(nulls, table([]))
    with pytest.raises(ValueError, match="shift"):
        _reader.sweep(table([]), table([]), shift=63)
