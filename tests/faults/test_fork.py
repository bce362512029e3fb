"""Fork in all its forms: no hang, nothing twice, nothing lost, no file without events."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import faults, traces
from support.faults import assert_exactly, left_in, program, recover, steps
from support.run import run


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("how", "forks"), [("fork", 1000), ("clone", 300)])
def test_fork_while_eight_threads_record(tmp_path: Path, how: str, forks: int) -> None:
    directory = tmp_path / "d"
    counted = tmp_path / "counters"
    done = run(program("forks"), directory / "t.pfw", counted, 8, forks, how)
    assert done.stdout == "bad 0\n"
    # The parent's finalize has finished for the children that left by _exit.
    faults.nothing_hidden(directory)
    left = left_in(directory)
    wanted = dict(enumerate(faults.counters(counted)))
    wanted.update({1000 + n: 3 for n in range(forks)})
    assert_exactly(left, wanted)
    # A file for each process, and each file of one process.
    assert len(left.files) == forks + 1
    assert len(left.by_process) == forks + 1
    assert len({pid for _, pid in left.by_process}) == forks + 1


@pytest.mark.parametrize("kind", ["fork{", "clone{"])
@pytest.mark.parametrize("leave", ["_exit=0", "exit=0", "raise=KILL", "fini"])
def test_child_and_parent(tmp_path: Path, kind: str, leave: str) -> None:
    done = steps(
        *(
            "init=d/t.pfw",
            "log=10",
            kind,
            "who=1",
            "log=2000",
            leave,
            "}",
            "who=2",
            "log=10",
            "fini",
        ),
        cwd=tmp_path,
    )
    assert done.stdout.splitlines() == ["init 0", f"child {9 if 'KILL' in leave else 0}"]
    # The parent's finalize has finished for the child that was killed.
    faults.nothing_hidden(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert_exactly(left, {0: 10, 1: 2000, 2: 10})
    assert len(left.files) == 2
    family = {
        start["args"]["run"]
        for path in left.files
        for start in traces.read(path, open_parents=True).named("start")
    }
    assert len(family) == 1


@pytest.mark.parametrize("kind", ["fork{", "clone{"])
@pytest.mark.parametrize(
    "does", [["_exit=0"], ["exit=0"], ["raise=KILL"], ["flush", "_exit=0"], ["exec=true"]]
)
def test_child_that_records_nothing_leaves_nothing(
    tmp_path: Path, kind: str, does: list[str]
) -> None:
    steps("init=d/t.pfw", "log=10", *([kind, *does, "}"] * 5), "log=10", "exit=0", cwd=tmp_path)
    faults.nothing_hidden(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert_exactly(left, {0: 20})
    assert [path.name for path in left.files] == ["t.pfw.gz"]


@pytest.mark.parametrize("leave", ["_exit=0", "exit=0"])
def test_child_that_finalizes_without_events(tmp_path: Path, leave: str) -> None:
    steps(
        *("init=d/t.pfw", "log=10", "fork{", "fini", "fini", leave, "}"),
        *("log=2000", "flush", "fork{", "fini", leave, "}", "log=10", "fini"),
        cwd=tmp_path,
    )
    faults.nothing_hidden(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert_exactly(left, {0: 2020})
    assert len(left.files) == 1


def test_child_that_finalizes_and_starts_again(tmp_path: Path) -> None:
    steps(
        *("init=d/t.pfw", "log=10", "fork{", "who=1", "log=5", "fini", "log=5"),
        *("init=d/t.pfw", "who=2", "log=5", "fini", "exit=0", "}", "log=10", "fini"),
        cwd=tmp_path,
    )
    recover(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 20, 1: 5, 2: 5})


@pytest.mark.parametrize("leave", ["_exit=0", "exit=0"])
def test_five_generations(tmp_path: Path, leave: str) -> None:
    words = ["init=d/t.pfw"]
    for depth in range(6):
        words += [f"who={depth}", "log=3", *(["fork{"] if depth < 5 else [])]
    for depth in reversed(range(5)):
        words += [leave, "}", f"who={10 + depth}", "log=2"]
    steps(*words, "fini", cwd=tmp_path)
    faults.nothing_hidden(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert_exactly(left, {**dict.fromkeys(range(6), 3), **dict.fromkeys(range(10, 15), 2)})
    assert len(left.files) == 6


def test_vfork_and_exec(tmp_path: Path) -> None:
    again = f"{program('steps')} init=d/t.pfw who=1 log=50 _exit=3"
    done = steps(
        *("init=d/t.pfw", "log=2000", "vfork=exit 5", "log=2000", f"vfork={again}", "log=10"),
        *("vfork=kill -9 $$", "log=10"),
        cwd=tmp_path,
    )
    said = ["init 0", f"child {5 << 8}", "init 0", f"child {3 << 8}", "child 9"]
    assert done.stdout.splitlines() == said
    recover(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 4020, 1: 50})


def test_spawned_shell(tmp_path: Path) -> None:
    again = f"{program('steps')} init=d/t.pfw who=1 log=50"
    words = ("init=d/t.pfw", "log=2000", "system=exit 5", f"system={again}", "log=2000", "fini")
    done = steps(*words, cwd=tmp_path)
    assert done.stdout.split("\n") == ["init 0", f"system {5 << 8}", "init 0", "system 0", ""]
    assert_exactly(left_in(tmp_path / "d"), {0: 4000, 1: 50})


@pytest.mark.parametrize("end", ["exit=0", "_exit=0"])
def test_child_that_outlives_its_parent(tmp_path: Path, end: str) -> None:
    """As a daemon does: the parent's end takes nothing from a child that lives on."""
    child = ("leave{", "who=1", "log=50", "sleep=200", "log=3000", end, "}")
    steps("init=d/t.pfw", "log=20", *child, *child, "fini", cwd=tmp_path)
    recover(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert len(left.files) == 3
    assert sorted(left.by_process.values()) == [20, 3050, 3050]
    assert left.of(1) == sorted(2 * list(range(3050)))
    faults.nothing_hidden(tmp_path / "d")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["fork", "return"])
def test_fork_in_a_signal_handler(tmp_path: Path, how: str) -> None:
    """In the middle of the main thread's recording; `return`: the child comes back into it."""
    done = run(program("handlers"), tmp_path / "d" / "t.pfw", how, 1000, 500)
    _, events, handled, _, children = map(int, done.stdout.split())
    assert children == 150
    recover(tmp_path / "d")
    faults.nothing_hidden(tmp_path / "d")
    parent = faults.Left()
    faults.add_file(parent, tmp_path / "d" / "t.pfw.gz")
    assert_exactly(parent, {0: events, 1: handled})
    ids = ids_of(tmp_path / "d" / "t.pfw.gz")
    left = faults.Left()
    for path in traces.files(tmp_path / "d"):
        if path.name != "t.pfw.gz":
            faults.add_file(left, path)
            # A child that comes back just before an event begins in the main thread records it
            # too, as one of its own. An event that had begun before is its parent's alone.
            own = ids_of(path)
            assert len(own) <= 1
            for number, event in own.items():
                assert ids.get(number) != event, f"{path} has its parent's event {number!r}"
    left.numbers.pop(0, None)
    assert_exactly(left, {1000 + n: 3 for n in range(children)})


def ids_of(path: Path) -> dict[bytes, bytes]:
    """The ids of the main thread's events, by their numbers."""
    text, _ = faults.text_of(path)
    return {number: event for event, _, who, number in faults.EVENT.findall(text) if who == b"0"}
