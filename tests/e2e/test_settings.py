"""Settings from the environment and the YAML file: what is not understood is said, in one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import traces
from support.api_driver import SOURCE, Command, play, script
from support.build import command, prefix
from support.run import environment

INIT: Command = ("init", "t.pfw", None, None)
SPAN: list[Command] = [("begin", 0, "span", "app"), ("end", 0)]
FINI: Command = ("fini",)


def test_an_unknown_variable_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    result = play(
        INIT, *SPAN, FINI, cwd=tmp_path, env={"DFTRACER_TRACE_COMPRESION": "0"}, stderr=None
    )
    assert re.fullmatch(
        r"dftracer: DFTRACER_TRACE_COMPRESION is not a setting;"
        r" did you mean DFTRACER_TRACE_COMPRESSION\?\n",
        result.stderr,
    )
    assert len(traces.read_one(tmp_path).recorded) == 1


def test_an_unknown_variable_that_resembles_nothing(tmp_path: Path) -> None:
    result = play(INIT, cwd=tmp_path, env={"DFTRACER_XYZZY_PLUGH_ABRACADABRA": "1"}, stderr=None)
    assert result.stderr == "dftracer: DFTRACER_XYZZY_PLUGH_ABRACADABRA is not a setting\n"


def test_what_others_define_is_passed_over_in_silence(tmp_path: Path) -> None:
    env = {"DFTRACER_UTILS_THREADS": "4", "DFTRACER_DIR": "/opt", "DFTRACERX": "1", "DFTRACER": "1"}
    play(INIT, cwd=tmp_path, env=env)
    traces.read_one(tmp_path)


INVALID = {
    "DFTRACER_TRACE_COMPRESSION": ("perhaps", "1"),
    "DFTRACER_COMPRESSION_LEVEL": ("9", "1"),
    "DFTRACER_WRITE_BUFFER_SIZE": ("4k", "524288"),
    "DFTRACER_TIME_METRIC": ("HOURS", "US"),
    "DFTRACER_INC_METADATA": ("2", "1"),
    "DFTRACER_DISABLE_TIDS": ("-1", "0"),
    "DFTRACER_LOG_LEVEL": ("LOUD", "ERROR"),
    "DFTRACER_RUN_ID": ("xyz", "the default"),
}


@pytest.mark.parametrize("name", sorted(INVALID))
def test_an_invalid_value_is_named_with_what_is_used(tmp_path: Path, name: str) -> None:
    value, used = INVALID[name]
    result = play(INIT, *SPAN, FINI, cwd=tmp_path, env={name: value}, stderr=None)
    assert re.fullmatch(
        rf'dftracer: {name}="{value}" is not .+; using {re.escape(used)}\n', result.stderr
    )
    assert [path.name for path in traces.files(tmp_path)] == ["t.pfw.gz"]
    assert len(traces.read_one(tmp_path).recorded) == 1


@pytest.mark.parametrize("spans", [0, 1])
def test_no_file_remains_when_every_category_is_disabled(tmp_path: Path, spans: int) -> None:
    """Unless the program has regions of its own."""
    parts = ("POSIX", "STDIO", "IO_URING")
    off = {"DFTRACER_DISABLE_IO": "0", **{f"DFTRACER_DISABLE_{part}": "1" for part in parts}}
    play(INIT, *(SPAN * spans), FINI, cwd=tmp_path, env={**off, "DFTRACER_SUMMARY": "0"})
    assert len(list(tmp_path.glob("t.pfw*"))) == spans


def test_a_value_cannot_forge_a_line(tmp_path: Path) -> None:
    result = play(
        INIT,
        cwd=tmp_path,
        env={"DFTRACER_TIME_METRIC": "x\ndftracer: all is well\x1b[2J"},
        stderr=None,
    )
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def test_settings_without_effect_say_so(tmp_path: Path) -> None:
    result = play(INIT, cwd=tmp_path, env={"DFTRACER_BIND_SIGNALS": "1"}, stderr=None)
    assert re.fullmatch(r"dftracer: DFTRACER_BIND_SIGNALS=1 has no effect: .+\n", result.stderr)
    (tmp_path / "off").mkdir()
    play(INIT, cwd=tmp_path / "off", env={"DFTRACER_BIND_SIGNALS": "0"})


def test_diagnostics_go_to_the_file_that_is_named(tmp_path: Path) -> None:
    log = tmp_path / "logs.txt"
    play(
        INIT,
        cwd=tmp_path,
        env={"DFTRACER_LOG_PATH": str(log), "DFTRACER_TIME_METRIC": "HOURS"},
    )
    assert log.read_text().startswith('dftracer: DFTRACER_TIME_METRIC="HOURS" is not')


def configured(directory: Path, text: str, env: dict[str, str] | None = None) -> dict[str, str]:
    file = directory / "settings.yaml"
    file.write_text(text)
    return {"DFTRACER_CONFIGURATION": str(file), **(env or {})}


YAML = """
enable: true
{block}:
  log_file: from_yaml/trace.pfw
  compression: false
  time_metric: NS
features:
  metadata: false
