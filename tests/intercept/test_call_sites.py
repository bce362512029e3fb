"""Who made a call: the line of Python code, or the native caller."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.build import compile_c
from support.command import dftracer
from support.traces import read_directory

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import pythons

# Each line that makes a call ends with a comment: the name of its function, and what it called.
PROGRAM = """
import os, sys, threading, json, types

class Data:
    def __getitem__(self, index):
        fd = os.open("data", os.O_RDONLY)  # site: Data.__getitem__
        os.pread(fd, index + 1, 0)  # site: Data.__getitem__
        return os.close(fd)  # site: Data.__getitem__

def generated():
    for index in range(2):
        yield os.stat("data")  # site: generated

def library():
    with open("text") as file:  # site: library
        file.read()  # site: library
        file.seek(0)  # site: library
        json.load(file)  # site: library > json.load
        file.seek(0)  # site: library

def in_thread():
    thread = threading.Thread(target=os.stat, args=("in-thread",))
    try:
        os.stat("missing")  # site: in_thread
    except FileNotFoundError:
        pass
    other = threading.Thread(target=lambda: os.stat("data"))  # site: in_thread.<locals>.<lambda>
    other.start()
    other.join()

def made_up():
    # One code object after the other at one address, with other files and lines.
    for number in range(50):
        name = "made-%d" % number
        code = compile("\\n" * number + "os.stat('%s')" % name, name + ".py", "exec")
        try:
            exec(code, {"os": os})
        except FileNotFoundError:
            pass
        del code

with open("data", "wb") as file: file.write(b"x" * 100)  # site: <module>
with open("text", "w") as file: file.write("[1]")  # site: <module>
for index in range(3):
    Data()[index]
list(generated())
library()
in_thread()
made_up()
pid = os.fork()
if pid == 0:
    Data()[5]
    os._exit(0)
