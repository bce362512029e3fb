"""Tables by line and by function, against a plain count of the events; symbols of native code."""

from __future__ import annotations

import json
import string
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.build import compile_cpp
from support.command import dftracer
from support.traces import read_directory

from dftracer import reports
from dftracer.reports.call_sites import parse, place_of
from dftracer.reports.symbols import Symbols

PROGRAM = """
import json, os, sys

def many(count):
    for number in range(count):
        fd = os.open("small-%d" % (number % 5), os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(fd, b"x" * 100, 0)
        os.pread(fd, 100, 0)
        os.close(fd)

def large():
    with open("large", "wb") as file:
        file.write(b"y" * 300_000)
    with open("large", "rb") as file:
        return len(file.read())

def by_library():
    with open("a.json", "w") as file:
        json.dump(list(range(10)), file)
    with open("a.json") as file:
        json.load(file)

many(200)
large()
by_library()
if os.fork() == 0:
    many(20)
    os._exit(0)
os.wait()
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lines")
    (place / "program.py").write_text(PROGRAM)
    dftracer("run", "-q", "-o", "traces", "--", "python", "program.py", cwd=place)
    return place / "traces"


READS = {"read", "pread64"}
WRITES = {"write", "pwrite64"}


def counted(directory: Path) -> dict[str, dict[str, Any]]:
    """The events of calls that the report takes for I/O, by the text of their site."""
    found: dict[str, dict[str, Any]] = {}
    for trace in read_directory(directory):
        texts = {
            record["args"]["value"]: record["args"]["name"]
            for record in trace.records
            if record["ph"] == "M" and record["name"] in ("SH", "FH")
        }
        for event in trace.records:
            key = event["args"].get("site_hash")
            name = event["name"]
            file = texts.get(event["args"].get("fhash", ""), "")
            # Processes are no I/O, and neither are pipes and terminals.
            if key is None or name in ("fork", "wait4", "wait", "_exit") or "/" not in file:
                continue
            # By line, whatever it called.
            place = texts[key].partition(" > ")[0].partition(" @ ")[0]
            row = found.setdefault(
                place, {"calls": 0, "total": 0, "read": 0, "written": 0, "files": set()}
            )
            row["calls"] += 1
            row["total"] += event["dur"] * 1000
            row["read"] += max(event["args"]["ret"], 0) if name in READS else 0
            row["written"] += max(event["args"]["ret"], 0) if name in WRITES else 0
            row["files"].add(file)
    return found


@pytest.mark.parametrize("cluster", [None, pytest.param("local:2", marks=pytest.mark.long)])
def test_lines_are_what_the_events_say(traces: Path, cluster: str | None) -> None:
    program = f"{traces.parent / 'program.py'}:"
    table = reports.load(traces, cluster=cluster).lines.dicts()
    lines = {
        f"{line['file']}:{line['line']} {line['function']}": line
        for line in table
        if line["file"] is not None
    }
    wanted = {place: row for place, row in counted(traces).items() if "+0x" not in place}
    assert {place: line["calls"] for place, line in lines.items()} == {
        place: row["calls"] for place, row in wanted.items()
    }
    for place, line in lines.items():
        row = wanted[place]
        assert line["total_ns"] == row["total"]
        if place.startswith(program):  # not the interpreter's getc() and the like
            assert (line["read_bytes"], line["write_bytes"]) == (row["read"], row["written"])
        assert line["files"] == len(row["files"])
        assert line["costliest"] in row["files"]
    times = [line["total_ns"] for line in table]
    assert times == sorted(times, reverse=True)
    read = lines[f"{program}8 many"]
    assert read["place"] == "program.py:8 many"
    assert (read["calls"], read["reads"], read["small"], read["files"]) == (220, 220, 220, 5)
    assert read["read_bytes"] == 220 * 100
    assert lines[f"{program}21 by_library"]["callee"] == "json.load"


def test_functions_add_up_their_lines(traces: Path) -> None:
    report = reports.load(traces)
    sums: dict[tuple[str, str | None], list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in report.lines:
        row = sums[line["function"] or line["place"], line["file"]]
        for at, value in enumerate((1, line["calls"], line["total_ns"])):
            row[at] += value
    found = {
        (row["function"], row["file"]): [row["lines"], row["calls"], row["total_ns"]]
        for row in report.functions
    }
    assert found == dict(sums)
    assert found["many", str(traces.parent / "program.py")][1] == 220 * 4


def test_events_show_their_site(traces: Path) -> None:
    sql = "select distinct site from events where name = 'pwrite64'"
    done = dftracer("query", sql, traces, "--json", cwd=traces.parent)
    assert json.loads(done.stdout) == [{"site": f"{traces.parent / 'program.py'}:7 many"}]


def test_speedscope_has_a_frame_for_each_line(traces: Path) -> None:
    out = traces.parent / "out.json"
    dftracer("export", "--to", "speedscope", traces, "-o", out, cwd=traces.parent)
    found = json.loads(out.read_text())
    names = [frame["name"] for frame in found["shared"]["frames"]]
    line, call = names.index("program.py:8 many"), names.index("pread64")
    inside = 0
    for profile in found["profiles"]:
        stack: list[int] = []
        for event in profile["events"]:
            if event["type"] == "O":
                stack.append(event["frame"])
                if event["frame"] == call:
                    assert stack[-2] == line
                    inside += 1
            else:
                assert stack.pop() == event["frame"]
        assert stack == []
    assert inside == 220


def test_folded_stacks_add_up_the_time_of_calls(traces: Path) -> None:
    out = traces.parent / "out.folded"
    dftracer("export", "--to", "folded", traces, "-o", out, cwd=traces.parent)
    times: dict[str, int] = defaultdict(int)
    for line in out.read_text().splitlines():
        stack, _, time = line.rpartition(" ")
        times[";".join(stack.split(";")[1:])] += int(time)
    wanted: dict[str, int] = defaultdict(int)
    for trace in read_directory(traces):
        texts = {r["args"]["value"]: r["args"]["name"] for r in trace.metadata if r["name"] == "SH"}
        for event in trace.records:
            if event["cat"] not in ("POSIX", "STDIO"):
                continue
            site = texts.get(event["args"].get("site_hash", ""), "")
            if "program.py:8 many" in site:
                wanted["program.py:8 many;" + event["name"]] += event["dur"] * 1000
            wanted["all"] += event["dur"] * 1000
    assert times["program.py:8 many;pread64"] == wanted["program.py:8 many;pread64"]
    assert sum(times.values()) == wanted["all"]


REGIONS = """
from dftracer.python import dft_fn, dftracer
log = dftracer.initialize_log("traces/regions.pfw")
def read():
    with open("regions.py", "rb", buffering=0) as file:
        file.read(10)
