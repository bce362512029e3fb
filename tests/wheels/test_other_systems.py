"""The wheels on other systems: Debian's oldest and newest, each unpacked into a root directory.

In Debian 11 (glibc 2.31) libpthread and libdl are libraries of their own, as on RHEL 8; no older
one is left on the mirrors. That the libraries need no symbol of a glibc after 2.17 is checked by
tools/check_wheels.py. Debian's newest has Pythons that the machine lacks.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from conftest import ROOT, SECONDS, wheel_for
from debian import Apt, NoPackages
from test_installed import ANNOTATED, events

# suite, Python, the oldest and the newest glibc that it may have
SYSTEMS = (
    ("bullseye", "3.9", (2, 31), (2, 31)),
    ("sid", "3.14", (2, 41), (3, 0)),
    ("sid", "3.15", (2, 41), (3, 0)),
)
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}

KILLED = """
import os, signal
from dftracer.python import dft_fn, dftracer
dftracer.initialize_log("killed/t", data_dir="all", process_id=-1)
function = dft_fn("app")

@function.log
def work():
    pass

for child in range(3):
    if os.fork() == 0:
        for _ in range(1000):
            work()
        os.kill(os.getpid(), signal.SIGKILL)
for child in range(3):
    os.wait()
os.kill(os.getpid(), signal.SIGKILL)
"""


class System:
    def __init__(self, root: Path, version: str, glibc: tuple[tuple[int, int], ...]) -> None:
        self.root = root
        self.work = root / "work"
        self.python = f"python{version}"
        self.glibc = glibc

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the system, with the kernel's /proc and /dev."""
        mounts = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev"'
        script = f'{mounts} && exec chroot "$0" /bin/sh -c \'cd /work && exec "$@"\' sh "$@"'
        owner = [] if os.geteuid() == 0 else ["--map-root-user"]
        path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return subprocess.run(
            ["unshare", *owner, "--mount", "sh", "-c", script, str(self.root), *words],
            env={
                "PATH": path + ":/usr/sbin:/sbin",
                "HOME": "/work",
                "LANG": "C.UTF-8",
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def succeed(self, *words: str, **variables: str) -> str:
        done = self.run(*words, **variables)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module", params=SYSTEMS, ids=lambda row: f"{row[0]}-{row[1]}")
def system(request: pytest.FixtureRequest, missing: Callable[[str], NoReturn]) -> System:
    suite, version, *glibc = request.param
    cache = ROOT / "build" / "wheels" / f"{suite}-{version}"
    stamp = cache / ".ready"
    if not stamp.exists():
        shutil.rmtree(cache, ignore_errors=True)
        try:
            apt = Apt(cache / "apt", "deb", suite, DEBIAN[platform.machine()])
            apt.unpack([f"python{version}", "coreutils", "dash", "bash"], cache / "root")
        except NoPackages as error:
            missing(f"Debian's suite {suite} cannot be had: {error}")
        stamp.write_text("")
    made = System(cache / "root", version, tuple(glibc))
    shutil.rmtree(made.work, ignore_errors=True)
    made.work.mkdir()
    (made.root / "bin/sh").exists() or (made.root / "bin/sh").symlink_to("dash")
    place = made.run(made.python, "-c", "import site; print(site.getsitepackages()[0])")
    if place.returncode != 0:
        missing(f"no mount namespaces here: {place.stderr.strip()}")
    packages = made.root / place.stdout.strip().lstrip("/")
    shutil.rmtree(packages, ignore_errors=True)
    wheel = wheel_for(version)
    assert wheel is not None, f"no wheel for Python {version}: run `make wheels`"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    command = made.root / "usr/local/bin/dftracer"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(
        f"#!/usr/bin/python{version}\nfrom dftracer._entry import main\nraise SystemExit(main())\n"
    )
    command.chmod(0o755)
    return made


def test_it_is_another_glibc(system: System) -> None:
    ask = "import os; print(os.confstr('CS_GNU_LIBC_VERSION'))"
    glibc = system.succeed(system.python, "-c", ask).split()[1]
    oldest, newest = system.glibc
    assert oldest <= tuple(map(int, glibc.split("."))) <= newest


def test_record_a_foreign_program(system: System) -> None:
    (system.work / "input").write_bytes(b"y" * 100_000)
    output = system.succeed(
        *("dftracer", "run", "-o", "foreign", "--", "dd", "if=input", "of=copy", "bs=1000")
    )
    assert "1 process" in output
    assert (system.work / "copy").read_bytes() == b"y" * 100_000
    names = [event["name"] for event in events(system.work / "foreign")]
    assert names.count("read") >= 100
    assert names.count("write") >= 100


def test_processes_of_a_shell(system: System) -> None:
    script = "for n in 1 2 3; do (cat input > copy$n) & done; wait; exec cat copy1 copy2 copy3"
    output = system.succeed("dftracer", "run", "-o", "shell", "--", "sh", "-c", script)
    assert "4 processes" in output
    calls = ("write", "copy_file_range")  # newer versions of cat use the second
    copied = [event for event in events(system.work / "shell") if event["name"] in calls]
    assert len({event["pid"] for event in copied}) == 4


def test_annotations_fork_and_spawn(system: System) -> None:
    (system.work / "annotated.py").write_text(ANNOTATED)
    system.succeed(system.python, "annotated.py", "annotated/t", DFTRACER_ENABLE="1")
    names = [event["name"] for event in events(system.work / "annotated")]
    assert names.count("work") == 12
    assert names.count("forward") == 10


def test_killed_processes_are_recovered(system: System) -> None:
    (system.work / "killed.py").write_text(KILLED)
    assert system.run(system.python, "killed.py", DFTRACER_ENABLE="1").returncode != 0
    system.succeed("dftracer", "recover", "killed")
    names = [event["name"] for event in events(system.work / "killed")]
    assert names.count("work") == 3000


def test_reading_and_doctor(system: System) -> None:
    assert "read" in system.succeed("dftracer", "stats", "foreign")
    assert "traced " in system.succeed("dftracer", "doctor")