os.waitpid(pid, 0)  # site: <module>
"""


def sites_of(directory: Path) -> list[tuple[dict[str, Any], str | None]]:
    """The calls on files of all traces, each with the description of its place."""
    found = []
    for trace in read_directory(directory):
        texts = {
            record["args"]["value"]: record["args"]["name"]
            for record in trace.records
            if record["ph"] == "M" and record["name"] == "SH"
        }
        for record in trace.records:
            if record["ph"] == "X" and record["cat"] in ("POSIX", "STDIO"):
                key = record["args"].get("site_hash")
                found.append((record, None if key is None else texts[key]))
    return found


def expected_places() -> dict[int, str]:
    places = {}
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, mark, place = line.partition("  # site: ")
        if mark:
            places[number] = place
    return places


def trace_program(
    python: str, tmp_path: Path, **env: str
) -> list[tuple[dict[str, Any], str | None]]:
    (tmp_path / "program.py").write_text(PROGRAM)
    dftracer("run", "-q", "-o", "traces", "--", python, "program.py", cwd=tmp_path, env=env or None)
    return sites_of(tmp_path / "traces")


# The interpreter that runs the tests is always there; it comes first.
OWN = "{}.{}".format(*sys.version_info)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("version", [OWN, *(v for v in pythons.VERSIONS if v != OWN)])
def test_every_line_that_calls_is_named(version: str, tmp_path: Path) -> None:
    found = pythons.find(version)
    if found is None and version != OWN:
        pytest.skip(f"Python {version} is not on this machine")
    python = sys.executable if found is None else str(found.interpreter)
    calls = trace_program(python, tmp_path)
    program = str(tmp_path / "program.py")
    old = version in ("3.9", "3.10")  # without qualified names
    wanted = expected_places()
    source = PROGRAM.splitlines()
    seen: set[int] = set()
    made: list[str] = []
    for record, site in calls:
        # An interpreter that has not begun to run code has no site.
        assert site is not None or not seen, record
        if site is None:
            continue
        if "made-" in site:
            made.append(site)
        if not site.startswith(program):
            continue
        place, _, function = site.partition(" ")
        line = int(place.rpartition(":")[2])
        if function.startswith("made_up"):
            continue
        if line not in wanted:
            assert any(word in source[line - 1] for word in ("import", "fork", "_exit")), site
            continue
        expected = wanted[line]
        seen.add(line)
        if old:
            head, arrow, callee = expected.partition(" > ")
            expected = head.rpartition(".")[2] + arrow + callee
        assert function == expected, (record, site)
    assert seen == set(wanted)
    assert len([s for s in made if s.endswith(" <module>")]) == 50
    for number in range(50):
        assert any(site == f"made-{number}.py:{number + 1} <module>" for site in made)


def test_switched_off_calls_have_no_site(tmp_path: Path) -> None:
    for options in (["--no-call-sites"], ["--no-metadata"]):
        place = tmp_path / options[0]
        place.mkdir()
        (place / "program.py").write_text(PROGRAM)
        dftracer(
            *("run", "-q", *options, "-o", "traces", "--", sys.executable, "program.py"), cwd=place
        )
        assert {site for _, site in sites_of(place / "traces")} == {None}


def test_a_c_programs_functions_are_named_in_the_report(tmp_path: Path) -> None:
    program = compile_c(SOURCE, tmp_path / "reader", link=False)
    dftracer("run", "-q", "-o", "traces", "--", str(program), cwd=tmp_path)
    sites = {site for record, site in sites_of(tmp_path / "traces") if record["name"] == "pread"}
    assert len(sites) == 2
    for site in sites:
        assert site is not None
        assert site.startswith(f"{os.path.realpath(program)}+0x")
    from dftracer import reports

    lines = reports.load(tmp_path / "traces").lines.dicts()
    preads = {line["place"]: line["reads"] for line in lines if line["reads"]}
    name = Path(program).name
    assert preads == {f"{name} read_twice": 2, f"{name} read_once": 1}


SOURCE = """
#include <fcntl.h>
#include <unistd.h>
static char buffer[10];
__attribute__((noinline)) long read_twice(int fd) {
  long all = 0;
  for (int i = 0; i < 2; ++i) all += pread(fd, buffer, 5, 0);
  return all;
}
__attribute__((noinline)) long read_once(int fd) { return pread(fd, buffer, 7, 0) + 1; }
int main(void) {
  int fd = open("data.bin", O_RDWR | O_CREAT, 0600);
  if (write(fd, "0123456789", 10) != 10) return 1;
  return read_twice(fd) + read_once(fd) == 18 ? 0 : 2;
}
"""


def test_a_library_that_takes_the_place_of_another_is_told_apart(tmp_path: Path) -> None:
    libraries = [
        compile_c(LIBRARY, tmp_path / f"lib{name}.so", "-shared", "-fPIC", link=False)
        for name in ("one", "two")
    ]
    program = compile_c(LOADER, tmp_path / "loader", link=False)
    (tmp_path / "data.bin").write_bytes(b"x")
    dftracer("run", "-q", "-o", "traces", "--", program, *libraries, cwd=tmp_path)
    found = [
        site.rpartition("+")[0]
        for record, site in sites_of(tmp_path / "traces")
        if record["name"] == "pread" and site is not None
    ]
    assert found == [str(library) for library in libraries for _ in range(3)]


LIBRARY = """
#include <unistd.h>
long peek(int fd) {
  char byte;
  long all = 0;
  for (int i = 0; i < 3; ++i) all += pread(fd, &byte, 1, 0);
  return all;
}
"""

LOADER = """
#include <dlfcn.h>
#include <fcntl.h>
int main(int argc, char** argv) {
  int fd = open("data.bin", O_RDONLY);
  long all = 0;
  for (int i = 1; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW);
    long (*peek)(int) = (long (*)(int))dlsym(library, "peek");
    all += peek(fd);
    dlclose(library);
  }
  return all == 6 ? 0 : 1;
}
"""


def test_calls_of_an_extension_module_name_its_library(tmp_path: Path) -> None:
    """The interpreter's own calls are those of the line; a library's are told apart."""
    (tmp_path / "program.py").write_text(
        "import ctypes, os\n"
        "library = ctypes.CDLL(os.path.abspath('libone.so'))\n"
        "fd = os.open('data.bin', os.O_RDONLY)\n"
        "library.peek(fd)\n"
        "os.pread(fd, 1, 0)\n"
    )
    library = compile_c(LIBRARY, tmp_path / "libone.so", "-shared", "-fPIC", link=False)
    (tmp_path / "data.bin").write_bytes(b"x")
    dftracer("run", "-q", "-o", "traces", "--", "python", "program.py", cwd=tmp_path)
    found = {
        (record["name"], site and site.partition("+")[0])
        for record, site in sites_of(tmp_path / "traces")
        if record["name"].startswith("pread")
    }
    program = tmp_path / "program.py"
    assert found == {
        ("pread", f"{program}:4 <module> @ {library}"),
        ("pread64", f"{program}:5 <module>"),
    }


DAEMONS = """
import os, threading, time
fd = os.open("data.bin", os.O_RDONLY)
def loop(depth):
    if depth:
        loop(depth - 1)
    while True:
        os.pread(fd, 100, 0)
for _ in range(8):
    threading.Thread(target=loop, args=(20,), daemon=True).start()
time.sleep(0.05)
"""


def test_daemon_threads_that_outlive_the_interpreter_do_no_harm(tmp_path: Path) -> None:
    """Python frees their frames while they are in calls."""
    (tmp_path / "program.py").write_text(DAEMONS)
    (tmp_path / "data.bin").write_bytes(b"x" * 100)
    for number in range(5):
        dftracer("run", "-q", "-o", f"t{number}", "--", "python", "program.py", cwd=tmp_path)
