"""Starting and stopping: never, once, often, from several libraries, in any order."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import traces
from support.api_driver import Command, play
from support.build import compile_c
from support.run import run

PROGRAMS = Path(__file__).parent / "programs"
INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)
SPAN: list[Command] = [("begin", 0, "span", "app"), ("int", 0, "k", 1), ("end", 0)]
EVERYTHING: list[Command] = [
    *SPAN,
    ("instant", "i", "app"),
    ("counter", "c", "app", 1),
    ("metadata", "k", "v"),
    ("complete", "x", "app", 1, 2),
    ("flush",),
    ("active",),
    ("time",),
]


def test_without_init_nothing_happens(tmp_path: Path) -> None:
    result = play(*EVERYTHING, FINI, FINI, cwd=tmp_path)
    assert result.stdout.split() == ["0", "0"]
    assert list(tmp_path.iterdir()) == []


def test_before_init_and_after_finalize_nothing_is_recorded(tmp_path: Path) -> None:
    result = play(
        *EVERYTHING,
        ("begin", 5, "begun before", "app"),
        INIT,
        ("end", 5),
        ("begin", 6, "ended after", "app"),
        ("begin", 1, "kept", "app"),
        ("end", 1),
        FINI,
        ("end", 6),
        *EVERYTHING,
        cwd=tmp_path,
    )
    assert result.stdout.split() == ["0", "0", "0", "0", "0"]
    trace = traces.read_one(tmp_path, open_parents=True)
    assert [event["name"] for event in trace.recorded] == ["kept"]


def test_not_finalised_ends_with_the_program(tmp_path: Path) -> None:
    play(INIT, *SPAN, ("return", 7), expect=7, cwd=tmp_path)
    assert traces.read_one(tmp_path).one("span")["args"]["k"] == 1


@pytest.mark.parametrize("times", [1, 2, 5])
def test_inits_nest(tmp_path: Path, times: int) -> None:
    """As many finalize calls close it, and further ones do nothing."""
    inits: list[Command] = [("init", f"t{i}.pfw", None, None) for i in range(times)]
    output = play(
        *inits,
        *SPAN,
        *[FINI] * (times - 1),
        ("active",),
        *SPAN,
        FINI,
        ("active",),
        *SPAN,
        FINI,
        FINI,
        cwd=tmp_path,
    ).stdout.split()
    assert output == ["0"] * times + ["1", "0"]
    trace = traces.read_one(tmp_path)
    assert trace.path.name == "t0.pfw.gz"
    assert len(trace.recorded) == 2


@pytest.mark.parametrize("fini", [0, 1, 2, 9])
def test_one_init_and_any_number_of_finalize(tmp_path: Path, fini: int) -> None:
    play(INIT, *SPAN, *[FINI] * fini, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert len(trace.recorded) == 1
    assert len(trace.named("end")) == 1


def test_flush_brings_the_file_up_to_date(tmp_path: Path) -> None:
    """An inner finalize does too: a reader beside the program sees all up to it."""
    for name, bring in (("flush", ("flush",)), ("inner", FINI)):
        directory = tmp_path / name
        directory.mkdir()
        play(INIT, INIT, *SPAN, bring, *SPAN, ("kill",), cwd=directory, expect=-9)
        trace = traces.read(directory / "t.pfw.gz", ended=False)
        assert len(trace.recorded) == 1


def test_started_again_it_goes_on_in_the_same_file(tmp_path: Path) -> None:
    play(
        *[INIT, *SPAN, FINI] * 3,
        INIT,
        ("on", 1, "begin", 1, "thread", "app"),
        ("on", 1, "end", 1),
        ("on", 1, "exit"),
        cwd=tmp_path,
    )
    trace = traces.read_one(tmp_path)
    assert len(trace.named("span")) == 3
    assert len(trace.named("thread")) == 1
    assert len(trace.named("start")) == len(trace.named("end")) == 4
    # One run, one process: the reader has checked that all ids differ.
    for key in ("run", "proc"):
        assert len({event["args"][key] for event in trace.named("start")}) == 1
    ids = [event["id"] for event in trace.named("span")]
    assert ids == sorted(ids)
    times = [event["ts"] for event in trace.named("span")]
    assert times == sorted(times)


def test_started_again_under_another_name(tmp_path: Path) -> None:
    play(
        ("init", "one.pfw", None, None),
        *SPAN,
        FINI,
        ("init", "two.pfw", None, 4),
        *SPAN,
        *SPAN,
        FINI,
        cwd=tmp_path,
    )
    one, two = traces.read_directory(tmp_path)
    assert (one.path.name, two.path.name) == ("one.pfw.gz", "two.pfw.gz")
    assert (len(one.recorded), len(two.recorded)) == (1, 2)
    assert traces.spools(tmp_path) == []


def test_a_region_that_spans_a_restart_is_dropped(tmp_path: Path) -> None:
    play(INIT, ("begin", 3, "spanning", "app"), FINI, INIT, ("end", 3), *SPAN, FINI, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert [event["name"] for event in trace.recorded] == ["span"]
    assert trace.one("span")["args"]["level"] == 1


def test_a_thread_that_outlives_a_restart_goes_on(tmp_path: Path) -> None:
    play(
        INIT,
        ("on", 1, "spans", 10, "first"),
        FINI,
        ("on", 1, "spans", 10, "between"),
        INIT,
        ("on", 1, "spans", 10, "second"),
        FINI,
        cwd=tmp_path,
    )
    trace = traces.read_one(tmp_path)
    assert [len(trace.named(name)) for name in ("first", "between", "second")] == [10, 0, 10]


def test_two_libraries_that_do_not_know_each_other(tmp_path: Path) -> None:
    source = PROGRAMS / "library.c"
    libraries = [
        compile_c(source, tmp_path / f"lib{name}.so", "-shared", "-fPIC", f"-DNAME={name}")
        for name in "ab"
    ]
    program = compile_c(
        """
        #include <dlfcn.h>
        static void call(void* library, const char* name) {
          ((void (*)(void))dlsym(library, name))();
        }
        int main(int argc, char** argv) {
          void* a = dlopen(argv[1], RTLD_NOW);
          void* b = dlopen(argv[argc - 1], RTLD_NOW);
          call(a, "start_a"); call(a, "work_a");
          call(b, "start_b"); call(b, "work_b"); call(b, "stop_b");
          call(a, "work_a"); call(a, "stop_a");
          call(a, "work_a");
          return 0;
        }
        """,
        None,
        link=False,
    )
    work = tmp_path / "work"
    work.mkdir()
    run(program, *libraries, cwd=work)
    trace = traces.read_one(work)
    assert trace.path.name == "a.pfw.gz"
    assert [event["name"] for event in trace.recorded] == ["work_a", "work_b", "work_a"]


def test_a_library_that_is_loaded_and_unloaded(tmp_path: Path) -> None:
    library = compile_c(
        PROGRAMS / "library.c", tmp_path / "liba.so", "-shared", "-fPIC", "-DNAME=a"
    )
    program = compile_c(
        """
        #include <dlfcn.h>
        int main(int argc, char** argv) {
          for (int i = 0; i < 3; ++i) {
            void* library = dlopen(argv[argc - 1], RTLD_NOW);
            ((void (*)(void))dlsym(library, "start_a"))();
            ((void (*)(void))dlsym(library, "work_a"))();
            if (i != 1) ((void (*)(void))dlsym(library, "stop_a"))();
            if (dlclose(library) != 0) return 1;
          }
          return 0;
        }
        """,
        None,
        link=False,
    )
    work = tmp_path / "work"
    work.mkdir()
    run(program, library, cwd=work)
    trace = traces.read_one(work)
    assert len(trace.named("work_a")) == 3


@pytest.mark.parametrize("value", [None, "", "0", "false", "NO", "Off"])
def test_off_is_off(tmp_path: Path, value: str | None) -> None:
    """No file, no thread, no descriptor, no word."""
    commands: list[Command] = [("threads",), ("files",), INIT, *EVERYTHING]
    output = play(
        *commands,
        ("threads",),
        ("files",),
        FINI,
        cwd=tmp_path,
        enable=False,
        env={} if value is None else {"DFTRACER_ENABLE": value, "DFTRACER_NONSENSE": "1"},
    ).stdout.split()
    assert output == ["1", output[1], "-1", "0", "0", "1", output[1]]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["1", "true", "YES", "On"])
def test_on_is_on(tmp_path: Path, value: str) -> None:
    output = play(INIT, ("active",), cwd=tmp_path, enable=False, env={"DFTRACER_ENABLE": value})
    assert output.stdout.split() == ["0", "1"]
    traces.read_one(tmp_path)


def test_an_invalid_switch_is_named_once_and_means_off(tmp_path: Path) -> None:
    result = play(
        INIT,
        INIT,
        *EVERYTHING,
        cwd=tmp_path,
        enable=False,
        env={"DFTRACER_ENABLE": "maybe"},
        stderr=None,
    )
    assert result.stdout.split() == ["-1", "-1", "0", "0"]
    assert "DFTRACER_ENABLE" in result.stderr
    assert "maybe" in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_on_costs_no_descriptor_and_no_thread_until_there_is_much_to_write(tmp_path: Path) -> None:
    output = play(
        ("threads",), ("files",), INIT, *SPAN, ("threads",), ("files",), FINI, cwd=tmp_path
    ).stdout.split()
    assert output == ["1", output[1], "0", "1", output[1]]
