"""Programs compiled with -finstrument-functions: each call of a function becomes an event."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support.build import compile_cpp
from support.command import dftracer, environment
from support.traces import Trace, crossings, read_directory

SOURCE = Path(__file__).parent / "programs" / "functions.cpp"
# Functions of the standard library's headers are instrumented, too.
OWN = ("fib", "hidden", "Class", "main", "jump", "throws", "catches", "moves", "compare", "sorts")
OWN = (*OWN, "sleeps", "deep")


def program(*flags: str) -> Path:
    return compile_cpp(SOURCE, None, "-finstrument-functions", *flags, link=False)


def run(place: Path, binary: Path, *words: str, **env: str) -> Trace:
    dftracer("run", "-q", "--no-io", "-o", "d", binary, *words, cwd=place, env=env)
    (trace,) = read_directory(place / "d")
    return trace


def counted(trace: Trace) -> Counter[str]:
    assert {event["cat"] for event in trace.recorded} == {"FUNC"}
    names = (event["name"] for event in trace.recorded)
    return Counter(name for name in names if any(word in name for word in OWN))


def inside(trace: Trace, name: str) -> list[str]:
    """The names of the functions around this one."""
    event, out = trace.one(name), []
    while event["args"]["p_idx"] != -1:
        event = trace.by_id()[event["args"]["p_idx"]]
        out.append(event["name"])
    return out


# Without optimization, frames and stack pointers are others.
@pytest.fixture(scope="module", params=["-O2", "-O0"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return run(tmp_path_factory.mktemp("functions"), program(request.param))


def test_every_call_is_recorded_once_under_its_demangled_name(trace: Trace) -> None:
    found = counted(trace)
    assert found.pop("fib") == 15 + 3  # fib(5), and fib(2) on a thread
    assert 2 <= found.pop("compare") <= 3
    found = Counter({name: n for name, n in found.items() if "lambda" not in name})
    assert found == {
        "main": 1,
        "ns::Class::method": 1,
        "ns::Class::generic<int>": 1,
        "ns::Class::generic<double>": 1,
        "ns::Class::operator()": 1,
        "(anonymous namespace)::hidden": 2,
        "calls_what_jumps": 1,
        "jumps": 1,
        "after_the_jump": 1,
        "throws": 1,
        "catches": 1,
        "moves_its_stack": 1,
        "sorts": 1,
        "sleeps": 1,
    }
    assert crossings(trace.events) == []


def test_recursion_has_the_depth_that_it_had(trace: Trace) -> None:
    main = trace.one("main")
    levels = Counter(
        event["args"]["level"] - main["args"]["level"]
        for event in trace.named("fib")
        if event["tid"] == main["tid"]
    )
    # fib(5) calls fib(4) and fib(3), and so on.
    assert levels == {1: 1, 2: 2, 3: 4, 4: 6, 5: 2}


def test_functions_that_longjmp_left_do_not_hold_what_follows(trace: Trace) -> None:
    assert inside(trace, "jumps") == ["calls_what_jumps", "main"]
    assert inside(trace, "after_the_jump") == ["main"]
    left, after = trace.one("calls_what_jumps"), trace.one("after_the_jump")
    assert left["ts"] + left["dur"] <= after["ts"]


def test_exceptions_and_moved_stacks_end_functions_in_order(trace: Trace) -> None:
    assert inside(trace, "throws") == ["catches", "main"]
    assert inside(trace, "catches") == ["main"]
    assert inside(trace, "moves_its_stack") == ["main"]
    assert inside(trace, "sorts") == ["main"]
    assert inside(trace, "sleeps") == ["main"]
    parents = {trace.by_id()[e["args"]["p_idx"]]["name"] for e in trace.named("compare")}
    assert parents == {"sorts"}


def test_a_function_that_calls_exit_lasts_until_then(trace: Trace) -> None:
    main, sleeps = trace.one("main"), trace.one("sleeps")
    assert main["ts"] + main["dur"] >= sleeps["ts"] + sleeps["dur"]


def test_patterns_choose_functions_by_name(tmp_path: Path) -> None:
    patterns = "ns::*,fib,!*<double>"
    dftracer(
        *("run", "-q", "--no-io", "-o", "d", "--functions", patterns),
        program("-O2"),
        cwd=tmp_path,
    )
    (trace,) = read_directory(tmp_path / "d")
    assert {event["name"] for event in trace.recorded} == {
        "fib",
        "ns::Class::method",
        "ns::Class::generic<int>",
        "ns::Class::operator()",
    }


def test_short_calls_can_be_left_out(tmp_path: Path) -> None:
    trace = run(tmp_path, program("-O2"), DFTRACER_FUNCTIONS_MIN_US="2500")
    names = {event["name"] for event in trace.recorded}
    assert {"main", "sleeps"} <= names
    assert not {"ns::Class::method", "hidden"} & names
    assert min(event["dur"] for event in trace.recorded) >= 2499


def test_calls_deeper_than_can_be_recorded_end_nothing_else(tmp_path: Path) -> None:
    trace = run(tmp_path, program("-O1"), "deep", DFTRACER_FUNCTIONS="main,deep,sleeps")
    # main() has one of the places.
    assert len(trace.named("deep")) == 16384 - 1
    lost = 20001 - (16384 - 1)
    assert trace.one("end")["args"]["lost"] == lost
    assert inside(trace, "sleeps") == ["main"]


def test_a_stripped_program_shows_addresses(tmp_path: Path) -> None:
    binary = tmp_path / "stripped"
    shutil.copy2(program("-O2"), binary)
    subprocess.run(["strip", binary], check=True)
    trace = run(tmp_path, binary)
    assert all(event["name"].startswith("stripped+0x") for event in trace.recorded)


def test_a_program_that_is_linked_with_the_library_needs_no_preloading(tmp_path: Path) -> None:
    binary = compile_cpp(
        "#include <dftracer/dftracer.h>\n"
        "static int __attribute__((noinline)) work(int n) { return n + 1; }\n"
        'int main(int n, char**) { DFTRACER_C_INIT("t.pfw", 0, 0); n = work(n);\n'
        "  DFTRACER_C_FINI(); return n == 0; }\n",
        None,
        "-finstrument-functions",
        "-O1",
    )
    subprocess.run(
        [binary], cwd=tmp_path, env=environment({"DFTRACER_ENABLE": "1"}), check=True, timeout=60
    )
    (trace,) = read_directory(tmp_path)
    assert len(trace.named("work")) == 1
