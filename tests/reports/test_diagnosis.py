"""The benchmark of diagnosis: its table of cases is whole, and its judge can say no."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from dftracer.reports.findings import RULES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from diagnosis import Result as Judged  # noqa: E402
from diagnosis import diagnose, judge, verdict  # noqa: E402
from diagnosis_cases import CASES, PROGRAMS, Case  # noqa: E402

BY_NAME = {case.name: case for case in CASES}


def test_there_are_as_many_cases_as_promised_and_each_is_another() -> None:
    assert len(BY_NAME) == len(CASES)
    assert sum(not case.healthy for case in CASES) >= 24
    assert sum(case.healthy for case in CASES) >= 8


def test_every_case_expects_a_finding_that_exists() -> None:
    rules = {rule.name for rule in RULES}
    assert [case.name for case in CASES if case.rule and case.rule not in rules] == []


def test_every_case_has_its_program() -> None:
    for program in ("training.py", "files.py", "processes.py"):
        tree = ast.parse((PROGRAMS / program).read_text())
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        wanted = {case.name.replace("-", "_") for case in CASES if case.program == program}
        assert wanted <= there


def found(rule: str, severity: str = "high", title: str = "a title") -> dict[str, str]:
    return {"rule": rule, "severity": severity, "title": title, "evidence": "of 3 s"}


def test_the_judge_wants_the_cause_first_and_named() -> None:
    case = Case("a", "", "files.py", "syncs", ("journal",))
    named = found("syncs", title="fsync of journal")
    assert judge(case, [named, found("io-bound")]) == ""
    assert judge(case, [found("io-bound"), named]) == "io-bound in place of syncs"
    assert judge(case, [found("syncs")]) == "syncs without journal"
    assert judge(case, []) == "no finding in place of syncs"


def test_the_judge_wants_no_high_finding_of_a_healthy_program() -> None:
    case = Case("a", "", "files.py")
    assert judge(case, [found("io-bound", "medium")]) == ""
    assert judge(case, [found("x", "low"), found("syncs")]) == "syncs of a healthy program"


def test_what_a_run_is_bound_by_is_counted_apart() -> None:
    case = Case("a", "", "files.py", bound=("reading", "writing"))
    right, wrong = Judged(case, [], "writing"), Judged(case, [], "idle")
    assert (right.bound_right, wrong.bound_right) == (True, False)
    text, met = verdict([right, wrong])
    assert "right for 1 of the 2 programs" in text
    assert met


def test_the_bar_is_nineteen_of_twenty_and_every_healthy_one() -> None:
    slow = Case("a", "", "files.py", "syncs")
    right, wrong = Judged(slow, []), Judged(slow, [], wrong="other")
    well, ill = Judged(Case("b", "", "files.py"), []), Judged(Case("b", "", "x"), [], wrong="high")
    assert verdict([right] * 19 + [wrong, well])[1]
    assert not verdict([right] * 18 + [wrong, well])[1]
    assert not verdict([right] * 20 + [well, ill])[1]


@pytest.mark.long
@pytest.mark.parametrize("name", ["locked-file", "buffered-writer"])
def test_a_case_as_it_runs(name: str, tmp_path: Path) -> None:
    assert diagnose(BY_NAME[name], tmp_path).wrong == ""
