"""Where a trace goes, and whose files are left alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support import traces
from support.api_driver import Command, Driver, play
from support.run import run

INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)


def span(name: str) -> list[Command]:
    return [("begin", 0, name, "app"), ("end", 0)]


def everything(directory: Path) -> list[str]:
    """All files below, hidden ones too."""
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("d/t.pfw", "d/t"),
        ("d/t.pfw.gz", "d/t"),
        ("d/t", "d/t"),
        ("./d/t.pfw", "d/t"),
        ("d//t.pfw", "d/t"),
        ("t.pfw", "t"),
        ("missing/a/b/c/t.pfw", "missing/a/b/c/t"),
        ("d/../t.pfw", "t"),
        ("d/trace-0-of-24.pfw", "d/trace-0-of-24"),
        ("d/run.1.json", "d/run.1.json"),
        ("d/with blank é.pfw", "d/with blank é"),
        ("d/.pfw", "d/trace"),
        ("d/", "d/trace"),
        ("d/.hidden.pfw", "d/_.hidden"),
    ],
)
@pytest.mark.parametrize("compression", ["0", "1"])
def test_the_name_that_the_program_gives(
    tmp_path: Path, given: str, name: str, compression: str
) -> None:
    (tmp_path / "d").mkdir()
    play(
        ("init", given, None, None),
        *span("s"),
        FINI,
        cwd=tmp_path,
        env={"DFTRACER_TRACE_COMPRESSION": compression},
    )
    assert everything(tmp_path) == [name + (".pfw.gz" if compression == "1" else ".pfw")]
    traces.read(tmp_path / everything(tmp_path)[0])


def test_an_absolute_name(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    play(("init", tmp_path / "out" / "t.pfw", None, None), FINI, cwd=work)
    assert everything(tmp_path) == ["out/t.pfw.gz"]


def test_a_relative_name_is_of_the_directory_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    play(INIT, *span("a"), ("chdir", "other"), *span("b"), ("flush",), *span("c"), cwd=tmp_path)
    assert everything(tmp_path) == ["t.pfw.gz"]
    assert len(traces.read_one(tmp_path).recorded) == 3


@pytest.mark.parametrize("given", [None, ""])
def test_the_prefix_of_the_environment(tmp_path: Path, given: str | None) -> None:
    """A prefix is shared by all that run with it, so each process gets a name of its own."""
    env = {"DFTRACER_LOG_FILE": "d/trace"}
    for _ in range(2):
        play(("init", given, None, None), *span("s"), cwd=tmp_path, env=env)
    names = everything(tmp_path)
    assert len(names) == 2
    assert all(re.fullmatch(r"d/trace-[0-9a-f-]+\.pfw\.gz", name) for name in names)
    assert [len(trace.recorded) for trace in traces.read_directory(tmp_path / "d")] == [1, 1]


def test_a_whole_name_in_the_environment_is_taken_as_it_is(tmp_path: Path) -> None:
    env = {"DFTRACER_LOG_FILE": "d/mine.pfw"}
    play(("init", None, None, None), *span("s"), cwd=tmp_path, env=env)
    assert everything(tmp_path) == ["d/mine.pfw.gz"]


def test_the_default_name(tmp_path: Path) -> None:
    play(("init", None, None, None), cwd=tmp_path)
    (name,) = everything(tmp_path)
    assert re.fullmatch(r"trace-[0-9a-f-]+\.pfw\.gz", name)


def test_the_argument_wins_over_the_environment(tmp_path: Path) -> None:
    play(INIT, cwd=tmp_path, env={"DFTRACER_LOG_FILE": "other"})
    assert everything(tmp_path) == ["t.pfw.gz"]


def test_a_second_run_beside_a_living_one_leaves_its_file_alone(tmp_path: Path) -> None:
    with Driver(cwd=tmp_path) as first:
        first.tell(INIT, *span("first"), ("flush",))
        before = (tmp_path / "t.pfw.gz").read_bytes()
        play(INIT, *span("second"), FINI, cwd=tmp_path)
        assert (tmp_path / "t.pfw.gz").read_bytes() == before
        first.tell(*span("first"), FINI)
        first.finish()
    own, exact = traces.read_directory(tmp_path)
    assert exact.path.name == "t.pfw.gz"
    assert [event["name"] for event in exact.recorded] == ["first", "first"]
    assert [event["name"] for event in own.recorded] == ["second"]
    assert own.one("start")["args"]["run"] != exact.one("start")["args"]["run"]
    assert traces.spools(tmp_path) == []


def test_a_second_run_before_the_first_has_written(tmp_path: Path) -> None:
    """The living one has only its spool yet; the name is its own all the same."""
    with Driver(cwd=tmp_path) as first:
        first.tell(INIT, *span("first"))
        play(INIT, *span("second"), FINI, cwd=tmp_path)
        first.tell(FINI)
        first.finish()
    own, exact = traces.read_directory(tmp_path)
    assert [event["name"] for event in exact.recorded] == ["first"]
    assert [event["name"] for event in own.recorded] == ["second"]


def test_a_finished_run_is_replaced_with_all_its_files(tmp_path: Path) -> None:
    play(INIT, *span("old"), ("fork", "old child"), ("fork", "old child"), FINI, cwd=tmp_path)
    assert len(everything(tmp_path)) == 3
    (tmp_path / "t-other.pfw.gz").write_bytes(b"not of that run")
    play(INIT, *span("new"), FINI, cwd=tmp_path)
    assert everything(tmp_path) == ["t-other.pfw.gz", "t.pfw.gz"]
    trace = traces.read(tmp_path / "t.pfw.gz")
    assert [event["name"] for event in trace.recorded] == ["new"]


def test_a_finished_run_is_replaced_when_the_compression_changes(tmp_path: Path) -> None:
    for compression in ("1", "0", "1"):
        play(INIT, *span("s"), cwd=tmp_path, env={"DFTRACER_TRACE_COMPRESSION": compression})
        assert len(everything(tmp_path)) == 1
    assert everything(tmp_path) == ["t.pfw.gz"]


def test_a_run_that_died_is_replaced_too(tmp_path: Path) -> None:
    play(INIT, *span("dead"), ("kill",), expect=-9, cwd=tmp_path)
    play(INIT, *span("new"), FINI, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert [event["name"] for event in trace.recorded] == ["new"]


FOREIGN = {
    "text": b"these are my notes, not a trace\n",
    "json": b'{"name": "a document of somebody"}\n',
    "list": b"[1, 2, 3]\n",
    "pretty": b"[\n  1,\n  2\n]\n",
    "gzip": bytes.fromhex("1f8b08000000000000034b4c4a06000000ffff"),
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("what", sorted(FOREIGN))
def test_a_foreign_file_of_that_name_is_left_alone(tmp_path: Path, what: str) -> None:
    (tmp_path / "t.pfw.gz").write_bytes(FOREIGN[what])
    result = play(INIT, *span("s"), FINI, cwd=tmp_path, stderr=None)
    assert (tmp_path / "t.pfw.gz").read_bytes() == FOREIGN[what]
    assert re.fullmatch(r"dftracer: \S*/t\.pfw\.gz is not a trace.*\n", result.stderr)
    (other,) = [path for path in traces.files(tmp_path) if path.name != "t.pfw.gz"]
    assert len(traces.read(other).recorded) == 1


@pytest.mark.parametrize("kind", ["directory", "symlink", "dangling", "fifo"])
def test_what_is_no_file_at_that_name_is_left_alone(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "t.pfw.gz"
    elsewhere = tmp_path / "elsewhere"
    if kind == "directory":
        target.mkdir()
    elif kind == "fifo":
        os.mkfifo(target)
    else:
        target.symlink_to(elsewhere)
        if kind == "symlink":
            elsewhere.write_bytes(b"precious")
    work = tmp_path
    play(INIT, *span("s"), FINI, cwd=work, stderr=re.compile("(dftracer: .*\n)?"))
    if kind == "symlink":
        assert elsewhere.read_bytes() == b"precious"
    elif kind == "dangling":
        assert not elsewhere.exists()
    (other,) = [path for path in traces.files(tmp_path) if path != target]
    assert len(traces.read(other).recorded) == 1


def test_an_exec_of_itself_goes_on_in_the_same_file(tmp_path: Path) -> None:
    again: list[Command] = [INIT, ("spans", 300, "s"), ("exec",)]
    play(*again * 4, INIT, ("spans", 300, "s"), FINI, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    # Ids are unique over all images: the reader has checked.
    assert [event["args"]["i"] for event in trace.named("s")] == list(range(300)) * 5
    assert len(trace.named("start")) == 5
    for key in ("run", "proc"):
        assert len({start["args"][key] for start in trace.named("start")}) == 1
    assert trace.lines.count(b"[") == 0


def test_an_exec_after_finalize(tmp_path: Path) -> None:
    play(INIT, ("spans", 3, "s"), FINI, ("exec",), INIT, ("spans", 3, "s"), FINI, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert len(trace.named("s")) == 6


def test_processes_of_one_run_find_each_other(tmp_path: Path) -> None:
    env = {"DFTRACER_RUN_ID": "0123456789abcdef"}
    for name in ("a", "b"):
        play(INIT, *span(name), FINI, cwd=tmp_path, env=env)
    found = traces.read_directory(tmp_path)
    assert {trace.one("start")["args"]["run"] for trace in found} == {"0123456789abcdef"}
    # The second one joined the run, so it did not replace the first.
    assert sorted(event["name"] for trace in found for event in trace.recorded) == ["a", "b"]


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    for name in ("n" * 300 + ".pfw", "d/" * 3000 + "t.pfw"):
        result = play(("init", name, None, None), *span("s"), cwd=tmp_path, stderr=None)
        assert result.stdout == "-1\n"
        assert re.fullmatch(r"dftracer: cannot record into .*untraced\n", result.stderr, re.DOTALL)
    assert everything(tmp_path) == []


def test_a_long_name_that_fits(tmp_path: Path) -> None:
    """A child's name is longer still, and must fit as well."""
    name = "n" * 180
    play(("init", name, None, None), *span("s"), ("fork", "child"), FINI, cwd=tmp_path)
    found = traces.read_directory(tmp_path)
    assert sorted(event["name"] for trace in found for event in trace.recorded) == ["child", "s"]


def test_nothing_else_is_made(tmp_path: Path) -> None:
    """Not in the working directory, not in the home, not in /tmp."""
    home = tmp_path / "home"
    scratch = tmp_path / "scratch"
    work = tmp_path / "work"
    for directory in (home, scratch, work):
        directory.mkdir()
    play(
        ("init", tmp_path / "out" / "t.pfw", None, None),
        *span("s"),
        ("fork", "child"),
        cwd=work,
        env={"HOME": str(home), "TMPDIR": str(scratch)},
    )
    assert all(name.startswith("out/t") for name in everything(tmp_path))
    assert len(everything(tmp_path)) == 2


def test_a_shell_sees_only_the_trace(tmp_path: Path) -> None:
    play(INIT, *span("s"), cwd=tmp_path)
    assert run("ls", "-A", tmp_path, enable=False).stdout == "t.pfw.gz\n"
