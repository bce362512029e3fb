"""Programs that everybody has, against what they must have done."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from support import intercept

OPENS = ("open", "open64", "openat", "openat64", "opendir")


def test_dd_shows_each_of_its_reads_and_writes(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with (work / "a").open("wb") as file:
        file.truncate(20000 * 4096)
    words = ("if=a", "of=b", "bs=4k", "count=20000", "status=none")
    run = intercept.traced("dd", *words, cwd=work)
    assert (work / "b").stat().st_size == 20000 * 4096
    process = run.one
    counts = Counter((event.name, event.path) for event in process.events)
    assert counts["read", f"{work}/a"] == 20000
    assert counts["write", f"{work}/b"] == 20000
    for event in process.named("read", "write"):
        assert event.args == {"count": 4096, "ret": 4096}
    assert counts["close", f"{work}/a"] <= 2
    opened = [event.path for event in process.events if event.name in OPENS]
    assert opened == [f"{work}/a", f"{work}/b"]
    assert process.end["read_seen"] == process.end["write_seen"] == 20000 * 4096
    (work / "b").unlink()


def opens(lines: list[tuple[str, str]], below: str) -> Counter[str]:
    """What strace saw being opened below a directory, by the names that the kernel has."""
    found = (rest.rsplit("<", 1)[1][:-1] for _, rest in lines if rest.endswith(">"))
    return Counter(path for path in found if path == below or path.startswith(f"{below}/"))


def test_find_shows_every_directory_and_every_entry(tmp_path: Path) -> None:
    if shutil.which("find") is None:
        pytest.skip("find is not installed")
    below = "/usr/share"
    directories = set()
    entries = 0
    for path, folders, files in os.walk(below):
        directories.add(path)
        entries += len(folders) + len(files)
    words = ("find", below, "-name", "no such file")
    env = {"DFTRACER_DATA_DIR": below}
    run = intercept.traced(*words, cwd=tmp_path, out=tmp_path / "out", env=env)
    process = run.one
    opened = Counter(
        event.path
        for event in process.events
        if event.name in OPENS and event.args.get("ret", 0) >= 0 and event.path in directories
    )
    assert set(opened) == directories
    # Every entry, `.` and `..`, and the end of each directory.
    reads = process.named("readdir", "readdir64")
    assert {event.path for event in reads} == directories
    assert len(reads) == entries + 3 * len(directories)
    # Some directories are opened a second time, from below: as often as the kernel says.
    lines = intercept.strace(
        *words, cwd=tmp_path, calls=("openat", "open"), log=tmp_path / "strace"
    )
    assert opened == opens(lines, below)


def test_cat_and_cp_move_every_byte(tmp_path: Path) -> None:
    """Neither reads and writes as one would think; whatever they use, it is seen."""
    work = tmp_path / "work"
    work.mkdir()
    size = 3_000_001
    (work / "a").write_bytes(os.urandom(size))
    ways = ("read", "copy_file_range", "splice", "sendfile", "sendfile64")
    for program, words in (("cat", ["a"]), ("cp", ["a", "b"])):
        out = tmp_path / program
        run = intercept.traced(program, *words, cwd=work, out=out, env={"LC_ALL": "C"})
        process = run.one
        seen = sum(
            max(event.args["ret"], 0) for event in process.named(*ways) if event.path == f"{work}/a"
        )
        cloned = [event for event in process.named("ioctl") if event.args["ret"] == 0]
        assert seen == size or cloned, program
        assert process.end["read_seen"] >= seen
