"""A traced program does what it does bare: results, errno, offsets, buffers, files, descriptors,
environment, signals, cancellation and exit status are compared, each program run both ways."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import faults, harm, intercept
from support.build import ROOT
from support.harm import assert_marks, both, marks, program
from support.run import environment, run

FORTIFIED = ("-O2", "-D_FORTIFY_SOURCE=2")
LARGE = ("-D_FILE_OFFSET_BITS=64", "-D_TIME_BITS=64")
NOW = ("-O2", "-Wl,-z,now")
# The same source in the forms that compilers make of it: each imports other names.
FORMS = pytest.mark.parametrize("form", [(), FORTIFIED, LARGE], ids=["plain", "fortified", "64"])


# By preload, and by changing the import tables of a running program.
WAYS = pytest.mark.parametrize("mode", intercept.MODES)


# ---- Arguments -----------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("pointer", ["null", "one", "page", "edge", "high"])
def test_bad_pointers_give_efault(tmp_path: Path, pointer: str, mode: str) -> None:
    done = both(tmp_path, program("harm_paths"), "pointer", pointer, mode=mode)
    assert "open(PATH, O_RDONLY) = -1, errno 14" in done.result.stdout
    assert done.result.stdout.endswith("end\n")
    # They are recorded as what they are: calls that failed, without a path.
    failed = [event for event in done.events if event.name == "open" and event.args["ret"] == -1]
    assert failed
    assert {event.args["errno"] for event in failed} == {14}


SIZES = [255, 256, 4094, 4095, 4096, 4097, 5000, 70000, 1 << 20]
# A shorter path of the last two kinds would be that of a directory of the system.
LONG = [
    *((size, piece) for size in SIZES for piece in ("a", "./") if size <= 4096),
    *((size, piece) for size in SIZES for piece in ("a", "./", "/", "../") if size > 4096),
]


@pytest.mark.parametrize(("size", "piece"), LONG)
def test_long_paths(tmp_path: Path, size: int, piece: str) -> None:
    done = both(tmp_path, program("harm_paths"), "length", size, piece)
    if size > 4095:
        assert "open(PATH, O_RDONLY) = -1, errno 36" in done.result.stdout
        failed = [event for event in done.events if event.args.get("errno") == 36]
        assert len(failed) > 40


@WAYS
@pytest.mark.parametrize("setting", [{}, {"DFTRACER_DATA_DIR": "all"}, {"DFTRACER_DATA_DIR": "/"}])
def test_current_directory_of_more_than_4_kib(
    tmp_path: Path, setting: dict[str, str], mode: str
) -> None:
    done = both(tmp_path, program("harm_paths"), "deep", traced_env=setting, mode=mode)
    assert done.result.stdout.endswith("child 0\nend\n")
    if setting.get("DFTRACER_DATA_DIR") != "/":
        # What has no name that could be found is below no directory.
        assert [event.args["ret"] for event in done.events if event.name == "rename"] == [0]


@WAYS
def test_empty_path(tmp_path: Path, mode: str) -> None:
    both(tmp_path, program("harm_paths"), "empty", mode=mode)


@WAYS
@FORMS
@pytest.mark.parametrize("what", ["open", "fcntl", "ioctl", "syscall", "stdio", "wide"])
def test_variadic_calls(tmp_path: Path, what: str, form: tuple[str, ...], mode: str) -> None:
    done = both(
        tmp_path, program("harm_variadic", *form, "-lrt"), what, stdin=b"4 5.5 6\n", mode=mode
    )
    if what == "open":
        modes = [event.args.get("mode") for event in done.events if event.name == "creat"]
        assert modes == [0o765] or form == LARGE


EXECS = ["execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve", "execveat"]


@WAYS
@pytest.mark.parametrize("how", [*EXECS, "spawn", "spawnp", "many", "fail"])
def test_exec_passes_every_word_and_variable(tmp_path: Path, how: str, mode: str) -> None:
    made = program("harm_variadic", "-lrt")
    path = f"{os.environ['PATH']}:{made.parent}"
    status = 5 if how in EXECS else 0
    env = {"PATH": path, "HARM": "a value"}
    both(tmp_path, made, how, made, made.name, env=env, expect=status, mode=mode)


# ---- Signals, threads, jumps ---------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("what", ["eintr", "restart", "eagain", "epipe", "mask"])
def test_signals(tmp_path: Path, what: str, mode: str) -> None:
    both(tmp_path, program("harm_signals"), what, mode=mode)


@WAYS
def test_sigpipe_kills(tmp_path: Path, mode: str) -> None:
    done = both(
        tmp_path,
        program("harm_signals"),
        "sigpipe",
        expect=-13,
        hidden=True,
        ended=False,
        mode=mode,
    )
    assert done.result.stdout == "before\n"
    faults.recover(done.directory)
    harm.nothing_else(done.directory)
    (process,) = intercept.read(done.directory)
    assert process.named("pipe")


def test_sigpipe_kills_in_a_shell(tmp_path: Path) -> None:
    both(tmp_path, "bash", "-c", "set -o pipefail; yes | head -n 2; echo $? ${PIPESTATUS[*]}")


def traced(tmp_path: Path, *words: str | Path | int) -> intercept.Run:
    """Only traced: how often a timer fires differs."""
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(harm.DATA)
    done = intercept.traced(words[0], *words[1:], cwd=cwd, out=tmp_path / "d")  # type: ignore[arg-type]
    harm.nothing_else(done.directory)
    return done


def test_calls_in_a_signal_handler(tmp_path: Path) -> None:
    done = traced(tmp_path, program("harm_signals"), "handler", 500)
    made, handled = map(int, done.result.stdout.split())
    assert handled == 500
    assert_marks(marks(done.one), {1000: made, 2000: handled})
    assert len([event for event in done.events if event.args.get("count") == 16]) == handled


@WAYS
@pytest.mark.parametrize("spare", [2048, 6144])
@pytest.mark.parametrize("count", [10, 5000])
def test_calls_on_a_small_signal_stack(tmp_path: Path, spare: int, count: int, mode: str) -> None:
    done = both(tmp_path, program("harm_signals", *NOW), "altstack", spare, count, mode=mode)
    reads = [event for event in done.one.named("pread") if event.args["count"] == 1]
    assert len(reads) == 2 * count


@WAYS
def test_handler_inside_a_handler(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_signals"), "nested", mode=mode)
    assert_marks(marks(done.one), {1000: 500, 2000: 1000, 3000: 500})


@WAYS
def test_siglongjmp_out_of_a_read(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_signals"), "jump", 200, mode=mode)
    assert_marks(marks(done.one), {1000: 10000})


@WAYS
def test_longjmp_out_of_a_write_of_stdio(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_signals"), "cookie", 50, mode=mode)
    assert_marks(marks(done.one), {1000: 500, 2000: 50})


@WAYS
def test_threads_cancelled_in_calls(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_cancel"), "blocked", mode=mode)
    lines = done.result.stdout.splitlines()
    assert len(lines) == 17
    found = marks(*done.processes)
    assert found.pop(5000) == dict.fromkeys(range(10), 1)
    assert_marks(found, {1000 + i: 20 for i in range(16)})


@WAYS
def test_cancellation_acts_where_it_does_in_a_bare_program(tmp_path: Path, mode: str) -> None:
    """A wrapper must neither hide a cancellation point nor make one."""
    both(tmp_path, program("harm_cancel"), "pending", mode=mode)


@WAYS
def test_a_thousand_cancelled_threads(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_cancel"), "handlers", mode=mode)
    found = marks(*done.processes)
    found.pop(5000)
    assert_marks(found, {1000 + i: 20 for i in range(1000)})


@WAYS
def test_smallest_thread_stacks(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "small", 8, mode=mode)
    assert_marks(marks(done.one), {1000 + i: 1500 for i in range(8)})


@WAYS
def test_destructors_of_thread_specific_data(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "keys", 20, mode=mode)
    have = marks(done.one)
    for i in range(20):
        # Half of the threads make their first call in the destructor, which runs four times.
        assert sorted(have[1000 + i]) == list(range(0 if i % 2 else 10, 50)), i
        assert set(have[1000 + i].values()) == {1}


@WAYS
def test_coroutines(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "coroutines", 500, mode=mode)
    assert_marks(marks(done.one), {1000 + i: 500 for i in range(4)})


@WAYS
def test_many_short_threads(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "many", 1000, mode=mode)
    assert_marks(marks(done.one), {1000: 1000})


def test_exit_in_a_thread_while_others_go_on(tmp_path: Path) -> None:
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(harm.DATA)
    done = intercept.traced(
        *(program("harm_threads"), "exit"), cwd=cwd, out=tmp_path / "d", expect=4, ended=False
    )
    # What the other threads still recorded while the process went down may wait in a spool.
    faults.recover(done.directory)
    harm.nothing_else(done.directory)
    assert done.result.stdout == "exit\n"
    assert_marks(marks(*intercept.read(done.directory, open_parents=True)), {1000: 500})


@WAYS
def test_main_thread_leaves_before_the_last(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "last", mode=mode)
    assert_marks(marks(*done.processes), {1000: 500, 1001: 500})


# ---- C++, and the moments around main ------------------------------------------------------------


@WAYS
def test_exceptions_streams_and_thread_local_objects(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_cpp.cpp", "-O1"), mode=mode)
    have = marks(done.one)
    for i in range(8):
        assert sorted(have.pop(1100 + i)) == list(range(0 if i % 2 else 10, 20)), i
    assert_marks(have, {1000: 100, 1001: 100, 1002: 3, 1003: 10, 1200: 20})


# Before any constructor: the executable's .preinit_array, and the choice of an implementation while
# it is relocated.
EARLIEST = {1001: 25, 1006: 1}
STAGES = dict.fromkeys((1002, 1003, 1010, 1101, 1102, 1103), 25)


@pytest.mark.parametrize(
    ("leave", "last"),
    [
        ("return", [1004, 1005, 1007, 1009, 1104]),
        ("exit", [1004, 1005, 1007, 1009, 1104]),
        ("quick_exit", [1008]),
        ("_exit", []),
    ],
)
@pytest.mark.parametrize("link", ["lazy", "now"])
def test_calls_before_and_after_main(
    tmp_path: Path, leave: str, last: list[int], link: str
) -> None:
    """Also in constructors before ours and in destructors after ours."""
    library = harm.library("harm_stages_lib", None, f"-Wl,-z,{link}")
    made = program("harm_stages", "-Wl,--no-as-needed", str(library), f"-Wl,-z,{link}")
    done = both(tmp_path, made, leave, expect=3, hidden=True)
    # What comes after the tracer's own end is for whoever reads the trace.
    faults.recover(done.directory)
    harm.nothing_else(done.directory)
    found = marks(*intercept.read(done.directory, open_parents=True))
    for who in EARLIEST:
        found.pop(who, None)
    assert_marks(found, {**STAGES, **dict.fromkeys(last, 25)})


def test_calls_before_any_constructor(tmp_path: Path) -> None:
    """libc itself is not ready for anybody then: they work, and are not recorded."""
    library = harm.library("harm_stages_lib", None)
    made = program("harm_stages", "-Wl,--no-as-needed", str(library))
    both(tmp_path, made, "_exit", expect=3)


def test_calls_in_the_resolver_of_a_library(tmp_path: Path) -> None:
    """While libraries are relocated, ours is not yet."""
    library = harm.library("harm_stages_lib", None, "-DIFUNC")
    made = program("harm_stages", "-Wl,--no-as-needed", str(library))
    done = both(tmp_path, made, "return", expect=3, hidden=True)
    assert "library 8" in done.result.stdout


# ---- Descriptors ---------------------------------------------------------------------------------


@WAYS
def test_new_descriptors_have_the_lowest_numbers(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "lowest", mode=mode)
    assert "wrong 0" in done.result.stdout


@WAYS
@pytest.mark.parametrize("how", ["closefrom", "close_range", "unshare", "loop"])
def test_program_that_closes_every_descriptor(tmp_path: Path, how: str, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "closefrom", how, mode=mode)
    wanted = {1000: 1000, 1001: 3000, 1002: 3000, 1003: 3000, 1100: 100, 1101: 100, 1102: 100}
    assert_marks(marks(*done.processes), wanted)


def test_program_without_a_free_descriptor(tmp_path: Path) -> None:
    done = both(tmp_path, program("harm_fds"), "limit", complains=True, hidden=True, ended=False)
    assert "last 15, errno 24" in done.result.stdout
    faults.recover(done.directory)
    harm.nothing_else(done.directory)
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


@WAYS
def test_program_that_takes_every_number(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_fds"), "steal", mode=mode)
    assert "wrong 0" in done.result.stdout
    assert_marks(marks(done.one), {1000: 5000})


@WAYS
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
        (cwd / "data").write_bytes(harm.DATA)
        env = {**intercept.settings(out), **values} if trace else {}
        words = (program("harm_steps"), "marks=1000:1000", "fork{", "marks=1001:10", "}")
        one = harm.once((*words, "system=marks=1002:5"), cwd, env, enable=trace)
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
        (cwd / "data").write_bytes(harm.DATA)
        words: list[str | Path] = [*INSIDE, script]
        if trace:
            # Only the program is traced, not what takes the directories away.
            out.mkdir()
            words += ["env", *(f"{k}={v}" for k, v in intercept.settings(out).items())]
        words += [program("harm_io"), "2"]
        seen.append(harm.once(tuple(words), cwd, {}, enable=trace))
        shutil.rmtree(cwd)
    assert seen[1] == seen[0]
    # Without /proc a program does not know what its process was before, whose file has no end then.
    harm.nothing_else(out)
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
        (cwd / "data").write_bytes(harm.DATA)
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
    def seen(env: dict[str, str], enable: bool) -> harm.Ended:
        cwd = tmp_path / "w"
        cwd.mkdir()
        (cwd / "data").write_bytes(harm.DATA)
        one = harm.once((program("harm_io"), 2), cwd, env, enable=enable)
        shutil.rmtree(cwd)
        return one

    bare = seen({}, False)
    settings = {**intercept.settings(tmp_path), "DFTRACER_LOG_FILE": "/proc/1/nothing/t"}
    traced = seen(settings, True)
    assert (traced.status, traced.stdout, traced.files) == (bare.status, bare.stdout, bare.files)
    lines = traced.stderr.splitlines()
    assert all(line.startswith(b"dftracer: ") for line in lines)
    assert len(lines) >= 1


# ---- Programs of a kind of their own -------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("flags", [(), ("-rdynamic",), ("-rdynamic", "-O2", "-Wl,-z,now")])
def test_program_with_functions_called_open_and_read(
    tmp_path: Path, flags: tuple[str, ...], mode: str
) -> None:
    both(tmp_path, program("harm_own", "-fno-builtin", *flags), mode=mode)


@WAYS
def test_allocator_of_the_program_that_does_io(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_malloc", "-fno-builtin"), mode=mode)
    assert_marks(marks(done.one), {1000: 2000})


@WAYS
@pytest.mark.parametrize("form", [(), LARGE], ids=["plain", "64"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_walk_over_a_file(
    tmp_path: Path, seed: int, form: tuple[str, ...], mode: str
) -> None:
    both(tmp_path, program("harm_fsx", *form), seed, 3000, mode=mode)


@WAYS
def test_little_of_everything(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_io"), 8, mode=mode)
    assert_marks(marks(*done.processes), {1000: 1000})
    harm.one_run(done.processes)


@pytest.mark.parametrize(
    "setting",
    [
        {"DFTRACER_ENABLE": "0"},
        {"DFTRACER_DISABLE_IO": "1"},
        {"DFTRACER_DISABLE_POSIX": "1"},
        {"DFTRACER_DISABLE_STDIO": "1"},
        {"DFTRACER_DATA_DIR": "all"},
        {"DFTRACER_DATA_DIR": "/nothing"},
        {"DFTRACER_INC_METADATA": "0"},
        {"DFTRACER_INIT": "FUNCTION"},
        {"DFTRACER_TRACE_COMPRESSION": "0"},
        {"DFTRACER_WRITE_BUFFER_SIZE": "0"},
    ],
    ids=str,
)
def test_little_of_everything_under_every_setting(tmp_path: Path, setting: dict[str, str]) -> None:
    both(tmp_path, program("harm_io"), 4, traced_env=setting)


@WAYS
def test_our_own_calls_are_never_seen(tmp_path: Path, mode: str) -> None:
    """With everything traced, also the directory of the trace: files that only the tracer uses."""
    done = both(tmp_path, program("harm_io"), 4, traced_env={"DFTRACER_DATA_DIR": "all"}, mode=mode)
    assert [event for event in done.events if str(done.directory) in (event.path or "")] == []
    # One event a call, however it is nested inside: marks are single calls.
    assert_marks(marks(*done.processes), {1000: 1000})


PYTHON = """
import os, sys, tempfile, threading, subprocess, shutil, mmap, select, signal, io
print(sys.argv, os.getcwd() == os.path.realpath('.'), sorted(os.listdir('.')))
with tempfile.TemporaryDirectory(dir='.') as place:
    path = os.path.join(place, 'file')
    with open(path, 'w') as file:
        print(file.write('text' * 1000), file.fileno(), file.tell())
    with open(path, 'rb', buffering=0) as file:
        print(len(file.read(100)), file.seek(-5, 2), file.read(), file.readinto(bytearray(3)))
    os.rename(path, path + '2')
    print(os.stat(path + '2').st_size, shutil.copyfile(path + '2', path) == path)
    with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:4] = b'TEXT'
        memory.flush()
    print(open(path).read(8), sorted(entry.name for entry in os.scandir(place)))
    def work(number):
        for _ in range(100):
            with open(path) as file:
                file.read(10)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