with dft_fn("app", name="outer; odd"):
    with dft_fn("app", name="inner"):
        read()
log.finalize()
"""


def test_folded_stacks_have_the_regions_around_a_call(tmp_path: Path) -> None:
    (tmp_path / "regions.py").write_text(REGIONS)
    environment = {"DFTRACER_DATA_DIR": "all"}
    dftracer(
        *("run", "-q", "-o", "traces", "--", "python", "regions.py"), cwd=tmp_path, env=environment
    )
    done = dftracer("export", "--to", "folded", "traces", "-o", "-", cwd=tmp_path)
    stacks = [line.rpartition(" ")[0].partition(";")[2] for line in done.stdout.splitlines()]
    assert "outer_ odd;inner;regions.py:6 read;read" in stacks


# ---- Descriptions


@pytest.mark.parametrize(
    ("text", "place", "callee", "native"),
    [
        ("/a/b/data.py:42 D.__getitem__", "data.py:42 D.__getitem__", None, None),
        ("/a b/c > d/x @ y.py:1 <module> > np.load", "x @ y.py:1 <module>", "np.load", None),
        (
            "/a/x.py:3 f > h5py.read @ /lib/libhdf5.so.2+0x1f [0123456789abcdef]",
            "x.py:3 f",
            "h5py.read",
            "libhdf5.so.2+0x1f",
        ),
        ("/x/gzip+0x3f2a [0123456789abcdef]", "gzip+0x3f2a", None, "gzip+0x3f2a"),
        ("/x/gzip+0x3f2a", "gzip+0x3f2a", None, "gzip+0x3f2a"),
        ("<string>:1 <module>", "<string>:1 <module>", None, None),
        ("something else", "something else", None, None),
        ("", "", None, None),
    ],
)
def test_descriptions_are_taken_apart(
    text: str, place: str, callee: str | None, native: str | None
) -> None:
    symbols = Symbols()
    assert place_of(text, symbols)[1] == place
    assert (parse(text).callee, parse(text).native(symbols)) == (callee, native)


@given(st.text(alphabet=string.printable + "é\udc80", max_size=60))
def test_no_description_is_an_error(text: str) -> None:
    site = parse(text)
    assert site.text == text
    assert all(isinstance(part, str) for part in place_of(text, Symbols()))


# ---- Symbols

SOURCE = """
#include <fcntl.h>
#include <unistd.h>
namespace store {
struct Shard {
  __attribute__((noinline)) long load(int fd) {
    char byte;
    return pread(fd, &byte, 1, 0) + 0 * byte;
  }
};
}
int main() {
  int fd = open("/proc/self/exe", O_RDONLY);
  store::Shard shard;
  return shard.load(fd) == 1 ? 0 : 1;
}
"""


def test_native_callers_are_functions(tmp_path: Path) -> None:
    program = compile_cpp(SOURCE, tmp_path / "shards", link=False)
    dftracer("run", "-q", "--data-dir", "all", "-o", "t", "--", program, cwd=tmp_path)
    places = [line["place"] for line in reports.load(tmp_path / "t").lines if line["reads"]]
    assert places == ["shards store::Shard::load"]
    # Another build of the program has other functions at these offsets.
    program.write_bytes(Path("/bin/true").read_bytes())
    (place,) = [line["place"] for line in reports.load(tmp_path / "t").lines if line["reads"]]
    assert place.startswith("shards+0x")


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200, b"x" * 99]
)
def test_damaged_modules_have_no_functions(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "module").write_bytes(content)
    assert Symbols().function_at(str(tmp_path / "module"), 10, None) is None


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    symbols = Symbols()
    for path in (str(tmp_path / "pipe"), str(tmp_path), "/dev/zero", "relative", "/a\0b", ""):
        assert symbols.function_at(path, 10, None) is None
