"""Names: hard to write down, too long, wrong, of things that have none, and very many."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import intercept
from support.run import run as run_bare

ALL = {"DFTRACER_DATA_DIR": "all"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@intercept.IN_EACH_MODE
def test_every_byte_of_a_name(place: Path, mode: str) -> None:
    program = intercept.program("cov_paths", mode, *intercept.ODD)
    run = intercept.traced(program, place, mode=mode, cwd=place, env=ALL)
    intercept.compare(run.one, place)


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("directories", ["all", "{place}", "/none"])
def test_bad_pointers_are_refused_and_not_read(place: Path, mode: str, directories: str) -> None:
    program = intercept.program("cov_paths", mode, *intercept.ODD)
    run_bare(program, place, "wrong", cwd=place, enable=False)
    env = {"DFTRACER_DATA_DIR": directories.format(place=place)}
    run = intercept.traced(program, place, "wrong", mode=mode, cwd=place, env=env)
    if directories == "all":
        # They did happen, and failed.
        counts = run.one.counts()
        assert counts["stat"] >= 5
        assert counts["open"] >= 6
        for event in run.one.named("stat", "open", "rename", "symlink", "unlink", "truncate"):
            assert event.args["ret"] == -1
            assert event.args["errno"] > 0


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("where", ["deep", "gone"])
def test_a_directory_without_a_path(place: Path, mode: str, where: str) -> None:
    """Calls are recorded; what they are about is never taken for a file that it is not."""
    program = intercept.program("cov_places", mode)
    run = intercept.traced(program, where, mode=mode, cwd=place, env=ALL)
    events = run.one.events
    last = max(at for at, event in enumerate(events) if event.name in ("chdir", "rmdir"))
    work = [event for event in events[last + 1 :] if event.name != "_exit"]
    created = 1 if where == "deep" else 0
    assert [event.name for event in work] == [
        "open",
        *["write", "close"] * created,
        *("stat", "access", "open", "openat"),
        *["close"] * (created + 1),
    ]
    for event in work:
        path = event.path
        # Unknown, or recognisably below the place.
        assert path is None or not path.startswith("/") or path.startswith(f"{place}/"), path


@intercept.IN_EACH_MODE
def test_seventy_thousand_names(place: Path, mode: str) -> None:
    program = intercept.program("cov_places", mode)
    run = intercept.traced(program, "names", mode=mode, cwd=place)
    paths = [event.path for event in run.one.named("access")]
    assert paths == [f"{place}/names/{number}" for number in range(70000)]
