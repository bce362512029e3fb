"""`dftracer report` as a user runs it: the page, and the comparison that CI relies on."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.command import dftracer
from support.synthetic_program import Program, training

from dftracer.commands.report import page_name


def record(directory: Path, *, fetch: int = 1000, seed: int = 1, noise: float = 0.1) -> Path:
    """A training of 60 steps of about 10 ms, which vary; times in microseconds."""
    chance = random.Random(seed)
    program = Program()
    for step in range(60):
        told = {"epoch": step // 20, "step": step}
        program.span("dataloader", "fetch", int(fetch * chance.lognormvariate(0, noise)), **told)
        program.read(f"/data/{step % 7}", 4096, 20)
        program.span("compute", "forward", int(9000 * chance.lognormvariate(0, noise)), **told)
        program.now += 50
    directory.mkdir()
    program.write(directory)
    return directory


def test_the_page_comes_beside_the_summary(tmp_path: Path) -> None:
    record(tmp_path / "run")
    done = dftracer("report", "run", cwd=tmp_path)
    assert "60 steps" in done.stdout
    made = (tmp_path / "run-report.html").read_text("utf-8")
    assert f"page      run-report.html, {len(made.encode()) / 1e6:.3g} MB" in done.stdout
    assert 'data-figure="steps"' in made
    assert "train.py" in made
    dftracer("report", "run", "-o", "there.html", "--json", cwd=tmp_path)
    assert (tmp_path / "there.html").stat().st_size == len(made.encode())


def test_no_page_where_none_is_wanted(tmp_path: Path) -> None:
    record(tmp_path / "run")
    dftracer("report", "run", "--no-page", cwd=tmp_path)
    tables = json.loads(dftracer("report", "run", "--json", cwd=tmp_path).stdout)
    assert len(tables["steps"]) == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    record(tmp_path / "run")
    (tmp_path / "run-report.html").mkdir()
    done = dftracer("report", "run", cwd=tmp_path)
    assert done.stderr == "dftracer: cannot write the page run-report.html: Is a directory\n"
    done = dftracer("report", "run", "-o", "no/such/place.html", cwd=tmp_path, expect=1)
    assert done.stderr == "dftracer: no/such/place.html: No such file or directory\n"


@pytest.mark.parametrize(
    ("trace", "page"),
    [
        ("traces/", "traces-report.html"),
        ("a/b.pfw.gz", "b-report.html"),
        ("x.trace.json", "x-report.html"),
        ("/", "trace-report.html"),
    ],
)
def test_the_name_of_the_page(trace: str, page: str) -> None:
    assert page_name(trace) == page


def test_slower_than_allowed_ends_with_1(tmp_path: Path) -> None:
    record(tmp_path / "old")
    record(tmp_path / "new", fetch=3000, seed=2)
    words = ("report", "new", "--against", "old", "--fail-if-slower")
    done = dftracer(*words, "5%", cwd=tmp_path, expect=1)
    assert done.stdout.startswith("Slower: step time +")
    assert "step: waiting for data" in done.stdout
    made = (tmp_path / "new-report.html").read_text("utf-8")
    assert 'data-figure="step_distribution"' in made
    assert "Slower: step time +" in made
    dftracer(*words, "50%", "--no-page", cwd=tmp_path)
    dftracer("report", "new", "--against", "old", "--no-page", cwd=tmp_path)
    done = dftracer(*words, "5%", "--json", cwd=tmp_path, expect=1)
    changes = {row["measure"]: row for row in json.loads(done.stdout)["changes"]}
    assert changes["step time"]["verdict"] == "slower"


def test_noise_does_not_end_with_1(tmp_path: Path) -> None:
    record(tmp_path / "old", noise=0.5)
    record(tmp_path / "new", noise=0.5, seed=2)
    words = ("report", "new", "--against", "old", "--fail-if-slower", "0%", "--no-page")
    done = dftracer(*words, cwd=tmp_path)
    assert done.stdout.startswith("No difference beyond noise: step time")


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    training(steps=3, epochs=1).write(tmp_path)
    for words, said in (
        (("--fail-if-slower", "5%"), "--fail-if-slower needs a baseline"),
        (
            ("--against", ".", "--fail-if-slower", "fast"),
            "invalid percentage 'fast' (for example 5%)",
        ),
        (("--no-page", "-o", "x.html"), "-o and --no-page cannot be combined"),
    ):
        done = dftracer("report", ".", *words, cwd=tmp_path, expect=2)
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert (
        "nowhere"
        in dftracer("report", ".", "--against", "nowhere", cwd=tmp_path, expect=None).stderr
    )
