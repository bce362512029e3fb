"""Findings: rules, each with the numbers of this trace that support it.

A rule looks at the tables and returns a case: the time that it concerns, the time which that is a
part of, and its evidence; or None. Its entry in RULES sets the shares from which it is low, medium
and high, and the advice. Where a program trains, I/O that no step waits for is not a finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from dftracer._format import duration, percent
from dftracer.reports.findings import io, processes, stores, training
from dftracer.reports.findings.facts import Facts
from dftracer.reports.model import SCHEMAS, Table

__all__ = ["RULES", "find"]

RULES = (*training.RULES, *io.RULES, *stores.RULES, *processes.RULES)
# Nanoseconds that a finding must concern to be medium, and to be high, whatever its share.
FLOORS = (100_000_000, 500_000_000)
SEVERITIES = ("low", "medium", "high")


def find(tables: dict[str, Table]) -> Table:
    """The findings, most severe first."""
    facts = Facts({name: table.dicts() for name, table in tables.items()})
    rows = sorted(_judged(facts), key=lambda row: (-SEVERITIES.index(row[1]), -row[5], row[0]))
    return Table(SCHEMAS["findings"], rows)


def _judged(facts: Facts) -> Iterator[tuple[str, str, str, str, int | None, float, str, str]]:
    for rule in RULES:
        case = rule.check(facts)
        if case is None or case.share < rule.shares[0]:
            continue
        if case.timed and case.concerns < rule.floor:
            continue
        grave = sum(case.share >= share for share in rule.shares[1:])
        if case.timed:
            grave = min(grave, sum(case.concerns >= floor for floor in FLOORS))
        share, time = min(case.share, 1.0), case.concerns if case.timed else None
        base = case.base
        evidence = case.evidence
        if base not in case.title and case.timed:
            evidence += f". That is {duration(case.concerns)}, {percent(share)} {base}"
        advice = case.advice or rule.advice
        yield rule.name, SEVERITIES[grave], case.title, evidence, time, share, advice, base
