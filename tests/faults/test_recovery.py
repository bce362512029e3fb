"""Who finishes for the dead, several at once, one killed in the middle, one beside the living."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support import faults, traces
from support.faults import (
    Found,
    assert_committed,
    assert_exactly,
    command,
    left_in,
    program,
    recover,
    steps,
)
from support.limits import HANG
from support.run import environment, run


def leave_spool(directory: Path, name: str = "t", *, seed: int = 0) -> list[int]:
    """A killed process's spool, with much in it; returns what each thread has recorded for sure."""
    counted = directory.parent / f"{directory.name}-{name}.counters"
    words: list[str | Path] = [directory / f"{name}.pfw", counted, "2", "500", "0", "0", "forever"]
    process = subprocess.Popen(
        [program("workers"), *words],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while len(counts := faults.counters(counted)) < 2 or min(counts) < 1000:
        assert process.poll() is None
    time.sleep(random.Random(seed).uniform(0, 0.003))
    faults.kill(process)
    assert traces.spools(directory)
    return faults.counters(counted)


def start_recoverer(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program("recover"), directory],
        env=environment(enable=False),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# ---- Who -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["fini", "exit=0", "say=returns"])
def test_parent_finishes_for_its_killed_children(tmp_path: Path, end: str) -> None:
    children = [
        "fork{",
        "who=1",
        "log=3000",
        "raise=KILL",
        "}",
        "fork{",
        "who=2",
        "log=2",
        "_exit=1",
        "}",
    ]
    steps("init=d/t.pfw", "log=10", *children, end, cwd=tmp_path)
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 10, 1: 3000, 2: 2})


def test_next_run_of_the_same_name_replaces(tmp_path: Path) -> None:
    """As it replaces a finished run's: no event of the dead one is mixed in."""
    steps("init=d/t.pfw", "log=5000", "raise=KILL", cwd=tmp_path, expect=-9)
    assert traces.spools(tmp_path / "d")
    steps("init=d/t.pfw", "who=1", "log=70", "fini", cwd=tmp_path)
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {1: 70})


def test_next_process_of_the_same_run_finishes(tmp_path: Path) -> None:
    """The same run id: both belong together, and both are kept."""
    env = {"DFTRACER_RUN_ID": "00000000deadbeef"}
    steps("init=d/t.pfw", "log=5000", "raise=KILL", cwd=tmp_path, expect=-9, env=env)
    steps("init=d/t.pfw", "who=1", "log=70", "fini", cwd=tmp_path, env=env)
    faults.nothing_hidden(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert_exactly(left, {0: 5000, 1: 70})
    assert len(left.files) == 2


def test_the_command(tmp_path: Path) -> None:
    for n in range(3):
        steps(f"init=d/{n}.pfw", f"who={n}", "log=500", "_exit=0", cwd=tmp_path)
    done = command("recover", tmp_path / "d")
    assert "3 spools completed, 1,500 events recovered" in done.stdout
    assert done.stderr == ""
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), dict.fromkeys(range(3), 500))
    assert "nothing to recover" in command("recover", tmp_path / "d").stdout
    assert command("recover", tmp_path / "none", expect=None).rc != 0


def test_recovered_traces_say_so(tmp_path: Path) -> None:
    steps("init=d/t.pfw", "log=20", "_exit=0", cwd=tmp_path)
    assert recover(tmp_path / "d") == Found(0, 1, 1, 20, 0, 0, 0)
    trace = traces.read_one(tmp_path / "d")
    assert trace.one("end")["args"]["recovered"] is True
    steps("init=d/t.pfw", "log=20", "exit=0", cwd=tmp_path)
    assert "recovered" not in traces.read_one(tmp_path / "d").one("end")["args"]


