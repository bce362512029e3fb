"""Which file a descriptor means: opened, copied, passed on, inherited over fork and exec."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import intercept

WRITES = ("write", "fwrite", "fputs", "printf", "putc", "putchar")
ALL = {"DFTRACER_DATA_DIR": "all"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for name in ("in", "three", "four", "five"):
        (work / name).write_bytes(b"0123456\n" * 8)
    return work


def only(processes: list[intercept.Process]) -> intercept.Process:
    assert len(processes) == 1, [process.command for process in processes]
    return processes[0]


@intercept.IN_EACH_MODE
def test_descriptors_of_one_process(place: Path, mode: str) -> None:
    program = intercept.program("cov_fds", mode, *intercept.ODD)
    run = intercept.traced(program, place, mode=mode, cwd=place, env=ALL)
    intercept.compare(run.one, place)


@intercept.IN_EACH_MODE
def test_descriptors_given_by_the_shell(place: Path, mode: str) -> None:
    program = intercept.program("cov_given", mode, *intercept.ODD)
    words = ("r0", "r3", "w4", "r5", "w5", "r3", "s0")
    script = 'exec "$0" "$@" <in 3<three 4>>four 5<>five'
    run = intercept.traced(
        "sh", "-c", script, program, place, *words, mode=mode, cwd=place, env=ALL
    )
    process = only(run.of(program.name))
    intercept.compare(process, place)
    assert [(event.name, event.path) for event in process.below(place)[:5]] == [
        ("read", f"{place}/in"),
        ("read", f"{place}/three"),
        ("write", f"{place}/four"),
        ("read", f"{place}/five"),
        ("write", f"{place}/five"),
    ]


@intercept.IN_EACH_MODE
def test_descriptors_that_are_not_there(place: Path, mode: str) -> None:
    """Closed standard streams: the numbers go to files, and are those files."""
    program = intercept.program("cov_given", mode, *intercept.ODD)
    script = 'exec "$0" "$@" <&- >&-'
    words = ("r0", "w1", "r9", "oin", "othree", "r0", "r1")
    run = intercept.traced(
        "sh", "-c", script, program, place, *words, mode=mode, cwd=place, env=ALL
    )
    process = only(run.of(program.name))
    intercept.compare(process, place)
    paths = [event.path for event in process.events if event.name in ("read", "write")]
    assert paths[:5] == [None, None, None, f"{place}/in", f"{place}/three"]


@intercept.IN_EACH_MODE
def test_descriptors_over_exec(place: Path, mode: str) -> None:
    program = intercept.program("cov_given", mode, *intercept.ODD)
    words = ("oin", "othree", "exec", "r3", "r4", "exec", "r4", "w3")
    run = intercept.traced(program, place, *words, mode=mode, cwd=place, env=ALL)
    images = {tuple(image.command[2:]): image for image in run.images}
    first, second, third = (images[words[at:]] for at in (0, 3, 6))
    assert [event.path for event in first.named("open")] == [f"{place}/in", f"{place}/three"]
    assert [event.path for event in second.named("read")] == [f"{place}/in", f"{place}/three"]
    intercept.compare(third, place)
    assert first.pid == second.pid == third.pid


@intercept.IN_EACH_MODE
def test_descriptors_over_fork(place: Path, mode: str) -> None:
    program = intercept.program("cov_given", mode, *intercept.ODD)
    words = ("oin", "fork", "r3", "othree", "r4", "fork", "r3", "r4")
    run = intercept.traced(program, place, *words, mode=mode, cwd=place, env=ALL)
    assert len(run.processes) == 3
    by_parent = {process.ppid: process for process in run.processes}
    parent = only([one for one in run.processes if one.ppid not in {p.pid for p in run.processes}])
    child = by_parent[parent.pid]
    grandchild = by_parent[child.pid]
    assert [event.path for event in parent.named("open", "read")] == [f"{place}/in"]
    assert [(event.name, event.path) for event in child.named("open", "read")] == [
        ("read", f"{place}/in"),
        ("open", f"{place}/three"),
        ("read", f"{place}/three"),
    ]
    intercept.compare(grandchild, place)


def moved(process: intercept.Process, path: Path, *names: str) -> int:
    """Bytes that calls on a file moved."""
    return sum(
        max(event.args.get("ret", 0), 0)
        for event in process.named(*names)
        if event.path == str(path)
    )


def test_redirections_of_bash(place: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = """
        exec 3<in 4>out 5>>four
        read -r line <&3
        echo "$line" >&4
        cat <&3 >&4
        exec 3<&- 4>&-
        echo end >&5
        cat <<<"here" >&5
    """
    run = intercept.traced("bash", "-c", script, cwd=place)
    assert (place / "out").read_bytes() == (place / "in").read_bytes()
    shells = run.of("bash")
    shell = next(one for one in shells if one.ppid not in {process.pid for process in shells})
    assert [event for event in shell.events if event.path == f"{place}/in" and "open" in event.name]
    # It writes the way it likes; what its standard output was at that moment is the point.
    for name in ("out", "four"):
        assert [one for one in shell.events if one.path == f"{place}/{name}" and one.name in WRITES]
    # The first cat reads what is left and writes it; in which way is its own business.
    ways = ("read", "copy_file_range", "splice", "sendfile")
    cats = [moved(process, place / "in", *ways) for process in run.of("cat")]
    assert sorted(cats) == [0, 7 * 8]


def test_a_stream_given_by_the_parent(place: Path) -> None:
    """popen and a pipe between two programs: both ends have the same name."""
    program = intercept.program("cov_given", intercept.PRELOAD, *intercept.ODD)
    script = '"$0" "$1" w1 | "$0" "$1" r0 w4 4>>four'
    run = intercept.traced("sh", "-c", script, program, place, cwd=place, env=ALL)
    writer, reader = (
        only([one for one in run.of(program.name) if one.command[2:] == words])
        for words in (["w1"], ["r0", "w4"])
    )
    way = writer.named("write")[0].path
    assert way is not None
    assert way.startswith("pipe:[")
    assert reader.named("read")[0].path == way
    assert reader.named("read")[0].args == {"count": 10, "ret": 10}


@intercept.IN_EACH_MODE
def test_files_of_threads(place: Path, mode: str) -> None:
    """Each thread's calls are its own, on its own file and on the one that all share."""
    program = intercept.program("cov_threads", mode)
    process = intercept.traced(program, mode=mode, cwd=place).one
    owners = {
        number: {event.tid for event in process.events if event.path == f"{place}/own{number}"}
        for number in range(8)
    }
    assert all(len(owner) == 1 for owner in owners.values())
    assert len(set.union(*owners.values())) == 8
    for number, (tid,) in owners.items():
        mine = [event for event in process.events if event.tid == tid]
        times = 100 * (number + 1)
        own = [event.args for event in mine if event.path == f"{place}/own{number}"]
        assert len(own) == times + 3
        assert own[2:-1] == [
            {"count": number + 1, "offset": at % 32, "ret": number + 1} for at in range(times)
        ]
        shared = [event.args for event in mine if event.path == f"{place}/shared"]
        assert shared == [{"count": 32, "offset": number, "ret": 32}] * times
