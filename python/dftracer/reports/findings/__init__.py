"""Findings: rules, each with the numbers of this trace that support it.

A rule looks at the tables and returns a case: the time that it concerns, the time which that is a
part of, and its evidence; or None. Its entry in RULES sets the shares from which it is low, medium
and high, and the advice. Where a program trains, I/O that no step waits for is not a finding.

A finding that says why comes before the one that it explains: a slow worker before the wait for
data that it causes. It is then at least as severe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dftracer._format import duration, percent
from dftracer._names import printable
from dftracer.reports.findings import io, network, processes, stores, training, waits
from dftracer.reports.findings.facts import Facts, Rule
from dftracer.reports.model import SCHEMAS, Table

__all__ = ["RULES", "find"]

RULES = (*training.RULES, *io.RULES, *stores.RULES, *network.RULES, *processes.RULES, *waits.RULES)
# Nanoseconds that a finding must concern to be medium, and to be high, whatever its share.
FLOORS = (100_000_000, 500_000_000)
SEVERITIES = ("low", "medium", "high")
MOST_FILES = 3

Finding = dict[str, Any]


def find(tables: dict[str, Table]) -> Table:
    """The findings, most severe first."""
    facts = Facts({name: table.dicts() for name, table in tables.items()})
    found = {row["rule"]: row for row in _judged(facts)}
    behind = _explained(found)
    rows = sorted(
        found.values(), key=lambda row: (-row["grave"], behind[row["rule"]], -row["share"])
    )
    columns = [column.name for column in SCHEMAS["findings"].columns]
    return Table(SCHEMAS["findings"], [tuple(_row(row)[name] for name in columns) for row in rows])


def _row(row: Finding) -> Finding:
    return {**row, "severity": SEVERITIES[row["grave"]]}


def _explained(found: dict[str, Finding]) -> dict[str, int]:
    """How many causes stand before each finding; a cause is as severe as its effect."""
    causes = {rule.name: _causes(rule, found) for rule in RULES if rule.name in found}

    def raise_causes(name: str) -> None:
        for cause in causes[name]:
            found[cause]["grave"] = max(found[cause]["grave"], found[name]["grave"])
            raise_causes(cause)

    def depth(name: str) -> int:
        return max((1 + depth(cause) for cause in causes[name]), default=0)

    for name in found:
        raise_causes(name)
    return {name: depth(name) for name in found}


def _causes(rule: Rule, found: dict[str, Finding]) -> list[str]:
    """The findings that have at least half of its time."""
    whole = found[rule.name]["concerns_ns"] or 0
    return [
        name
        for name in rule.explained_by
        if name in found and 2 * (found[name]["concerns_ns"] or 0) >= whole
    ]


def _judged(facts: Facts) -> Iterator[Finding]:
    for rule in RULES:
        case = rule.check(facts)
        if case is None or case.share < rule.shares[0]:
            continue
        if case.timed and case.concerns < rule.floor:
            continue
        grave = sum(case.share >= share for share in rule.shares[1:])
        if case.timed:
            grave = min(grave, sum(case.concerns >= floor for floor in FLOORS))
        share = min(case.share, 1.0)
        evidence = case.evidence
        if case.base not in case.title and case.timed:
            evidence += f". That is {duration(case.concerns)}, {percent(share)} {case.base}"
        yield {
            "rule": rule.name,
            "grave": grave,
            "title": case.title,
            "evidence": evidence,
            "concerns_ns": case.concerns if case.timed else None,
            "share": share,
            "advice": case.advice or rule.advice,
            "base": case.base,
            "sure": "estimated" if case.estimated else "measured",
            "files": "\n".join(printable(name) for name in case.files[:MOST_FILES]) or None,
        }