def test_spool_elsewhere(tmp_path: Path) -> None:
    env = {"DFTRACER_SPOOL_DIR": str(tmp_path / "spools")}
    steps("init=d/t.pfw", "big=500", "_exit=0", cwd=tmp_path, env=env)
    assert len(traces.spools(tmp_path / "d")) == 1, "the note that says where the spool is"
    assert len(list((tmp_path / "spools").iterdir())) == 1
    assert recover(tmp_path / "d").recovered == 1
    faults.nothing_hidden(tmp_path / "d")
    assert list((tmp_path / "spools").iterdir()) == []
    assert_exactly(left_in(tmp_path / "d"), {0: 500})


def test_spool_elsewhere_with_a_good_end(tmp_path: Path) -> None:
    env = {"DFTRACER_SPOOL_DIR": str(tmp_path / "spools")}
    child = ["fork{", "who=1", "log=40", "_exit=0", "}"]
    steps("init=d/t.pfw", "big=500", *child, "fini", cwd=tmp_path, env=env)
    faults.nothing_hidden(tmp_path / "d")
    assert list((tmp_path / "spools").iterdir()) == []
    assert_exactly(left_in(tmp_path / "d"), {0: 500, 1: 40})


def test_a_living_process_with_its_spool_elsewhere_is_left_alone(tmp_path: Path) -> None:
    env = {"DFTRACER_SPOOL_DIR": str(tmp_path / "spools")}
    with living(tmp_path, env) as process:
        assert recover(tmp_path / "d")[1:] == (1, 0, 0, 1, 0, 0)
        assert process.stdin is not None
        process.communicate(b"x", timeout=HANG)
        assert process.returncode == 0
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 30})


