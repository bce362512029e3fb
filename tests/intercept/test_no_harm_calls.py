"""Calls of a traced program do what they do bare: with any arguments, in signal handlers and
threads, across jumps, and before and after main."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import compare_runs, faults, intercept
from support.compare_runs import assert_marks, both, marks, program

FORTIFIED = ("-O2", "-D_FORTIFY_SOURCE=2")
LARGE = ("-D_FILE_OFFSET_BITS=64", "-D_TIME_BITS=64")
NOW = ("-O2", "-Wl,-z,now")
# The same source in the forms that compilers make of it: each imports other names.
FORMS = pytest.mark.parametrize("form", [(), FORTIFIED, LARGE], ids=["plain", "fortified", "64"])


# ---- Arguments -----------------------------------------------------------------------------------


@intercept.IN_EACH_MODE
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


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("setting", [{}, {"DFTRACER_DATA_DIR": "all"}, {"DFTRACER_DATA_DIR": "/"}])
def test_current_directory_of_more_than_4_kib(
    tmp_path: Path, setting: dict[str, str], mode: str
) -> None:
    done = both(tmp_path, program("harm_paths"), "deep", traced_env=setting, mode=mode)
    assert done.result.stdout.endswith("child 0\nend\n")
    if setting.get("DFTRACER_DATA_DIR") != "/":
        # What has no name that could be found is below no directory.
        assert [event.args["ret"] for event in done.events if event.name == "rename"] == [0]


@intercept.IN_EACH_MODE
def test_empty_path(tmp_path: Path, mode: str) -> None:
    both(tmp_path, program("harm_paths"), "empty", mode=mode)


@intercept.IN_EACH_MODE
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


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("how", [*EXECS, "spawn", "spawnp", "many", "fail"])
def test_exec_passes_every_word_and_variable(tmp_path: Path, how: str, mode: str) -> None:
    made = program("harm_variadic", "-lrt")
    path = f"{os.environ['PATH']}:{made.parent}"
    status = 5 if how in EXECS else 0
    env = {"PATH": path, "HARM": "a value"}
    both(tmp_path, made, how, made, made.name, env=env, expect=status, mode=mode)


# ---- Signals, threads, jumps ---------------------------------------------------------------------


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("what", ["eintr", "restart", "eagain", "epipe", "mask"])
def test_signals(tmp_path: Path, what: str, mode: str) -> None:
    both(tmp_path, program("harm_signals"), what, mode=mode)


@intercept.IN_EACH_MODE
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
    compare_runs.nothing_else(done.directory)
    (process,) = intercept.read(done.directory)
    assert process.named("pipe")


def test_sigpipe_kills_in_a_shell(tmp_path: Path) -> None:
    both(tmp_path, "bash", "-c", "set -o pipefail; yes | head -n 2; echo $? ${PIPESTATUS[*]}")


def traced(tmp_path: Path, *words: str | Path | int) -> intercept.Run:
    """Only traced: how often a timer fires differs."""
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(compare_runs.DATA)
    done = intercept.traced(words[0], *words[1:], cwd=cwd, out=tmp_path / "d")  # type: ignore[arg-type]
    compare_runs.nothing_else(done.directory)
    return done


def test_calls_in_a_signal_handler(tmp_path: Path) -> None:
    done = traced(tmp_path, program("harm_signals"), "handler", 500)
    made, handled = map(int, done.result.stdout.split())
    assert handled == 500
    assert_marks(marks(done.one), {1000: made, 2000: handled})
    assert len([event for event in done.events if event.args.get("count") == 16]) == handled


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("spare", [2048, 6144])
@pytest.mark.parametrize("count", [10, 5000])
def test_calls_on_a_small_signal_stack(tmp_path: Path, spare: int, count: int, mode: str) -> None:
    done = both(tmp_path, program("harm_signals", *NOW), "altstack", spare, count, mode=mode)
    reads = [event for event in done.one.named("pread") if event.args["count"] == 1]
    assert len(reads) == 2 * count


@intercept.IN_EACH_MODE
def test_handler_inside_a_handler(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_signals"), "nested", mode=mode)
    assert_marks(marks(done.one), {1000: 500, 2000: 1000, 3000: 500})


@intercept.IN_EACH_MODE
def test_siglongjmp_out_of_a_read(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_signals"), "jump", 200, mode=mode)
    assert_marks(marks(done.one), {1000: 10000})


@intercept.IN_EACH_MODE
def test_longjmp_out_of_a_write_of_stdio(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_signals"), "cookie", 50, mode=mode)
    assert_marks(marks(done.one), {1000: 500, 2000: 50})


@intercept.IN_EACH_MODE
def test_threads_cancelled_in_calls(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_cancel"), "blocked", mode=mode)
    lines = done.result.stdout.splitlines()
    assert len(lines) == 20
    found = marks(*done.processes)
    assert found.pop(5000) == dict.fromkeys(range(10), 1)
    assert_marks(found, {1000 + i: 20 for i in range(19)})


@intercept.IN_EACH_MODE
def test_cancellation_acts_where_it_does_in_a_bare_program(tmp_path: Path, mode: str) -> None:
    """A wrapper must neither hide a cancellation point nor make one."""
    both(tmp_path, program("harm_cancel"), "pending", mode=mode)


@intercept.IN_EACH_MODE
def test_a_thousand_cancelled_threads(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_cancel"), "handlers", mode=mode)
    found = marks(*done.processes)
    found.pop(5000)
    assert_marks(found, {1000 + i: 20 for i in range(1000)})


@intercept.IN_EACH_MODE
def test_smallest_thread_stacks(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "small", 8, mode=mode)
    assert_marks(marks(done.one), {1000 + i: 1500 for i in range(8)})


@intercept.IN_EACH_MODE
def test_destructors_of_thread_specific_data(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "keys", 20, mode=mode)
    have = marks(done.one)
    for i in range(20):
        # Half of the threads make their first call in the destructor, which runs four times.
        assert sorted(have[1000 + i]) == list(range(0 if i % 2 else 10, 50)), i
        assert set(have[1000 + i].values()) == {1}


@intercept.IN_EACH_MODE
def test_coroutines(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "coroutines", 500, mode=mode)
    assert_marks(marks(done.one), {1000 + i: 500 for i in range(4)})


@intercept.IN_EACH_MODE
def test_many_short_threads(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "many", 1000, mode=mode)
    assert_marks(marks(done.one), {1000: 1000})


def test_exit_in_a_thread_while_others_go_on(tmp_path: Path) -> None:
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(compare_runs.DATA)
    done = intercept.traced(
        *(program("harm_threads"), "exit"), cwd=cwd, out=tmp_path / "d", expect=4, ended=False
    )
    # What the other threads still recorded while the process went down may wait in a spool.
    faults.recover(done.directory)
    compare_runs.nothing_else(done.directory)
    assert done.result.stdout == "exit\n"
    assert_marks(marks(*intercept.read(done.directory, open_parents=True)), {1000: 500})


@intercept.IN_EACH_MODE
def test_main_thread_leaves_before_the_last(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_threads"), "last", mode=mode)
    assert_marks(marks(*done.processes), {1000: 500, 1001: 500})


# ---- C++, and the moments around main ------------------------------------------------------------


@intercept.IN_EACH_MODE
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
    library = compare_runs.library("harm_stages_lib", None, f"-Wl,-z,{link}")
    made = program("harm_stages", "-Wl,--no-as-needed", str(library), f"-Wl,-z,{link}")
    done = both(tmp_path, made, leave, expect=3, hidden=True)
    # What comes after the tracer's own end is for whoever reads the trace.
    faults.recover(done.directory)
    compare_runs.nothing_else(done.directory)
    found = marks(*intercept.read(done.directory, open_parents=True))
    for who in EARLIEST:
        found.pop(who, None)
    assert_marks(found, {**STAGES, **dict.fromkeys(last, 25)})


def test_calls_before_any_constructor(tmp_path: Path) -> None:
    """libc itself is not ready for anybody then: they work, and are not recorded."""
    library = compare_runs.library("harm_stages_lib", None)
    made = program("harm_stages", "-Wl,--no-as-needed", str(library))
    both(tmp_path, made, "_exit", expect=3)


def test_calls_in_the_resolver_of_a_library(tmp_path: Path) -> None:
    """While libraries are relocated, ours is not yet."""
    library = compare_runs.library("harm_stages_lib", None, "-DIFUNC")
    made = program("harm_stages", "-Wl,--no-as-needed", str(library))
    done = both(tmp_path, made, "return", expect=3, hidden=True)
    assert "library 8" in done.result.stdout
