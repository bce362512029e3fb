"""`dftracer env`: what shells make of its output, and the traces of programs started under it."""

from __future__ import annotations

import os
import shlex
import shutil
import string
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support import traces
from support.command import dftracer, environment
from support.limits import HANG

from dftracer import _libcore

# How each shell takes the output in.
EVAL = {
    "sh": 'eval "$({})"',
    "bash": 'eval "$({})"',
    "zsh": 'eval "$({})"',
    "csh": 'eval "`{}`"',
    "tcsh": 'eval "`{}`"',
    "fish": "{} | source",
}
# The command itself must not be traced.
UNSET = {
    "csh": "(setenv DFTRACER_ENABLE 0; dftracer env --shell csh --unset)",
    "tcsh": "(setenv DFTRACER_ENABLE 0; dftracer env --shell tcsh --unset)",
}
# What a directory's name can hold; `:` separates directories, and libraries.
ODD = "".join(sorted(set(string.punctuation) - {"/", ":"})) + "  x"


def shells() -> list[object]:
    """sh and bash are everywhere; the others where they are installed."""
    return [
        pytest.param(
            shell,
            marks=pytest.mark.skipif(
                shell not in ("sh", "bash") and shutil.which(shell) is None,
                reason=f"{shell} is not installed",
            ),
        )
        for shell in EVAL
    ]


