"""`dftracer doctor`: a sound installation, broken ones, and traces with something missing."""

from __future__ import annotations

import errno
import json
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer

from dftracer import _libcore
from dftracer.commands._cli.main import main
from dftracer.commands.doctor import _installation, _machine


def checks(*words: str, cwd: Path, env: dict[str, str] | None = None, code: int = 0) -> list[Any]:
    got = json.loads(dftracer("doctor", "--json", *words, cwd=cwd, env=env, expect=code).stdout)
    assert got["ok"] == (code == 0)
    return [(one["name"], one["status"], one["text"]) for one in got["checks"]]


def of(found: list[Any], name: str, status: str) -> str:
    """The text of the one check of this name and status."""
    texts = [text for one, how, text in found if (one, how) == (name, status)]
    assert len(texts) == 1, found
    return str(texts[0])


def test_a_sound_installation(tmp_path: Path) -> None:
    found = checks(cwd=tmp_path)
    assert {status for _, status, _ in found} <= {"ok", "warn"}
    assert "traced /" in of(found, "preload", "ok")
    assert platform.python_version() in of(found, "version", "ok")
    assert of(found, "wheel", "ok").startswith(f"cp3{sys.version_info[1]}-")
    assert of(found, "system", "ok").startswith(f"Linux {platform.release()} ")
    names = [name for name, _, _ in found]
    assert {"clock", "perf", "io_uring"} <= set(names)
    assert str(tmp_path) in of(found, "directory", "ok")
    assert not list(tmp_path.iterdir())
    text = dftracer("doctor", cwd=tmp_path).stdout
    assert len(text.splitlines()) == len(found)
    assert "\033" not in text


def test_settings_are_looked_at(tmp_path: Path) -> None:
    env = {"DFTRACER_DATADIR": "/x", "DFTRACER_DATA_DIR": "/no/such", "DFTRACER_DISABLE_IO": "1"}
    found = checks(cwd=tmp_path, env=env)
    said = [text for name, status, text in found if (name, status) == ("settings", "warn")]
    assert said == [
        "DFTRACER_DATADIR is not a setting; did you mean DFTRACER_DATA_DIR?",
        "DFTRACER_DISABLE_IO is set: no I/O call is recorded",
        "DFTRACER_DATA_DIR: no such directory: /no/such",
    ]
    assert "traced /" in of(found, "preload", "ok")  # by itself, whatever is set


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    found = checks(cwd=tmp_path, env={"DFTRACER_LOG_FILE": "/proc/self/x"}, code=1)
    assert "cannot be written to /proc/self" in of(found, "directory", "fail")


def test_a_second_tracer(tmp_path: Path) -> None:
    env = {"LD_PRELOAD": "/opt/other/lib/libdftracer_preload.so"}
    found = checks(cwd=tmp_path, env=env, code=1)
    assert "both would record" in of(found, "LD_PRELOAD", "fail")


@pytest.mark.parametrize("how", ["missing", "no library", "another library"])
def test_a_broken_preload(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library = tmp_path / "libdftracer_preload.so"
    if how == "no library":
        library.write_text("not a library")
    elif how == "another library":
        source = tmp_path / "x.c"
        source.write_text("int nothing;")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setattr(_libcore, "PRELOAD", library)
    assert main(["doctor"]) == 1
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("fail")]
    assert "preload" in line
    assert {"missing": "is missing", "no library": "recorded nothing: "}.get(how, "nothing") in line


def record(name: str, cat: str = "dftracer", /, **args: Any) -> dict[str, Any]:
    phase = "M" if name in ("HH", "FH", "SH") else "X"
    return {"name": name, "cat": cat, "pid": 7, "tid": 7, "ph": phase, "args": args} | (
        {"ts": 10**15, "dur": 0} if phase == "X" else {}
    )


def write(path: Path, *records: dict[str, Any], tail: str = "") -> None:
    path.write_text("[\n" + "".join(json.dumps(one) + "\n" for one in records) + tail)


def test_an_empty_directory(tmp_path: Path) -> None:
    found = checks(".", cwd=tmp_path, code=1)
    assert "A process that records nothing leaves no file" in of(found, "files", "fail")
    done = dftracer("doctor", "nothing", cwd=tmp_path, expect=2)
    assert done.stderr == "dftracer: nothing: no such file or directory\n"


