"""Every macro and function of the header, in C and in C++, with all warnings as errors."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.build import compile_c, compile_cpp
from support.run import run

PROGRAMS = Path(__file__).parent / "programs"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror")
OWN = ("hhash", "p_idx", "level")


def own(event: dict[str, Any]) -> dict[str, Any]:
    """What the program gave the event."""
    return {key: value for key, value in event["args"].items() if key not in OWN}


def tree(trace: traces.Trace) -> list[tuple[str, str, int]]:
    """(name, parent's name, level) of what the program recorded, in the order of its ids."""
    ids = trace.by_id()
    return [
        (
            event["name"],
            ids[event["args"]["p_idx"]]["name"] if event["args"]["p_idx"] != -1 else "",
            event["args"]["level"],
        )
        for event in sorted(trace.recorded, key=lambda event: event["id"])
        if event["ph"] != "C"
    ]


@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "gnu99"])
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_every_c_macro(tmp_path: Path, standard: str, optimise: str) -> None:
    program = compile_c(PROGRAMS / "macros.c", None, f"-std={standard}", optimise, *STRICT)
    assert run(program, cwd=tmp_path).stdout == "4 -1 24\n"
    trace = traces.read_one(tmp_path)
    assert trace.path.name == "t.pfw.gz"
    assert {event["cat"] for event in trace.recorded} == {"C_APP"}
    assert tree(trace) == [
        ("early", "", 1),
        ("early", "", 1),
        ("factorial", "", 1),
        ("factorial", "factorial", 2),
        ("factorial", "factorial", 3),
        ("factorial", "factorial", 4),
        ("arguments", "", 1),
        ("arguments", "", 1),
        ("outer", "", 1),
        ("inner", "outer", 2),
        ("loop", "", 1),
        ("loop", "", 1),
        ("loop", "", 1),
        ("now", "", 1),
    ]
    assert [own(event)["n"] for event in trace.named("early")] == [4, 0]
    # Inner calls end first.
    assert [own(event)["n"] for event in trace.named("factorial")] == [1, 2, 3, 4]
    given = {
        "int": -7,
        "large": 2**63 - 1,
        "float": 0.1,
        "text": 'a "b"',
        "typed_int": 5,
        "typed_text": "t",
        "twice": 2,
    }
    first, second = trace.named("arguments")
    assert own(first) == {**given, "first": 1}
    assert own(second) == {**given, "second": 1}
    assert own(trace.one("outer")) == {"int": 1, "float": 2.5, "typed_int": 3}
    assert own(trace.one("inner")) == {"text": "of inner", "typed_text": "x"}
    assert [own(event)["i"] for event in trace.named("loop")] == [0, 1, 2]
    assert trace.one("now")["ph"] == "i"
    assert trace.one("level")["ph"] == "C"
    assert trace.one("level")["args"] == {"value": 12.5}
    check_metadata(trace, "-12")
    assert trace.meta("PR", "rank") == ["3"]


def check_metadata(trace: traces.Trace, app_int: str) -> None:
    assert trace.meta("CM", "key") == ["value"]
    assert trace.meta("CM", "app_int") == [app_int]
    assert trace.meta("CM", "app_text") == ["a value"]
    assert trace.meta("CM", "used") == ["a layer"]


