"""Links, pipes and directories at names that we use: never followed, waited for or changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import faults, traces
from support.faults import AT_MOST_ONE, ONE_LINE, assert_exactly, left_in, program, recover, steps
from support.limits import HANG
from support.run import environment

KINDS = ["link", "dangling", "fifo", "directory", "file", "socket"]
NAMES = {"trace": "t.pfw.gz", "plain": "t.pfw", "spool": ".t.pfw.spool", "part": ".t.pfw.gz.part"}


class Planted:
    def __init__(self, tmp_path: Path, name: str, kind: str) -> None:
        self.directory = tmp_path / "d"
        self.directory.mkdir()
        self.path = self.directory / name
        self.victim = tmp_path / "victim"
        self.kind = kind
        if kind == "link":
            self.victim.write_text("the victim's own")
            self.path.symlink_to(self.victim)
        elif kind == "dangling":
            self.path.symlink_to(self.victim)
        elif kind == "fifo":
            os.mkfifo(self.path)
        elif kind == "directory":
            self.path.mkdir()
            (self.path / "inside").write_text("mine")
        elif kind == "socket":
            os.mknod(self.path, 0o140600)
        else:
            self.path.write_text("not ours: some file of the user's\n" * 300)
        self.before = self.state()

    def state(self) -> tuple[object, ...]:
        info = self.path.lstat()
        content: object = None
        if self.kind == "file":
            content = self.path.read_bytes()
        elif self.kind == "directory":
            content = sorted((entry.name, entry.read_text()) for entry in self.path.iterdir())
        elif self.kind in ("link", "dangling"):
            target = self.victim.read_text() if self.victim.exists() else None
            content = (os.readlink(self.path), target)
        return (info.st_ino, info.st_mode, info.st_nlink, content)

    def remove(self) -> None:
        if self.kind == "directory":
            (self.path / "inside").unlink()
            self.path.rmdir()
        else:
            self.path.unlink()


# A plain file of the last name is taken for our own left-over.
PLACES = [
    (name, kind)
    for name in ("trace", "spool", "part")
    for kind in KINDS
    if (name, kind) != ("part", "file")
]


@pytest.mark.parametrize(("name", "kind"), PLACES)
@pytest.mark.parametrize("end", ["fini", "_exit=0"])
def test_planted(tmp_path: Path, name: str, kind: str, end: str) -> None:
    planted = Planted(tmp_path, NAMES[name], kind)
    child = ("fork{", "who=1", "log=5", "_exit=0", "}")
    done = steps("init=d/t.pfw", "log=300", *child, end, cwd=tmp_path, stderr=AT_MOST_ONE)
    assert done.stdout == "init 0\nchild 0\n"
    assert planted.state() == planted.before
    recover(planted.directory, expect=None, stderr=None)
    assert planted.state() == planted.before
    # What could not be written for that thing in the way can be once it is gone.
    planted.remove()
    recover(planted.directory)
    assert_exactly(left_in(planted.directory), {0: 300, 1: 5})
    faults.nothing_hidden(planted.directory)


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory", "socket"])
def test_a_thing_at_the_passing_name_does_not_block_the_trace(tmp_path: Path, kind: str) -> None:
    planted = Planted(tmp_path, NAMES["part"], kind)
    done = steps("init=d/t.pfw", "log=300", "fini", cwd=tmp_path)
    assert done.stdout == "init 0\n"
    assert_exactly(left_in(planted.directory), {0: 300})
    assert planted.state() == planted.before


@pytest.mark.parametrize("kind", KINDS)
def test_planted_without_compression(tmp_path: Path, kind: str) -> None:
    planted = Planted(tmp_path, NAMES["plain"], kind)
    env = {"DFTRACER_TRACE_COMPRESSION": "0"}
    steps("init=d/t.pfw", "log=300", "fini", cwd=tmp_path, env=env, stderr=AT_MOST_ONE)
    assert planted.state() == planted.before
    planted.remove()
    assert_exactly(left_in(planted.directory), {0: 300})


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_trace_replaced_during_the_run(tmp_path: Path, kind: str) -> None:
    """By something else, between two blocks."""
    with subprocess.Popen(
        [
            program("steps"),
            "init=d/t.pfw",
            "log=300",
            "flush",
            "say=ready",
            "wait",
            "log=200",
            "fini",
        ],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"init 0\n", b"ready\n"]
        (tmp_path / "d").rename(tmp_path / "moved")
        planted = Planted(tmp_path, "t.pfw.gz", kind)
        for entry in traces.spools(tmp_path / "moved"):
            entry.rename(tmp_path / "d" / entry.name)
        _, errors = process.communicate(b"x", timeout=HANG)
        assert process.returncode == 0
    assert ONE_LINE.fullmatch(errors.decode())
    assert planted.state() == planted.before
    planted.remove()
    recover(planted.directory, expect=None, stderr=None)
    assert left_in(planted.directory).of(0) == list(range(300, 500))


def test_links_in_the_way_to_the_directory_are_fine(tmp_path: Path) -> None:
    """A directory that is a link is the user's own choice."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    steps("init=link/t.pfw", "log=50", "_exit=0", cwd=tmp_path)
    recover(tmp_path / "link")
    assert_exactly(left_in(tmp_path / "real"), {0: 50})


def test_planted_spools_are_not_followed_by_recover(tmp_path: Path) -> None:
    steps("init=other/t.pfw", "log=50", "_exit=0", cwd=tmp_path)
    (spool,) = traces.spools(tmp_path / "other")
    before = spool.read_bytes()
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / ".a.pfw.spool").symlink_to(spool)
    (directory / ".b.pfw.spool").symlink_to("nowhere")
    os.mkfifo(directory / ".c.pfw.spool")
    (directory / ".d.pfw.spool").mkdir()
    recover(directory)
    assert spool.read_bytes() == before
    assert len(list(directory.iterdir())) == 4