def test_everything_was_filtered(tmp_path: Path) -> None:
    write(tmp_path / "a.pfw", record("start"), record("end", calls=50, filtered=50))
    found = checks(".", cwd=tmp_path, code=1)
    assert of(found, "events", "fail").startswith("0 events")
    assert "50 of 50 calls" in of(found, "filter", "fail")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    write(
        tmp_path / "a.pfw",
        record("start", run="1"),
        record("FH", name="/opt/tool", value="aa"),
        record("execve", "POSIX", fhash="aa", untraced=1),
        record("execvp", "POSIX", file="cat", untraced=4),
        *[record("lseek", "POSIX")] * 1500,
        record("end", lost=3, calls=10, filtered=1, read_seen=10, read_total=5_000_000),
        tail='{"name":',
    )
    found = checks("a.pfw", cwd=tmp_path, code=1)
    assert "truncated" in of(found, "files", "fail")
    assert "3 events lost" in of(found, "losses", "fail")
    untraced = {text for name, _, text in found if name == "untraced"}
    assert untraced == {"1 x tool: statically linked", "1 x cat: without LD_PRELOAD"}
    assert "10 B of 5 MB read" in of(found, "gap", "warn")
    assert of(found, "share", "warn").startswith("100% of all events are lseek")


def test_a_real_trace_of_a_killed_process(tmp_path: Path) -> None:
    script = "env -i /bin/true; cat /etc/passwd > copy; kill -9 $$"
    dftracer("run", "-o", "d", "sh", "-c", script, cwd=tmp_path, expect=-9)
    found = checks("d", cwd=tmp_path)
    assert "1 ended without exit()" in of(found, "processes", "ok")
    assert of(found, "untraced", "warn") == "1 x true: without LD_PRELOAD"
    assert of(found, "losses", "ok") == "no event was lost"


def test_which_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "pydftracer-3.0.0.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text("Metadata-Version: 2.1\nName: pydftracer\nVersion: 3.0.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def text(tag: str, origin: dict[str, Any] | None = None) -> str:
        (notes / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
        (notes / "direct_url.json").write_text(json.dumps(origin or {}))
        (check,) = _installation._wheel()
        assert check[:2] == ("wheel", "ok")
        return check.text

    many = "cp39-cp39-manylinux_2_17_x86_64"
    assert text(many) == f"{many}: a portable wheel, for glibc 2.17 or later"
    old = "cp39-cp39-manylinux2014_aarch64"
    assert text(old, {"archive_info": {}}).endswith("for glibc 2.17 or later")
    built = "cp311-cp311-linux_x86_64"
    assert text(built).startswith(f"{built}: built from source; runs where glibc")
    source = {"url": "file:///home/u/clone", "dir_info": {}}
    assert text(built, source) == f"{built}: built from source in /home/u/clone"
    source["dir_info"] = {"editable": True}
    assert text(built, source).endswith("in /home/u/clone, editable")


def test_what_the_c_library_means() -> None:
    assert "(dlmopen) are recorded" in _machine.system("glibc", "2.36").text
    assert "are not recorded" in _machine.system("glibc", "2.28").text
    check = _machine.system("", "")
    assert check.status == "warn"
    assert check.text.endswith("unknown C library: dftracer run needs glibc")


@pytest.mark.parametrize(
    ("error", "start", "meaning"),
    [
        (
            0,
            "permitted (io_uring_disabled 0); ",
            "requests through liburing and syscall() are recorded",
        ),
        (
            errno.EPERM,
            "not permitted: Operation not permitted (io_uring_disabled 0, or ",
            "instead",
        ),
        (errno.ENOSYS, "not permitted: the kernel or a sandbox does not have", "instead"),
        (None, "not known: a sandbox ended the attempt with SIGSYS (", "where a program uses it"),
    ],
)
def test_permissions_and_what_they_mean(error: int | None, start: str, meaning: str) -> None:
    killed = signal.SIGSYS if error is None else 0
    check = _machine.io_uring(_machine.Probe(0, error, killed), "0")
    assert check.text.startswith(start)
    assert meaning in check.text
    check = _machine.perf(_machine.Probe(error, 0, killed), "0")
    assert check.text.startswith(start.replace("io_uring_disabled", "perf_event_paranoid"))
    assert ("page faults on mapped files are recorded" in check.text) == (error == 0)
    assert "mapped files" in check.text
    assert check.status == "ok"


def test_the_attempts_are_made_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _machine.probe()
    assert found.perf is not None
    assert found.io_uring is not None
    monkeypatch.setattr(
        _machine, "_PROBE", "import os; print(13, flush=True); os.kill(os.getpid(), 31)"
    )
    assert _machine.probe() == _machine.Probe(13, None, 31)
