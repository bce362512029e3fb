"""What surrounds a traced program is what surrounds it bare: descriptors, environment, and places
where something is missing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import compare_runs, faults, intercept
from support.compare_runs import assert_marks, both, marks, program
from support.run import environment

# ---- Descriptors ---------------------------------------------------------------------------------


@intercept.IN_EACH_MODE
def test_new_descriptors_have_the_lowest_numbers(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "lowest", mode=mode)
    assert "wrong 0" in done.result.stdout


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("how", ["closefrom", "close_range", "unshare", "loop"])
def test_program_that_closes_every_descriptor(tmp_path: Path, how: str, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "closefrom", how, mode=mode)
    wanted = {1000: 1000, 1001: 3000, 1002: 3000, 1003: 3000, 1100: 100, 1101: 100, 1102: 100}
    assert_marks(marks(*done.processes), wanted)


def test_program_without_a_free_descriptor(tmp_path: Path) -> None:
    done = both(tmp_path, program("harm_fds"), "limit", complains=True, hidden=True, ended=False)
    assert "last 15, errno 24" in done.result.stdout
    faults.recover(done.directory)
    compare_runs.nothing_else(done.directory)
    processes = intercept.read(done.directory)
    found = marks(*processes)
    lost = sum(process.end.get("lost", 0) for process in processes)
    # The child cannot be traced at all, and that is said; what the parent does is kept or counted.
    assert sum(len(offsets) for offsets in found.values()) + lost >= 5000


@pytest.mark.parametrize("number", [16, 5])
def test_few_descriptors_from_the_start(tmp_path: Path, number: int) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))

    both(tmp_path, program("harm_io"), 0, before=few, complains=True)


@intercept.IN_EACH_MODE
def test_program_that_takes_every_number(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "steal", mode=mode)
    assert "wrong 0" in done.result.stdout
    assert_marks(marks(done.one), {1000: 5000})


@intercept.IN_EACH_MODE
def test_files_in_place_of_the_standard_streams(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "closed", mode=mode)
    assert_marks(marks(*done.processes), {1000: 3000, 1001: 100})


@pytest.mark.parametrize("what", ["closed", "own2"])
def test_the_line_at_the_end_never_goes_into_a_file_of_the_program(
    tmp_path: Path, what: str
) -> None:
    both(tmp_path, program("harm_fds"), what, traced_env={"DFTRACER_SUMMARY": "1"})


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    env = {"DFTRACER_SUMMARY": "1"} if "2>&-" in closed else {}
    words = ("bash", "-c", f'exec "$0" "$@" {closed}', program("harm_io"), 2)
    both(tmp_path, *words, traced_env=env)


# ---- Environment ---------------------------------------------------------------------------------


def lines_of_env(env: dict[str, str], cwd: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [*words, "env", "-0"], env=env, cwd=cwd, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return sorted(done.stdout.rstrip("\0").split("\0"))


@pytest.mark.parametrize("words", [(), ("env",), ("sh", "-c", '"$0" "$@"; true'), ("python",)])
def test_environment_is_what_the_user_set(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Nothing is added for the program or for its children, nothing is taken away."""
    if words == ("python",):
        code = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"
        words = (sys.executable, "-c", code)
    odd = {"EMPTY": "", "SPACE": "a b", "LINES_": "1\n2", "EQUALS": "a=b=c"}
    bare = environment(odd, enable=False)
    del bare["DFTRACER_DISABLE_IO"]
    traced = environment({**odd, **intercept.settings(tmp_path)})
    added = {
        f"{name}={value}"
        for name, value in traced.items()
        if name.startswith("DFTRACER_") or name == "LD_PRELOAD"
    }
    expected = lines_of_env(bare, tmp_path, *words)
    assert [
        line for line in lines_of_env(traced, tmp_path, *words) if line not in added
    ] == expected


def test_large_environment(tmp_path: Path) -> None:
    env = {f"VARIABLE_{i}": "x" * 1000 for i in range(1000)}
    env["LONG"] = "y" * 100_000
    both(tmp_path, program("harm_io"), 1, env=env)


HUGE = "h" * 100_000
# Whatever stands in the variables, the program runs as it does bare; what is wrong may be said.
VALUES = [
    {"DFTRACER_LOG_FILE": ""},
    {"DFTRACER_LOG_FILE": HUGE},
    {"DFTRACER_LOG_FILE": "/" + "/d" * 3000 + "/t"},
    {"DFTRACER_LOG_FILE": "/proc/nothing/t"},
    {"DFTRACER_LOG_FILE": "/dev/null/t"},
    {"DFTRACER_DATA_DIR": ""},
    {"DFTRACER_DATA_DIR": ":::"},
    {"DFTRACER_DATA_DIR": HUGE},
    {"DFTRACER_DATA_DIR": ":".join(f"/some/directory/{i}" for i in range(5000))},
    {"DFTRACER_DATA_DIR": "\x01\xff"},
    {"DFTRACER_INIT": ""},
    {"DFTRACER_INIT": "SOMEHOW"},
    {"DFTRACER_INIT": HUGE},
    {"DFTRACER_ENABLE": HUGE},
    {"DFTRACER_ENABLE": "perhaps"},
    {"DFTRACER_SUMMARY": "perhaps"},
    {"DFTRACER_INC_METADATA": "-1"},
    {"DFTRACER_WRITE_BUFFER_SIZE": "99999999999999999999999"},
    {"DFTRACER_TRACE_COMPRESSION": "\n"},
    {"DFTRACER_CONFIGURATION": "/nothing"},
    {"DFTRACER_CONFIGURATION": HUGE},
    {"DFTRACER_LOG_PATH": "/nothing/at/all"},
    {"DFTRACER_SPOOL_DIR": "/nothing/at/all"},
    {"DFTRACER_RUN_ID": "not an id"},
    {"DFTRACER_" + "X" * 50_000: "1"},
    {"DFTRACER_": "1"},
]