for name in ('missing', 'a' * 300, 'nul\\0byte', ''):
    try:
        open(name)
    except (OSError, ValueError) as error:
        print(type(error).__name__, getattr(error, 'errno', None))
print(subprocess.run(['cat'], input=b'through', stdout=subprocess.PIPE).stdout)
print(subprocess.run(['false']).returncode, os.system('exit 3'))
with os.popen('echo popen') as shell:
    print(shell.read())
r, w = os.pipe()
print(os.write(w, b'x'), select.select([r], [], [], 0)[0] == [r], os.read(r, 5))
try:
    os.read(999, 1)
except OSError as error:
    print(error)
print(os.open('data', os.O_RDONLY))
"""


@WAYS
def test_python_program(tmp_path: Path, mode: str) -> None:
    both(tmp_path, sys.executable, "-c", PYTHON, "word", mode=mode)


def test_interpreters_exit_codes_and_tracebacks(tmp_path: Path) -> None:
    both(tmp_path, sys.executable, "-c", "open('missing')", expect=1)


SCRIPTS = [
    "cp data a; mv a b; ln -s b c; cat c | sha256sum; rm b c; ls -l data | cut -c 1-10",
    "dd if=data of=copy bs=100 count=50 2>/dev/null; cmp -n 5000 data copy; stat -c %s copy",
    "tar cf t.tar data; mkdir x; tar xf t.tar -C x; cmp data x/data; tar tf t.tar; rm t.tar",
    "seq 1000 | sort -R --random-source=data | sort -n | tail -n 1; rm -rf none",
    "find . -type f -exec wc -c {} + | sort; grep -c . /etc/passwd >/dev/null; echo $?",
    "touch -d @1000 f; date -r f +%s; chmod 600 f; mkfifo p; (echo in > p &) ; cat p",
]


@WAYS
@pytest.mark.parametrize("script", SCRIPTS)
def test_shell_programs(tmp_path: Path, script: str, mode: str) -> None:
    both(tmp_path, "bash", "-c", script, mode=mode)


def test_library_needs_nothing_of_ours_in_the_working_directory(tmp_path: Path) -> None:
    """Neither the package nor the source tree need be there, only the two libraries."""
    copied = tmp_path / "somewhere" / "lib"
    shutil.copytree(intercept.library().parent, copied)
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(harm.DATA)
    settings = intercept.settings(tmp_path / "d")
    settings["LD_PRELOAD"] = str(copied / intercept.library().name)
    run(program("harm_io"), 1, cwd=cwd, env=settings)
    assert str(ROOT) not in settings["LD_PRELOAD"]
    assert_marks(marks(*intercept.read(tmp_path / "d")), {1000: 1000})