@pytest.mark.parametrize("standard", ["c++11", "c++14", "c++17", "c++20"])
def test_every_cpp_macro(tmp_path: Path, standard: str) -> None:
    program = compile_cpp(PROGRAMS / "macros.cpp", None, f"-std={standard}", *STRICT)
    assert run(program, cwd=tmp_path).stdout == "4 -1\n"
    # A region that only groups is not in the file, though it was one's parent.
    trace = traces.read_one(tmp_path, open_parents=True)
    assert [(e["name"], e["cat"], e["ph"]) for e in trace.recorded] == [
        ("early", "CPP_APP", "X"),
        ("early", "CPP_APP", "X"),
        ("throws", "CPP_APP", "X"),
        ("arguments", "CPP_APP", "X"),
        ("arguments", "CPP_APP", "X"),
        ("inner", "CPP_APP", "X"),
        ("heap", "CPP_APP", "X"),
        ("outer", "CPP_APP", "X"),
        ("by hand", "mine", "X"),
        ("unnamed", "APP", "X"),
        ("only name", "CPP_APP", "X"),
        ("now", "CPP_APP", "i"),
        ("level", "CPP_APP", "C"),
    ]
    given = {
        "int": -7,
        "unsigned": 4000000000,
        "large": 2**63 - 1,
        "huge": 2**64 - 1,
        "bool": True,
        "double": 0.1,
        "float": 0.5,
        "text": "literal",
        "string": "with\0nul",
        "typed": 5,
    }
    first, second = trace.named("arguments")
    assert own(first) == {**given, "first": 1}
    assert own(first)["bool"] is True
    assert own(second) == {**given, "second": 1}
    assert own(trace.one("inner")) == {"text": "of inner", "typed": 1}
    assert own(trace.one("heap")) == {"int": 2, "typed": 2}
    assert own(trace.one("outer")) == {"after": 3}
    assert own(trace.one("by hand")) == {"k": 1}
    assert own(trace.one("unnamed")) == {"unnamed": ""}
    check_metadata(trace, "2147483648")
    assert trace.meta("PR", "rank") == []


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_function_names_of_older_releases(tmp_path: Path, language: str) -> None:
    source = (PROGRAMS / "old_names.c").read_text()
    if language == "c":
        program = compile_c(source, None, "-std=c99", *STRICT)
    else:
        program = compile_cpp(source, None, "-std=c++11", *STRICT)
    run(program, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert tree(trace) == [("old", "", 1), ("scoped", "old", 2), ("unnamed", "", 1)]
    assert own(trace.one("old")) == {
        "int": 4,
        "text": "four",
        "typed_int": 5,
        "typed_text": "five",
    }
    assert {event["cat"] for event in trace.recorded} == {"OLD_APP", "APP"}
    assert trace.meta("CM", "app_int") == [str(-(2**31))]
    assert trace.meta("CM", "app_text") == ["text"]
    assert trace.meta("PR", "rank") == ["5"]


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_old_names_can_be_left_out(tmp_path: Path, language: str) -> None:
    """They are common words: a program may have a `finalize` of its own."""
    source = """
        #include <dftracer/dftracer.h>
        int finalize(int x) { return x; }
        int mark_used = 0;
        int main(void) { DFTRACER_C_FINI(); return finalize(mark_used); }
    """
    if language == "c":
        program = compile_c(source, None, "-std=c99", *STRICT, "-DDFTRACER_NO_OLD_NAMES")
    else:
        program = compile_cpp(source, None, *STRICT, "-DDFTRACER_NO_OLD_NAMES")
    run(program, cwd=tmp_path)


@pytest.mark.parametrize(
    ("language", "standard"), [("c", "c99"), ("c", "c17"), ("cpp", "c++11"), ("cpp", "c++20")]
)
def test_disabled_at_compile_time_nothing_is_left(
    tmp_path: Path, language: str, standard: str
) -> None:
    flags = (f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DDFTRACER_DISABLE")
    if language == "c":
        program = compile_c(PROGRAMS / "macros.c", None, *flags, link=False)
        output = "4 -1 24\n"
    else:
        program = compile_cpp(PROGRAMS / "macros.cpp", None, *flags, link=False)
        output = "4 -1\n"
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert "main" in symbols
    assert [line for line in symbols.splitlines() if "dftracer" in line.lower()] == []
    assert run(program, cwd=tmp_path).stdout == output
    assert list(tmp_path.iterdir()) == []


def test_macros_stand_where_a_statement_stands(tmp_path: Path) -> None:
    """In an if without braces, in a switch, in one line with others."""
    program = compile_c(
        """
        #include <dftracer/dftracer.h>
        static void f(int n) {
          DFTRACER_C_FUNCTION_START();
          if (n == 0) DFTRACER_C_FUNCTION_UPDATE_INT("zero", n);
          else DFTRACER_C_FUNCTION_UPDATE_STR("other", "yes");
          switch (n) {
            case 1: DFTRACER_C_INSTANT("one"); break;
            default: DFTRACER_C_COUNTER("count", n); break;
          }
          if (n) DFTRACER_C_FUNCTION_END(); else DFTRACER_C_METADATA(x, "k", "v");
        }
        int main(void) {
          DFTRACER_C_INIT("t.pfw", NULL, NULL); f(0); f(1); DFTRACER_C_FINI();
          return 0;
        }
        """,
        None,
        "-std=c99",
        *STRICT,
    )
    run(program, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    first, second = trace.named("f")
    assert own(first) == {"zero": 0}
    assert own(second) == {"other": "yes"}
    assert trace.one("one")["args"]["p_idx"] == second["id"]
    assert trace.one("count")["args"] == {"value": 0.0}


def test_typed_update_stands_where_a_statement_stands(tmp_path: Path) -> None:
    program = compile_c(
        """
        #include <dftracer/dftracer.h>
        static void f(int n) {
          DFTRACER_C_FUNCTION_START();
          if (n == 0) DFTRACER_C_FUNCTION_UPDATE_INT_TYPE("zero", n, DFTRACER_TAG_KEY);
          DFTRACER_C_FUNCTION_END();
        }
        int main(void) {
          DFTRACER_C_INIT("t.pfw", NULL, NULL); f(0); f(1); DFTRACER_C_FINI();
          return 0;
        }
        """,
        None,
        "-std=c99",
    )
    run(program, cwd=tmp_path)
    assert [own(event) for event in traces.read_one(tmp_path).named("f")] == [{"zero": 0}, {}]