def living(tmp_path: Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A process that has recorded 20 events, waits for a byte, and records 10 more."""
    process = subprocess.Popen(
        [program("steps"), "init=d/t.pfw", "log=20", "say=ready", "wait", "log=10", "fini"],
        cwd=tmp_path,
        env=environment(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"init 0\n"
    assert process.stdout.readline() == b"ready\n"
    return process


# ---- Several at once, and beside the living ------------------------------------------------------


@pytest.mark.parametrize("many", [2, 8])
def test_recoverers_at_once(tmp_path: Path, many: int) -> None:
    for turn in range(4):
        directory = tmp_path / str(turn)
        wanted = [leave_spool(directory, f"t{n}", seed=turn) for n in range(2)]
        recoverers = [start_recoverer(directory) for _ in range(many)]
        found = []
        for recoverer in recoverers:
            out, errors = recoverer.communicate(timeout=HANG)
            assert (recoverer.returncode, errors) == (0, b"")
            found.append(Found(*map(int, out.split())))
        assert sum(one.recovered for one in found) == 2
        faults.nothing_hidden(directory)
        for n, counts in enumerate(wanted):
            left = faults.Left()
            faults.add_file(left, directory / f"t{n}.pfw.gz")
            assert_committed(left, counts)
        assert len(traces.files(directory)) == 2


def test_a_living_process_is_left_alone(tmp_path: Path) -> None:
    with living(tmp_path) as process:
        for force in (False, True):
            assert recover(tmp_path / "d", force=force)[1:] == (1, 0, 0, 1, 0, 0)
        process.communicate(b"x", timeout=HANG)
        assert process.returncode == 0
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 30})


def test_recoverers_beside_a_busy_writer(tmp_path: Path) -> None:
    counted = tmp_path / "counters"
    process = subprocess.Popen(
        [program("workers"), tmp_path / "d" / "t.pfw", counted, "3", "200", "30000", "300", "join"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        turns = 0
        while process.poll() is None and turns < 200:
            if (tmp_path / "d").exists():
                found = recover(tmp_path / "d")
                assert found.recovered == 0
                turns += 1
        _, errors = process.communicate(timeout=HANG)
    finally:
        faults.kill(process)
    assert (process.returncode, errors) == (0, b"")
    assert turns > 0
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), dict.fromkeys(range(3), 30000))


def test_a_directory_copied_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """As a node leaves it that loses its power: readable as far as it goes."""
    numbers = ["2", "500", "0", "3000"]
    words: list[str | Path] = [tmp_path / "d" / "t.pfw", tmp_path / "counters", *numbers, "forever"]
    process = subprocess.Popen(
        [program("workers"), *words],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        for n in range(10):
            while not (tmp_path / "d" / "t.pfw.gz").exists():
                assert process.poll() is None
            shutil.copytree(tmp_path / "d", tmp_path / str(n), ignore=lambda *_: [".t.pfw.gz.part"])
    finally:
        faults.kill(process)
    for n in range(10):
        found = left_in(tmp_path / str(n), whole=False).numbers.values()
        assert all(len(set(numbers)) == len(numbers) for numbers in found)


# ---- A recoverer that is itself killed -----------------------------------------------------------


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("part", range(2))
def test_recoverer_killed_at_random(tmp_path: Path, part: int) -> None:
    for n in range(15):
        chance = random.Random(part * 100 + n)
        directory = tmp_path / str(n)
        counts = leave_spool(directory, seed=n)
        for _ in range(chance.randint(1, 3)):
            recoverer = start_recoverer(directory)
            time.sleep(chance.uniform(0, 0.008))
            faults.kill(recoverer)
        recover(directory)
        faults.nothing_hidden(directory)
        assert_committed(left_in(directory), counts)


def test_recoverer_killed_at_every_system_call(tmp_path: Path) -> None:
    original = tmp_path / "original"
    env = {"DFTRACER_WRITE_BUFFER_SIZE": "0"}
    steps("init=original/t.pfw", "big=600", "log=300", "_exit=0", cwd=tmp_path, env=env)
    number = 1
    while True:
        directory = tmp_path / str(number)
        # The trace's inode is part of what a spool knows, so the file must be moved, not copied.
        if number == 1:
            original.rename(directory)
        else:
            (tmp_path / str(number - 1)).rename(directory)
        done = run(
            program("killat"), number, "-", program("recover"), directory, expect=None, enable=False
        )
        if done.rc == 2:
            pytest.skip("ptrace is not permitted here")
        if not traces.spools(directory):
            break
        assert done.rc == 0
        number += 1
    assert_exactly(left_in(directory), {0: 900})
    faults.nothing_hidden(directory)
    assert number > 20


# ---- Damage --------------------------------------------------------------------------------------


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    """A spool that nobody has finished, 300 events in it, and no trace beside it yet."""
    steps("init=dead/t.pfw", "log=60", "big=40", "_exit=0", cwd=tmp_path)
    (spool,) = traces.spools(tmp_path / "dead")
    return spool


def judge(directory: Path, content: dict[str, bytes]) -> Found:
    """Recovers a directory of damaged spools: no crash, no hang; what could not be read is kept."""
    directory.mkdir()
    for name, data in content.items():
        (directory / name).write_bytes(data)
    found = recover(directory, force=True, expect=None, stderr=None)
    assert found.code == 0
    kept = traces.spools(directory)
    assert len(kept) == found.broken + found.alive + found.unknown
    for path in kept:
        assert path.read_bytes() == content[path.name], f"{path} was changed"
    return found


def test_random_bytes(tmp_path: Path) -> None:
    chance = random.Random(1)
    content = {
        f".t{n}.pfw.spool": b"\1" + chance.randbytes(size)
        for n, size in enumerate([0, 1, 7, 100, 4095, 4096, 65536, 1 << 20])
    }
    found = judge(tmp_path / "d", content)
    assert found.broken == len(content)
    done = command("recover", tmp_path / "d", expect=1)
    assert f"{len(content)} not readable" in done.stdout + done.stderr
    assert ".t7.pfw.spool" in done.stderr
    assert traces.files(tmp_path / "d") == []


def test_truncated_at_every_page(tmp_path: Path, dead: Path) -> None:
    data = dead.read_bytes()
    content = {f".t{size}.pfw.spool": data[:size] for size in range(4096, len(data), 4096)}
    found = judge(tmp_path / "d", content)
    # The table of segments says how long it must be, so none of them passes.
    assert found.broken == len(content)
    for path in traces.files(tmp_path / "d"):
        traces.read(path, open_parents=True)
    done = command("recover", dead.parent)
    assert "1 spool completed" in done.stdout
    assert_exactly(left_in(dead.parent), {0: 100})


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("value", "first"),
    [(b"\0\0\0\0", 0), (b"\xff\xff\xff\xff", 4), (b"\1\0\0\x80", 0), (b"\0\x10\0\0", 4)],
)
def test_flipped_words_of_the_head(tmp_path: Path, dead: Path, value: bytes, first: int) -> None:
    """Words of the first pages in turn: recovered, or kept and called broken. Never a crash."""
    data = dead.read_bytes()
    content = {}
    for offset in [*range(first, 4096, 8), *range(4096, 60000, 1021 * 4)]:
        damaged = bytearray(data)
        damaged[offset : offset + 4] = value
        content[f".t{offset}.pfw.spool"] = bytes(damaged)
    found = judge(tmp_path / "d", content)
    assert found.spools == len(content)
    assert found.recovered > 0
    for path in traces.files(tmp_path / "d"):
        faults.text_of(path)


def test_flipped_bits_of_the_records(tmp_path: Path, dead: Path) -> None:
    """Whatever the records say, what comes out is a trace that everybody can read."""
    chance = random.Random(2)
    data = dead.read_bytes()
    first = data.rindex(b"process_name") // 4096 * 4096 + 4096  # behind the opening lines
    for n in range(40):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 40)):
            damaged[chance.randrange(first, len(data))] ^= 1 << chance.randrange(8)
        directory = tmp_path / str(n)
        judge(directory, {".t.pfw.spool": bytes(damaged)})
        for path in traces.files(directory):
            text, _ = faults.text_of(path)
            for line in text.removeprefix(b"[\n").splitlines():
                json.loads(line.decode())
        shutil.rmtree(directory)


def test_a_spool_of_another_version(tmp_path: Path, dead: Path) -> None:
    data = bytearray(dead.read_bytes())
    data[8] += 1
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / ".t.pfw.spool").write_bytes(data)
    done = command("recover", directory, expect=1)
    assert "version" in done.stderr
    assert (directory / ".t.pfw.spool").read_bytes() == data


def test_a_spool_that_names_a_foreign_file(tmp_path: Path, dead: Path) -> None:
    """A hostile head must not lead out of the directory, or to a file that is no trace."""
    data = dead.read_bytes()
    at = data.index(b"t.pfw.gz\0")
    directory = tmp_path / "d"
    directory.mkdir()
    victim = tmp_path / "victim.pfw"
    victim.write_text("mine")
    for n, name in enumerate(
        [b"../victim.pfw", b"victim", b".victim.pfw", b"/etc/x.pfw", b"", b".pfw"]
    ):
        (directory / f".t{n}.pfw.spool").write_bytes(
            data[:at] + name.ljust(256, b"\0") + data[at + 256 :]
        )
    found = recover(directory, force=True, expect=1, stderr=None)
    assert found.broken == 6
    assert traces.files(directory) == []
    assert victim.read_text() == "mine"


def test_a_note_that_leads_nowhere(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    victim = tmp_path / "victim.spool"
    victim.write_text("mine, and not a spool at all: it must stay as it is")
    notes = {
        ".t1.pfw.spool": f"dftracer-spool-at {tmp_path}/none.spool\n",
        ".t2.pfw.spool": f"dftracer-spool-at {victim}\n",
        ".t3.pfw.spool": "dftracer-spool-at relative/path.spool\n",
        ".t4.pfw.spool": f"dftracer-spool-at {tmp_path}/victim\n",
        ".t5.pfw.spool": f"dftracer-spool-at /{'x' * 5000}.spool\n",
    }
    for name, text in notes.items():
        (directory / name).write_text(text)
    found = recover(directory, expect=1, stderr=None)
    assert found.spools == 5
    assert found.recovered == 0
    assert victim.read_text().startswith("mine")
