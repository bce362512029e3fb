"""Traces of several runs in one place are told apart, and one of them can be chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.synthetic import merge
from support.synthetic_program import BEGIN, Program, digest

from dftracer import reports
from dftracer.commands._cli.main import main
from dftracer.errors import DFTracerError
from dftracer.reports.render.page import page
from dftracer.reports.render.summary import summarise
from dftracer.trace.runs import Life, covered, runs_of

S = 1_000_000  # microseconds
NS = 1_000_000_000


def run(place: Path, name: str, at: int, *, pids: tuple[int, ...] = (100,), reads: int = 3) -> None:
    for pid in pids:
        program = Program(pid=pid, run=name, begin=at, command=f"program;{name or pid}")
        program.now = at
        for _ in range(reads):
            program.read("/d/a", 1000, S)
        program.write(place)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """An hour apart, in one directory; the second has two processes."""
    place = tmp_path / "traces"
    place.mkdir()
    run(place, "first", 0)
    run(place, "second", 3600 * S, pids=(200, 201), reads=2)
    return place


def test_two_runs_in_one_directory_are_not_summed_without_a_word(two: Path) -> None:
    report = reports.load(two)
    rows = report.runs.dicts()
    assert [(row["run"], row["id"], row["processes"], row["events"]) for row in rows] == [
        (1, digest("first"), 1, 3),
        (2, digest("second"), 2, 4),
    ]
    (overview,) = report.overview
    # The hour between them belongs to neither.
    assert overview["job_ns"] == 5 * NS
    assert overview["runs"] == 2
    text = "\n".join(summarise(report))
    assert text.startswith("runs      2 different runs are added up here")
    assert "--run latest" in text
    assert "2: " in text
    assert "from 2 different runs, which are added up here" in page(report)
    assert [row["run"] for row in report.processes] == [1, 2, 2]


@pytest.mark.parametrize(
    ("wanted", "events"), [("latest", 4), ("2", 4), ("1", 3), (digest("first")[:6], 3)]
)
def test_one_run_is_chosen(two: Path, wanted: str, events: int) -> None:
    report = reports.load(two, run=wanted)
    assert report.overview.dicts()[0]["events"] == events
    assert len(report.runs) == 1
    assert not "\n".join(summarise(report)).startswith("runs")


def test_a_run_that_is_not_there_is_a_mistake_that_names_those_that_are(two: Path) -> None:
    for wanted in ("3", "0", "abcdef", ""):
        with pytest.raises(
            DFTracerError, match=r"no such run in these traces; runs: 1 \(.*\), 2 \("
        ) as error:
            reports.load(two, run=wanted or "x")
        assert digest("second")[:8] in str(error.value)


@pytest.mark.parametrize("command", ["info", "stats"])
def test_commands_give_runs_as_json(
    two: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(two), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["runs"]
    assert (first["id"], first["processes"]) == (digest("first"), 1)
    assert second["end_ns"] - second["start_ns"] == 2 * NS


@pytest.mark.parametrize("command", ["info", "stats"])
def test_commands_that_add_up_tell_of_several_runs(
    two: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(two)]) == 0
    assert "these traces are from 2 runs; --run latest or --run N selects one" in (
        capsys.readouterr().out
    )
    assert main([command, str(two), "--run", "latest"]) == 0
    out = capsys.readouterr().out
    assert "2 processes" in out
    assert "runs;" not in out


def test_a_query_tells_of_several_runs_on_stderr(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "select count(*) as n from events"
    assert main(["query", question, str(two), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"n": 7}]
    assert "dftracer: these traces are from 2 runs" in err
    assert main(["query", question, str(two), "--json", "--run", "1"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ([{"n": 3}], "")


def test_a_path_behind_a_bare_run_is_a_path(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one, *_) = sorted(two.glob("*second*"))
    assert main(["info", "--run", str(one)]) == 0
    assert "2 files, 2 processes" in capsys.readouterr().out
    assert main(["info", "--run", "latest", str(two)]) == 0
    assert "2 files, 2 processes" in capsys.readouterr().out
    assert main(["info", "--run"]) == 2
    assert "missing TRACE" in capsys.readouterr().err


def test_traces_without_an_id_are_told_apart_by_their_times(tmp_path: Path) -> None:
    run(tmp_path, "", 0, pids=(100, 101))
    run(tmp_path, "", 10 * S, pids=(102,))
    report = reports.load(tmp_path)
    assert [(row["guessed"], row["processes"]) for row in report.runs] == [(True, 2), (True, 1)]
    assert "guessed from their times, because some traces have no" in "\n".join(summarise(report))
    assert reports.load(tmp_path, run="latest").overview.dicts()[0]["processes"] == 1


def test_what_has_no_id_belongs_to_the_run_in_whose_time_it_lies(two: Path) -> None:
    run(two, "", 3601 * S, pids=(300,), reads=1)
    report = reports.load(two)
    assert [row["processes"] for row in report.runs] == [1, 3]
    assert reports.load(two, run="2").overview.dicts()[0]["processes"] == 3


def test_a_merged_file_of_several_runs_tells_of_them_and_is_not_cut(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = merge(tmp_path / "all.pfw", *sorted(two.iterdir()))
    capsys.readouterr()
    assert [row["processes"] for row in reports.load(merged).runs] == [1, 2]
    with pytest.raises(DFTracerError, match="this file contains several runs"):
        reports.load(merged, run="latest")


def test_runs_are_the_same_from_a_cluster(two: Path) -> None:
    assert reports.load(two, cluster="local:2").tables == reports.load(two).tables


def test_how_lives_become_runs() -> None:
    def shapes(*lives: Life) -> list[tuple[str, list[int]]]:
        return [(found.id, sorted(found.members)) for found in runs_of(lives)]

    assert shapes() == []
    assert shapes(Life("", None, None)) == [("", [0])]
    assert shapes(Life("b", 20, 30), Life("a", 0, 10), Life("b", 5, 6)) == [
        ("a", [1]),
        ("b", [0, 2]),
    ]
    # One that outlives the next, then a pause that is too short, then one that is long enough.
    assert shapes(
        Life("", 0, 10 * NS), Life("", 2, 3), Life("", 11 * NS, 11 * NS), Life("", 13 * NS, None)
    ) == [("", [0, 1, 2]), ("", [3])]
    assert shapes(Life("a", 5, 9), Life("", None, None), Life("", 8, 12)) == [("a", [0, 1, 2])]


def test_time_that_is_covered() -> None:
    assert covered([]) == 0
    assert covered([(5, 9), (0, 2), (6, 7), (8, 12)]) == 9


def test_begin_of_runs_is_that_of_their_start_records(two: Path) -> None:
    first, second = reports.load(two).runs.column("start_ns")
    assert first == BEGIN * 1000
    assert second - first == 3600 * NS
