"""fio with each of its engines: it reads back what it wrote, and its sums are the trace's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.foreign import Seen, execute, need_program, read_traces, tracing
from support.run import environment

SIZE = 4 << 20
BLOCK = 4096
JOBS = 2
# Which calls of a job are its reads and writes. None: no function of libc that moves bytes (or, for
# vsync, some more calls than fio counts).
ENGINES: dict[str, tuple[str, str] | None] = {
    "sync": ("read", "write"),
    "psync": ("pread", "pwrite"),
    "vsync": None,
    "pvsync": ("preadv", "pwritev"),
    "pvsync2": ("preadv2", "pwritev2"),
    "mmap": None,
    "libaio": None,
    "posixaio": None,
    "io_uring": None,
}


@dataclass(frozen=True)
class Report:
    rc: int
    jobs: list[tuple[Any, ...]]
    stderr: bytes


def run(engine: str, how: str, work: Path, env: dict[str, str]) -> Report:
    work.mkdir()
    rc, stdout, stderr = execute(
        "fio", f"--name={engine}", f"--directory={work}", f"--ioengine={engine}", "--rw=randrw",
        f"--bs={BLOCK}", f"--size={SIZE}", f"--numjobs={JOBS}", "--randseed=7", "--iodepth=8",
        "--verify=crc32c", "--verify_fatal=1", "--end_fsync=1", "--output-format=json",
        *(["--thread"] if how == "thread" else []),
        cwd=work.parent, env=env, output=work.parent / "fio",
    )  # fmt: skip
    text = stdout.decode()
    found = json.loads(text[text.index("{") :])["jobs"] if "{" in text else []
    jobs = [
        (
            job["error"],
            *(job[way][key] for way in ("read", "write") for key in ("io_bytes", "total_ios")),
        )
        for job in found
    ]
    return Report(rc, sorted(jobs), stderr)


@pytest.mark.parametrize("how", ["fork", "thread"])
@pytest.mark.parametrize("engine", ENGINES)
def test_fio(place: Path, engine: str, how: str) -> None:
    need_program("fio")
    work, out = place / "work", place / "traces"
    out.mkdir()
    bare = run(engine, how, work, environment(enable=False))
    if bare.rc != 0 and any(word in bare.stderr for word in (b"not permitted", b"not implemented")):
        pytest.skip(f"{engine} does not work here: {bare.stderr.decode()}")
    for path in work.iterdir():
        path.unlink()
    work.rmdir()
    traced = run(engine, how, work, tracing(out))
    assert bare.rc == 0, bare.stderr
    assert len(bare.jobs) == JOBS
    assert traced == bare

    seen = Seen(read_traces(out, work), work)
    files = sorted(work.iterdir())
    assert len(files) == JOBS
    for path in files:
        assert seen.events("open", path=path)
        assert path.stat().st_size == SIZE
    names = ENGINES[engine]
    if names is not None:
        for index, name in enumerate(names):
            calls = [e for path in files for e in seen.events(name, path=path)]
            moved = sum(event.args["ret"] for event in calls)
            # It makes the files by plain writes, which it does not count.
            made = JOBS * SIZE if name == "write" else 0
            assert moved == made + sum(job[1 + 2 * index] for job in bare.jobs), name
    if engine == "mmap":
        lengths = {
            event.args["length"] for path in files for event in seen.events("mmap", path=path)
        }
        assert lengths == {SIZE}
        assert seen.events("msync")
    if how == "fork":
        jobs = {event.pid for path in files for event in seen.events("open", path=path)}
        assert len(jobs) >= JOBS
