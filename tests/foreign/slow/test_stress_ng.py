"""stress-ng: every odd use of the calls on files and pipes, for some rounds each.

Left out is what reaches beyond the test's directory: mounts, raw devices, watches on whole file
systems, flags that outlive a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.foreign import execute, need_program, read_traces, tracing
from support.run import environment

FILESYSTEM = """access chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup eventfd
    fallocate fcntl fiemap file-ioctl filename flock fpunch fsize fstat getdent handle hdd inotify
    io iomix ioprio lease link locka lockf lockofd mknod open rename symlink sync-file touch utime
    xattr"""
IO = "aio aiol io-uring readahead revio seek"
PIPE = "fifo pipe sendfile splice tee"
# Unless told otherwise they take a gigabyte.
SIZES = {
    name: (f"--{name}-{what}", "4m")
    for what, names in {
        "bytes": "fallocate fiemap hdd iomix readahead revio sync-file",
        "size": "seek sendfile",
    }.items()
    for name in names.split()
}
SIZES["chdir"] = ("--chdir-dirs", "64")
SIZES["copy-file"] = ("--copy-file-bytes", "128m")  # its least
# Some have long rounds.
ROUNDS = {
    "copy-file": 4, "dirdeep": 5, "dirmany": 200, "fallocate": 20, "filename": 10,
    "getdent": 20, "inotify": 4, "io": 5, "link": 2, "symlink": 1,
}  # fmt: skip
SECONDS = {"fpunch": 2, "symlink": 3}  # these do not count their rounds in time
NOT_HERE = (3, 4)  # no resources, or not implemented by this kernel or file system


def run(name: str, work: Path, env: dict[str, str]) -> tuple[int, str]:
    work.mkdir()
    rc, stdout, stderr = execute(
        "stress-ng", f"--{name}", "2", f"--{name}-ops", str(ROUNDS.get(name, 100)),
        *SIZES.get(name, ()), "--timeout", str(SECONDS.get(name, 10)), "--temp-path", work,
        "--verify", "--no-rand-seed",
        cwd=work, env=env, output=work.parent / "output",
    )  # fmt: skip
    left = sorted(path.name for path in work.iterdir())
    assert left == [], "files are left behind"
    work.rmdir()
    return rc, (stdout + stderr).decode(errors="replace")


@pytest.mark.parametrize("name", [*FILESYSTEM.split(), *IO.split(), *PIPE.split()])
def test_stress_ng(place: Path, name: str) -> None:
    need_program("stress-ng")
    out = place / "traces"
    out.mkdir()
    bare, said = run(name, place / "work", environment(enable=False))
    if bare in NOT_HERE or "unrecognized option" in said:
        pytest.skip(f"{name} does not work here: {said}")
    assert bare == 0, said
    traced, said = run(name, place / "work", tracing(out))
    assert traced == bare, said
    # It ends its children by SIGKILL.
    images = read_traces(out, place / "work", killed=True)
    assert len({image.pid for image in images}) >= 3
    assert sum(len(image.events) for image in images) > 10