def run(
    shell: str, script: str, cwd: Path, env: dict[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    options = {"csh": ["-f"], "tcsh": ["-f"], "fish": ["--no-config"], "zsh": ["-f"]}
    done = subprocess.run(
        [shell, *options.get(shell, []), "-c", script],
        cwd=cwd,
        env=environment({"HOME": str(cwd), **(env or {})}),
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def variables(
    shell: str, command: str, cwd: Path, env: dict[str, str] | None = None
) -> dict[str, str]:
    """The environment of a program that the shell starts after it has taken the output in."""
    done = run(shell, f"{EVAL[shell].format(command)}\nenv -0", cwd, env)
    assert done.stderr == b""
    pairs = (one.partition("=") for one in os.fsdecode(done.stdout).split("\0") if one)
    return {
        name: text
        for name, _, text in pairs
        if name.startswith("DFTRACER_") or name == "LD_PRELOAD"
    }


@pytest.mark.parametrize("shell", shells())
def test_any_name_survives_every_shell(shell: str, tmp_path: Path) -> None:
    odd = tmp_path / ODD
    odd.mkdir()
    found = variables(shell, f"dftracer env --shell {shell} -q --data-dir . --data-dir /b", odd)
    assert found == {
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_LOG_FILE": found["DFTRACER_LOG_FILE"],
        "DFTRACER_DATA_DIR": f"{odd}:/b",
        "DFTRACER_OTEL": "1",
        "DFTRACER_STORES": "1",
        "DFTRACER_SUMMARY": "0",
        "LD_PRELOAD": str(_libcore.PRELOAD),
    }
    log_file = Path(found["DFTRACER_LOG_FILE"])
    assert log_file.parent.parent == odd
    assert log_file.name == "trace"


def test_a_new_directory_is_made_by_the_first_program(tmp_path: Path) -> None:
    done = dftracer("env", "--shell", "sh", cwd=tmp_path)
    assert f"export DFTRACER_LOG_FILE={tmp_path}/dftracer-trace-20" in done.stdout
    assert list(tmp_path.iterdir()) == []
    run("sh", f"{done.stdout}\nexec cat /etc/passwd", tmp_path)
    (directory,) = tmp_path.iterdir()
    assert traces.read_one(directory).recorded


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_bytes_that_are_no_text(shell: str, tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n\xc3"))
    found = variables(
        shell, 'dftracer env --shell sh -q -o "$WHERE" --name n', tmp_path, {"WHERE": str(place)}
    )
    assert found["DFTRACER_LOG_FILE"] == f"{place}/n"


def test_a_line_break_is_too_much_for_csh(tmp_path: Path) -> None:
    done = dftracer("env", "--shell", "csh", "-o", "a\nb", cwd=tmp_path, expect=1)
    assert done.stdout == ""
    assert done.stderr.startswith("dftracer: DFTRACER_LOG_FILE: csh cannot read a line break")


@pytest.mark.parametrize("shell", shells())
def test_the_reverse(shell: str, tmp_path: Path) -> None:
    options = "-o traces --data-dir . --no-io --no-metadata --torch -q"
    on = EVAL[shell].format(f"dftracer env --shell {shell} {options}")
    off = UNSET.get(shell, f"DFTRACER_ENABLE=0 dftracer env --shell {shell} --unset")
    done = run(shell, f"{on}\n{EVAL[shell].format(off)}\nenv", tmp_path)
    assert b"DFTRACER_" not in done.stdout
    assert b"LD_PRELOAD" not in done.stdout
    assert not (tmp_path / "traces").exists()


def test_libraries_of_others_stay(tmp_path: Path) -> None:
    other = "/usr/lib/libc.so.6-not-there.so"
    done = dftracer("env", "--shell", "sh", cwd=tmp_path, env={"LD_PRELOAD": other})
    assert f"export LD_PRELOAD={other}:{_libcore.PRELOAD}\n" in done.stdout
    env = {"LD_PRELOAD": f"{other} {_libcore.PRELOAD}", "DFTRACER_ENABLE": "0"}
    done = dftracer("env", "--shell", "sh", "--unset", cwd=tmp_path, env=env)
    assert f"export LD_PRELOAD={other}\n" in done.stdout
    assert "unset DFTRACER_ENABLE\n" in done.stdout


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("/bin/bash", "export DFTRACER_ENABLE=1"),
        ("/usr/bin/zsh", "export DFTRACER_ENABLE=1"),
        ("/bin/tcsh", "setenv DFTRACER_ENABLE '1';"),
        ("/usr/local/bin/fish", "set -gx DFTRACER_ENABLE '1';"),
        ("/opt/other", "export DFTRACER_ENABLE=1"),
        (None, "export DFTRACER_ENABLE=1"),
    ],
)
def test_the_default_is_the_users_shell(given: str | None, first: str, tmp_path: Path) -> None:
    done = dftracer("env", cwd=tmp_path, env={"SHELL": given} if given else {})
    assert done.stdout.splitlines()[0] == first


def events(directory: Path) -> Counter[tuple[str, str, str]]:
    """What was recorded: category, name and file, without times."""
    found: Counter[tuple[str, str, str]] = Counter()
    for trace in traces.read_directory(directory):
        paths = {one["args"]["value"]: one["args"]["name"] for one in trace.named("FH")}
        for event in trace.recorded:
            path = paths.get(event["args"].get("fhash", ""), "").partition(":[")[
                0
            ]  # a pipe's number
            found[(event["cat"], event["name"], path)] += 1
    return found


def test_the_same_traces_as_under_run(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("".join(f"{n}\n" for n in range(10_000)))
    command = ["find", "numbers", "-exec", "gzip", "-k", "{}", ";"]
    dftracer("run", "-o", "by-run", "--", *command, cwd=tmp_path)
    (tmp_path / "numbers.gz").unlink()
    script = f'eval "$(dftracer env --shell sh -o by-env)"; exec {shlex.join(command)}'
    run("sh", script, tmp_path)
    by_run, by_env = tmp_path / "by-run", tmp_path / "by-env"
    assert ("POSIX", "read", str(tmp_path / "numbers")) in events(by_run)
    assert events(by_run) == events(by_env)
    assert len(traces.files(by_run)) == len(traces.files(by_env)) == 2
    assert not traces.spools(by_env)
    assert "2 processes" in dftracer("report", "--no-page", "by-env", cwd=tmp_path).stdout


def test_a_killed_program_is_completed_by_the_next_command(tmp_path: Path) -> None:
    script = (
        """eval "$(dftracer env --shell sh -o traces)"; exec sh -c 'cat /etc/passwd; kill -9 $$'"""
    )
    run("sh", script, tmp_path, code=-9)
    assert traces.spools(tmp_path / "traces")
    done = dftracer("recover", "traces", cwd=tmp_path)
    assert "1" in done.stdout
    assert not traces.spools(tmp_path / "traces")


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for words, status, text in (
        (("--shell", "powershell"), 2, "powershell"),
        (("-o", "file"), 1, "-o file: is not a directory"),
        (("-o", ""), 2, "-o needs a directory"),
        (("--data-dir", "a:b"), 2, "must not contain ':'"),
        (("program",), 2, "program"),
    ):
        done = dftracer("env", *words, cwd=tmp_path, expect=status)
        assert done.stdout == ""
        assert text in done.stderr
        assert len(done.stderr.splitlines()) == 1