def shown(values: dict[str, str]) -> str:
    return ",".join(f"{name[:30]}={value[:12]!r}" for name, value in values.items())


@pytest.mark.parametrize("values", VALUES, ids=shown)
def test_values_that_make_no_sense(tmp_path: Path, values: dict[str, str]) -> None:
    cwd, out = tmp_path / "w", tmp_path / "d"
    seen = []
    for trace in (False, True):
        cwd.mkdir()
        out.mkdir(exist_ok=True)
        (cwd / "data").write_bytes(compare_runs.DATA)
        env = {**intercept.settings(out), **values} if trace else {}
        words = (program("harm_steps"), "marks=1000:1000", "fork{", "marks=1001:10", "}")
        one = compare_runs.once((*words, "system=marks=1002:5"), cwd, env, enable=trace)
        files = {name: what for name, what in one.files.items() if not name.startswith("trace")}
        seen.append((one.status, one.stdout, files))
        for line in one.stderr.splitlines() if trace else []:
            assert line.startswith(b"dftracer: "), line
            assert len(line) < 1000
        shutil.rmtree(cwd)
    # An empty name of the trace is the default, in the current directory.
    assert seen[1] == seen[0]


# ---- Places where something is missing -----------------------------------------------------------

INSIDE = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


def need_namespace() -> None:
    done = subprocess.run([*INSIDE, "mount -t tmpfs none /proc"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("a file system cannot be mounted here (needs root)")


@pytest.mark.parametrize(
    "missing",
    [
        "mount -t tmpfs none /proc",
        "umount -l /dev/shm",
        "mount -t tmpfs none /proc; mount -t tmpfs none /dev/shm; mount -o remount,ro /dev/shm",
        "mount -t tmpfs none /sys; mount -t tmpfs -o ro none /run",
        "mount -t tmpfs none /etc",
    ],
)
def test_system_without_some_of_its_directories(tmp_path: Path, missing: str) -> None:
    need_namespace()
    script = f'{missing}; exec "$0" "$@"'
    cwd, out = tmp_path / "w", tmp_path / "d"
    seen = []
    for trace in (False, True):
        cwd.mkdir()
        (cwd / "data").write_bytes(compare_runs.DATA)
        words: list[str | Path] = [*INSIDE, script]
        if trace:
            # Only the program is traced, not what takes the directories away.
            out.mkdir()
            words += ["env", *(f"{k}={v}" for k, v in intercept.settings(out).items())]
        words += [program("harm_io"), "2"]
        seen.append(compare_runs.once(tuple(words), cwd, {}, enable=trace))
        shutil.rmtree(cwd)
    assert seen[1] == seen[0]
    # Without /proc a program does not know what its process was before, whose file has no end then.
    compare_runs.nothing_else(out)
    assert_marks(marks(*intercept.read(out, ended="/proc" not in missing)), {1000: 1000})


@pytest.mark.parametrize("user", [None, 54321])
def test_no_home_and_a_user_without_a_name(user: int | None) -> None:
    if user is not None and os.getuid() != 0:
        pytest.skip("needs root")
    # Not below pytest's directory, into which another user cannot look.
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        cwd, out, library = top / "w", top / "d", top / "lib"
        for directory in (cwd, out):
            directory.mkdir()
            directory.chmod(0o777)
        (cwd / "data").write_bytes(compare_runs.DATA)
        shutil.copy(program("harm_io"), top / "program")
        shutil.copytree(intercept.library().parent, library)
        env = environment(intercept.settings(out))
        env.pop("HOME", None)
        env["LD_PRELOAD"] = str(library / intercept.library().name)
        done = subprocess.run(
            [top / "program", "1"],
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert_marks(marks(*intercept.read(out)), {1000: 1000})


@pytest.mark.parametrize("how", ["errno", "kill", "strict"])
def test_sandbox_that_forbids_what_we_need(tmp_path: Path, how: str) -> None:
    status = 0 if how == "strict" else 6
    done = both(tmp_path, program("harm_sandbox"), how, expect=status, hidden=True, ended=False)
    assert "end" in done.result.stdout or how == "strict"
    faults.recover(done.directory)
    (process,) = intercept.read(done.directory, open_parents=True)
    # What came before it was forbidden is there, and nothing twice.
    have = marks(process)[1000]
    assert set(range(10)) <= set(have)
    assert set(have.values()) == {1}


def test_directory_of_the_trace_cannot_be_written(tmp_path: Path) -> None:
    def seen(env: dict[str, str], enable: bool) -> compare_runs.Ended:
        cwd = tmp_path / "w"
        cwd.mkdir()
        (cwd / "data").write_bytes(compare_runs.DATA)
        one = compare_runs.once((program("harm_io"), 2), cwd, env, enable=enable)
        shutil.rmtree(cwd)
        return one

    bare = seen({}, False)
    settings = {**intercept.settings(tmp_path), "DFTRACER_LOG_FILE": "/proc/1/nothing/t"}
    traced = seen(settings, True)
    assert (traced.status, traced.stdout, traced.files) == (bare.status, bare.stdout, bare.files)
    lines = traced.stderr.splitlines()
    assert all(line.startswith(b"dftracer: ") for line in lines)
    assert len(lines) >= 1