"""


@pytest.mark.parametrize("block", ["profiler", "tracer"])
def test_the_yaml_file_is_read(tmp_path: Path, block: str) -> None:
    env = configured(tmp_path, YAML.format(block=block))
    play(("init", None, None, None), *SPAN, FINI, cwd=tmp_path, enable=False, env=env)
    trace = traces.read_one(tmp_path / "from_yaml")
    assert trace.path.name == "trace.pfw"
    assert trace.meta("CM", "time_metric") == ["NS"]
    assert trace.named("FH") == []


def test_the_variable_wins_over_the_file(tmp_path: Path) -> None:
    env = configured(
        tmp_path,
        YAML.format(block="profiler"),
        {
            "DFTRACER_LOG_FILE": "from_env/trace.pfw",
            "DFTRACER_TRACE_COMPRESSION": "1",
            "DFTRACER_TIME_METRIC": "US",
            "DFTRACER_INC_METADATA": "1",
        },
    )
    play(("init", None, None, None), *SPAN, FINI, cwd=tmp_path, enable=False, env=env)
    assert not (tmp_path / "from_yaml").exists()
    trace = traces.read_one(tmp_path / "from_env")
    assert trace.path.name == "trace.pfw.gz"
    assert trace.meta("CM", "time_metric") == []
    assert trace.named("FH") != []


def test_the_variable_switches_off_what_the_file_switches_on(tmp_path: Path) -> None:
    env = configured(tmp_path, "enable: true\n", {"DFTRACER_ENABLE": "0"})
    play(INIT, *SPAN, cwd=tmp_path, enable=False, env=env)
    assert traces.files(tmp_path) == []


def test_the_variable_switches_on_what_the_file_switches_off(tmp_path: Path) -> None:
    env = configured(tmp_path, "enable: false\n", {"DFTRACER_ENABLE": "1"})
    play(INIT, *SPAN, cwd=tmp_path, enable=False, env=env)
    assert len(traces.read(tmp_path / "t.pfw.gz").recorded) == 1


@pytest.mark.parametrize(
    "text",
    [
        "profiler:\n  compresion: false\n",
        "profiler:\n  compression: perhaps\n",
        "profiler: [\n",
        "- a\n- list\n",
        "just text\n",
        "\t\n",
        "\0\xff\n",
    ],
)
def test_a_wrong_yaml_file_is_reported_and_the_program_goes_on(tmp_path: Path, text: str) -> None:
    env = configured(tmp_path, text)
    result = play(INIT, *SPAN, FINI, cwd=tmp_path, env=env, stderr=None)
    assert result.stdout == "0\n"
    assert len(traces.read(tmp_path / "t.pfw.gz").recorded) == 1
    if text != "\t\n":
        assert re.fullmatch(r"(dftracer: .*\n)+", result.stderr)
        assert "settings.yaml" in result.stderr


def test_a_yaml_file_that_is_missing(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    result = play(INIT, cwd=tmp_path, env={"DFTRACER_CONFIGURATION": str(missing)}, stderr=None)
    assert result.stderr == f"dftracer: cannot read the configuration {missing}: no such file\n"
    traces.read_one(tmp_path)


# ---- A program with the rights of another --------------------------------------------------------


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user can reach and write, which pytest's own are not."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a set-uid program of another user")
    with tempfile.TemporaryDirectory(prefix="dftracer-public-") as name:
        directory = Path(name)
        directory.chmod(0o1777)
        for part in directory.parents:
            if part.stat().st_mode & 0o001 == 0:
                pytest.skip(f"other users cannot reach {part}")
        yield directory


def other_user(*words: str | Path, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess:
    setpriv = shutil.which("setpriv")
    assert setpriv is not None, "setpriv (util-linux) is needed to become another user"
    return subprocess.run(
        [setpriv, "--reuid=12345", "--regid=12345", "--clear-groups", *map(str, words)],
        input=script([INIT, *SPAN, ("active",), FINI]),
        cwd=cwd,
        env=env,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("set_uid", [False, True])
def test_a_set_uid_program_ignores_every_setting(public: Path, set_uid: bool) -> None:
    """The same program, started the same way, is traced only without the bit."""
    # The loader ignores LD_LIBRARY_PATH and $ORIGIN for such a program, and the other user may not
    # be able to reach the tree that is tested: hence a copy, whose path is in the program.
    library = public / "lib"
    shutil.copytree(prefix() / "lib", library)
    driver = public / "driver"
    place = [f"-I{prefix()}/include", f"-L{library}", f"-Wl,-rpath,{library}"]
    command("cc", SOURCE, "-o", driver, *place, "-ldftracer_core", "-lpthread")
    os.chown(driver, 65534, 65534)
    driver.chmod(0o4755 if set_uid else 0o755)
    work = public / "work"
    work.mkdir()
    work.chmod(0o777)
    env = environment(
        {
            "DFTRACER_NONSENSE": "1",
            "DFTRACER_LOG_FILE": str(work / "env"),
            "DFTRACER_LOG_PATH": str(work / "log"),
            "RANK": "1",
        }
    )
    done = other_user(driver, cwd=work, env=env)
    assert done.returncode == 0, done
    made = sorted(path.name for path in work.iterdir())
    if set_uid:
        assert done.stdout.split() == [b"-1", b"0"]
        assert done.stderr == b""
        assert made == []
    else:
        assert done.stdout.split() == [b"0", b"1"]
        assert made == ["log", "t.pfw.gz"]
