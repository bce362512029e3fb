"""Rules about object stores. Their shares are of the time of the processes that do the work."""

from __future__ import annotations

from dftracer._format import counted, duration, percent, size
from dftracer.reports.findings.facts import IO_FLOOR, Case, Facts, Row, Rule, shown_path, sum_of
from dftracer.reports.store import RANGE

FEW = 20  # requests: fewer are not a pattern


def _wall(facts: Facts, total: int) -> int:
    """Scales summed durations of requests to wall-clock time: many are open at once."""
    layers = [row for row in facts.tables["layers"] if row["class"] == "store"]
    union, every = sum_of(layers, "union_ns"), sum_of(facts.tables["stores"], "total_ns")
    return total if every <= union else total * union // every


def _case(facts: Facts, title: str, evidence: str, taken: int) -> Case:
    whole = facts.lifetime(lambda process: process["role"] != "helper")
    base = f"of the {duration(whole)} that processes took"
    return Case(title, evidence, min(_wall(facts, taken), whole), whole, base=base)


def place_of(row: Row) -> str:
    return shown_path(f"{row['store'] or ''}://{row['bucket'] or ''}/{row['prefix'] or ''}")


def small_ranges(facts: Facts) -> Case | None:
    rows = [row for row in facts.tables["stores"] if row["small"]]
    count, every = sum_of(rows, "small"), sum_of(facts.tables["stores"], "ranged")
    if count < FEW or 2 * count < every or not facts.exposed:
        return None
    taken, moved = sum_of(rows, "small_ns"), sum_of(rows, "small_bytes")
    most = max(rows, key=lambda row: row["small_ns"])
    return _case(
        facts,
        f"{percent(count / every)} of the ranged requests to object stores are small",
        f"{counted(count, 'request')} for less than {RANGE >> 10} KiB, {size(moved / count)} on "
        f"average, took {duration(taken)} for {size(moved)}; most on {place_of(most)}: "
        f"{counted(most['small'], 'request')}, {duration(most['small_ns'])}",
        taken,
    )


def retries(facts: Facts) -> Case | None:
    rows = [row for row in facts.tables["stores"] if row["retry_ns"]]
    taken = sum_of(rows, "retry_ns")
    if not taken:
        return None
    throttled = sum_of(rows, "throttled")
    refused = f", {counted(throttled, 'answer')} of them 429 or 503" if throttled else ""
    most = max(rows, key=lambda row: row["retry_ns"])
    return _case(
        facts,
        f"Requests that object stores turned away took {duration(taken)}",
        f"{counted(sum_of(rows, 'retries'), 'retry', 'retries')}{refused}; most on "
        f"{place_of(most)}, {most['operation']}: {duration(most['retry_ns'])} of "
        f"{duration(most['total_ns'])}",
        taken,
    )


RULES = (
    Rule(
        "small-ranges",
        small_ranges,
        (0.03, 0.10, 0.25),
        "ask for larger ranges: a larger block size of the cache (fsspec: block_size, or "
        "cache_type='all'), whole objects, or samples packed into larger objects",
        IO_FLOOR,
    ),
    Rule(
        "store-retries",
        retries,
        (0.03, 0.10, 0.25),
        "fewer requests at a time, spread over more prefixes, larger ones, or a limit of the rate "
        "that is above the program's",
        IO_FLOOR,
    ),
)
