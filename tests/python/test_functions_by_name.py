"""Python functions that are recorded by name, without annotations (dftracer run --functions)."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from support.command import dftracer
from support.traces import Trace, crossings, read_directory

PACKAGE = """
import asyncio, threading

class Model:
    def forward(self, n):
        return self.layer(n)
    def layer(self, n):
        return n + 1
    @staticmethod
    def fixed():
        return [n for n in range(3)]

def recurse(n):
    return recurse(n - 1) if n else 0

def generate():
    yield 1
    yield 2

def fails():
    raise KeyError("on purpose")

def catches():
    try:
        fails()
    except KeyError:
        return outside(len)

def outside(function):
    return function("abc")

async def waits():
    await asyncio.sleep(0.001)
    await asyncio.sleep(0)

def thrown_into():
    generator = generate()
    next(generator)
    try:
        generator.throw(ValueError)
    except ValueError:
        pass
"""
MAIN = """
import asyncio, json, threading
from package import module

def main():
    model = module.Model()
    model.forward(1)
    model.fixed()
    module.recurse(4)
    list(module.generate())
    module.catches()
    asyncio.run(module.waits())
    module.thrown_into()
    thread = threading.Thread(target=module.recurse, args=(1,))
    thread.start()
    thread.join()
    json.dumps({})

main()
"""
# co_qualname: from Python 3.11 on.
MODEL = "Model." if sys.version_info >= (3, 11) else ""


def run(place: Path, *options: str, main: str = MAIN) -> tuple[Trace, str]:
    (place / "package").mkdir()
    (place / "package" / "__init__.py").write_text("")
    (place / "package" / "module.py").write_text(PACKAGE)
    (place / "script.py").write_text(main)
    done = dftracer("run", "--no-io", "-o", "d", *options, "python", "script.py", cwd=place)
    (trace,) = read_directory(place / "d")
    assert {event["cat"] for event in trace.recorded} <= {"FUNC"}
    return trace, done.stderr


def parent(trace: Trace, name: str) -> str:
    index = trace.one(name)["args"]["p_idx"]
    return "" if index == -1 else str(trace.by_id()[index]["name"])


def test_each_call_of_a_chosen_function_is_recorded(tmp_path: Path) -> None:
    trace, _ = run(tmp_path, "--functions", "package.*", "--functions", "script.main")
    # A generator and a coroutine: each time that they run.
    assert Counter(event["name"] for event in trace.recorded) == {
        "__main__.main": 1,
        f"package.module.{MODEL}forward": 1,
        f"package.module.{MODEL}layer": 1,
        f"package.module.{MODEL}fixed": 1,
        "package.module.recurse": 5 + 2,
        "package.module.generate": 3 + 2,
        "package.module.catches": 1,
        "package.module.fails": 1,
        "package.module.outside": 1,
        "package.module.waits": 3,
        "package.module.thrown_into": 1,
    }
    assert crossings(trace.events) == []
    assert parent(trace, f"package.module.{MODEL}layer") == f"package.module.{MODEL}forward"
    assert parent(trace, "package.module.fails") == "package.module.catches"
    # What follows an exception is not inside the function that it left.
    assert parent(trace, "package.module.outside") == "package.module.catches"
    assert parent(trace, "package.module.thrown_into") == "__main__.main"
    main = trace.one("__main__.main")
    levels = [e["args"]["level"] for e in trace.named("package.module.recurse")]
    assert sorted(levels) == sorted([2, 3, 4, 5, 6, 1, 2])
    threads = Counter(e["tid"] == main["tid"] for e in trace.named("package.module.recurse"))
    assert threads == {True: 5, False: 2}


def test_patterns_name_modules_or_functions_and_leave_out_others(tmp_path: Path) -> None:
    trace, _ = run(tmp_path, "--functions", f"package.module,!*.{MODEL}l*,!*recurse")
    names = {event["name"] for event in trace.recorded}
    assert f"package.module.{MODEL}forward" in names
    assert not names & {f"package.module.{MODEL}layer", "package.module.recurse", "__main__.main"}


def test_watching_twice_records_once(tmp_path: Path) -> None:
    again = "from dftracer.python import _functions\nassert _functions.watch('package.*')\n"
    trace, _ = run(tmp_path, "--functions", "package.*", main=again + MAIN)
    levels = [e["args"]["level"] for e in trace.named("package.module.recurse")]
    assert sorted(levels) == [1, 1, 2, 2, 3, 4, 5]


def test_without_patterns_nothing_is_watched(tmp_path: Path) -> None:
    hook = "import sys; assert sys.getprofile() is None\n"
    if sys.version_info >= (3, 12):
        hook += "assert all(sys.monitoring.get_tool(n) is None for n in range(6))\n"
    (tmp_path / "script.py").write_text(hook)
    dftracer("run", "-q", "-o", "d", "python", "script.py", cwd=tmp_path)


def test_a_tool_that_comes_first_is_left_alone(tmp_path: Path) -> None:
    first = "import sys\nfrom dftracer.python import _functions\n"
    if sys.version_info >= (3, 12):
        first += "for n in range(6): sys.monitoring.use_tool_id(n, 'other')\n"
    else:
        first += "mine = lambda *event: None\nsys.setprofile(mine)\n"
    first += "print(_functions.watch('package.*'))\n"
    if sys.version_info < (3, 12):
        first += "assert sys.getprofile() is mine; sys.setprofile(None)\n"
    (tmp_path / "script.py").write_text(first)
    done = dftracer("run", "-q", "-o", "d", "python", "script.py", cwd=tmp_path)
    assert done.stdout == "False\n"
    assert done.stderr.startswith("dftracer: Python functions are not recorded: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="one hook for all before Python 3.12")
def test_a_profiler_of_the_program_works_beside_it(tmp_path: Path) -> None:
    main = "import cProfile, pstats\n" + MAIN.replace(
        "\nmain()",
        "\nprofile = cProfile.Profile()\nprofile.runcall(main)\n"
        "print(pstats.Stats(profile).total_calls > 20)",
    )
    trace, _ = run(tmp_path, "--functions", "package.*", main=main)
    assert len(trace.named("package.module.recurse")) == 7
