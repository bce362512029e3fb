"""Which files are traced: DFTRACER_DATA_DIR in all its forms; switches for whole families."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support import intercept, traces


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """home/data/sub, work/data2, work/other; and beside it a link to work/data."""
    work = tmp_path / "home"
    for name in ("data/sub", "data2", "other"):
        (work / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("home/data")
    return work


def touch(
    place: Path,
    mode: str,
    *words: str | bytes,
    env: dict[str, str] | None = None,
    stderr: str | re.Pattern[str] | None = "",
) -> intercept.Run:
    program = intercept.program("cov_touch", mode)
    out = place.parent / f"traces-{len(list(place.parent.iterdir()))}"
    return intercept.traced(program, *words, mode=mode, cwd=place, out=out, env=env, stderr=stderr)


def seen(run: intercept.Run, place: Path) -> list[str]:
    """The files of the calls, once each, in order, as seen from the directory of the test."""
    found: dict[str, None] = {}
    for event in run.events:
        if event.path is not None:
            path = event.path
            above = f"{place.parent}/"
            found[path[len(above) :] if path.startswith(above) else path] = None
    return list(found)


@intercept.IN_EACH_MODE
@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        ("{work}/data", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("{work}/data/", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("{work}//./data/sub/..", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("data", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("./data/", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("../home/data", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("{work}/data/sub", ["home/data/sub/a"]),
        ("{work}/data/a", ["home/data/a"]),
        (
            "{work}/data:{work}/other",
            ["home/data/a", "home/data/sub/a", "home/other/a", "home/data"],
        ),
        (":{work}/other::", ["home/other/a"]),
        ("data2:other", ["home/data2/a", "home/other/a"]),
        # Overlapping: everything below one or the other, in any order.
        ("{work}/data:{work}/data/sub", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("{work}/data/sub:{work}/data", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("data/sub:{work}/data:data", ["home/data/a", "home/data/sub/a", "home/data"]),
        ("{work}/none", []),
        (
            "/",
            ["home/data/a", "home/data/sub/a", "home/data2/a", "home/other/a", "home/data"],
        ),
        (
            ".",
            ["home/data/a", "home/data/sub/a", "home/data2/a", "home/other/a", "home/data"],
        ),
    ],
)
def test_only_what_lies_below_the_directories(
    place: Path, mode: str, directories: str, expected: list[str]
) -> None:
    words = ("odata/a", f"o{place}/data/sub/a", "fdata2/a", f"f{place}/other/a", f"s{place}/data")
    chosen = {"DFTRACER_DATA_DIR": directories.format(work=place)}
    run = touch(place, mode, *words, env=chosen)
    assert seen(run, place) == expected


@intercept.IN_EACH_MODE
def test_every_call_on_a_file_or_none(place: Path, mode: str) -> None:
    """open, write and close are decided alike; what is left out is counted."""
    words = ("odata/a", "oother/a", "fdata/b", "fother/b", "sdata/a", "sother/a")
    run = touch(place, mode, *words, env={"DFTRACER_DATA_DIR": f"{place}/data"})
    assert [event.name for event in run.one.events] == [
        *("open", "write", "close"),
        *("fopen", "fwrite", "fclose"),
        "stat",
    ]
    assert run.one.end["calls"] == 14
    assert run.one.end["filtered"] == 7
    assert run.one.end["write_seen"] == 4


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("directories", ["data", "{work}/data", "../home/data"])
def test_the_way_to_a_file_does_not_matter(place: Path, mode: str, directories: str) -> None:
    """Relative, with dots, below a descriptor, after a chdir: it is where it is."""
    words = (
        "odata/a1",
        "o./data/../data//a2",
        "oother/../data/a3",
        f"o{place}/other/../data/a4",
        "ddata,a5",
        "dother,../data/a6",
        "d.,data/a7",
        "cdata",
        "oa8",
        "o./sub/../a9",
        "o../other/no",
        "o../data2/no",
        "csub",
        "o../b1",
        "fb2",
        f"c{place}/other",
        "ono",
        "o../data/b3",
        "d../data,b4",
    )
    run = touch(place, mode, *words, env={"DFTRACER_DATA_DIR": directories.format(work=place)})
    names = [f"home/data/a{number}" for number in range(1, 10)]
    names += ["home/data/b1", "home/data/sub/b2", "home/data/b3", "home/data/b4"]
    found = [name for name in seen(run, place) if name not in ("home/data", "home/data/sub")]
    assert found == names


@intercept.IN_EACH_MODE
def test_a_directory_that_is_a_link(place: Path, mode: str) -> None:
    """Its own name counts, and the real one."""
    link = place.parent / "link"
    words = (f"o{link}/a", "odata/b", "oother/no", "odata2/no", f"d{link},c", f"c{link}", "od")
    run = touch(place, mode, *words, env={"DFTRACER_DATA_DIR": str(link)})
    found = seen(run, place)
    assert [name for name in found if name not in ("link", "home/data")] == [
        "link/a",
        "home/data/b",
        "link/c",
        "home/data/d",
    ]
    relative = touch(place, mode, "odata/b", "o../link/a", env={"DFTRACER_DATA_DIR": "../link"})
    # With dots in the path the kernel is asked, and has the real name.
    assert seen(relative, place) == ["home/data/b", "home/data/a"]


@intercept.IN_EACH_MODE
def test_dots_after_a_link_go_up_from_where_it_leads(place: Path, mode: str) -> None:
    link = place.parent / "link"
    words = ("o../link/../x", f"o{link}/../y", f"f{link}/../z", f"d{link},../v")
    run = touch(place, mode, *words)
    found = [name for name in seen(run, place) if name != "link"]
    assert found == ["home/x", "home/y", "home/z", "home/v"]
    assert all((place / name).exists() for name in "xyzv")


@intercept.IN_EACH_MODE
def test_a_path_through_a_link_is_known_by_the_name_that_was_used(place: Path, mode: str) -> None:
    """Following links in every path would cost each call a walk; the directory's are followed."""
    link = place.parent / "link"
    env = {"DFTRACER_DATA_DIR": f"{place}/data"}
    run = touch(place, mode, f"o{link}/a", "odata/b", f"c{link}", "oc", env=env)
    assert seen(run, place) == ["home/data/b", "home/data/c"]


@intercept.IN_EACH_MODE
def test_a_directory_that_comes_later(place: Path, mode: str) -> None:
    run = touch(place, mode, "mnew", "onew/a", "oother/a", env={"DFTRACER_DATA_DIR": "new"})
    assert seen(run, place) == ["home/new", "home/new/a"]


@intercept.IN_EACH_MODE
def test_strange_names_of_directories(place: Path, mode: str) -> None:
    for name in (
        b"with space",
        b"quote\"and'",
        b"new\nline",
        b"\xff\xfe",
        "größe".encode(),
        b"all",
    ):
        directory = os.fsencode(place) + b"/" + name
        os.mkdir(directory)
        env = {"DFTRACER_DATA_DIR": os.fsdecode(b"./" + name)}
        out = place.parent / f"out-{name.hex()}"
        program = intercept.program("cov_touch", mode)
        words = (b"o" + name + b"/a", b"oother/a")
        run = intercept.traced(program, *words, mode=mode, cwd=place, out=out, env=env)
        assert {event.path for event in run.events} == {os.fsdecode(directory + b"/a")}


# What a program touches that the user does not care about, unless they say so.
SYSTEM = ("/dev/null", "/proc/self/comm", "/sys/none", "/proc", "/dev/none")


@intercept.IN_EACH_MODE
def test_without_directories_the_systems_files_are_left_out(place: Path, mode: str) -> None:
    (place / "lib" / "python3.11").mkdir(parents=True)
    mine = ["data/a", "notes.sorted", "x.py", "x.so2", "lib/python3.11/data.csv"]
    theirs = ["libx.so", "libx.so.6", "lib/python3.11/x.py", "lib/python3.11/x.pyc"]
    words = [f"s{name}" for name in SYSTEM]
    words += [f"o{name}" for name in theirs] + [f"o{name}" for name in mine]
    run = touch(place, mode, *words, "p")
    *files, pipe = seen(run, place)
    assert files == [f"home/{name}" for name in mine]
    assert pipe.startswith("pipe:[")


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("directories", ["", ":", "::"])
def test_an_empty_list_is_none(place: Path, mode: str, directories: str) -> None:
    words = ("odata/a", "s/dev/null", "oother/a")
    run = touch(place, mode, *words, env={"DFTRACER_DATA_DIR": directories})
    assert seen(run, place) == ["home/data/a", "home/other/a"]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("directories", ["all", "all:{work}/data", "{work}/data:all"])
def test_all_is_all(place: Path, mode: str, directories: str) -> None:
    (place / "lib" / "python3.11").mkdir(parents=True)
    files = ["libx.so", "libx.so.6", "lib/python3.11/x.py", "data/a", "other/a"]
    words = [f"s{name}" for name in SYSTEM] + [f"o{name}" for name in files]
    env = {"DFTRACER_DATA_DIR": directories.format(work=place)}
    run = touch(place, mode, *words, "p", env=env)
    *found, pipe = seen(run, place)
    assert found == [*SYSTEM, *(f"home/{name}" for name in files)]
    assert pipe.startswith("pipe:[")


@intercept.IN_EACH_MODE
def test_pipes_lie_below_no_directory(place: Path, mode: str) -> None:
    run = touch(place, mode, "p", "odata/a", env={"DFTRACER_DATA_DIR": f"{place}/data:/"})
    assert seen(run, place) == ["home/data/a"]
    assert run.one.counts() == {"open": 1, "write": 1, "close": 1}


@intercept.IN_EACH_MODE
def test_renaming_into_a_directory_and_out_of_it(place: Path, mode: str) -> None:
    words = ("odata/a", "oother/b", "rdata/a,other/a", "rother/b,data/b", "rother/a,other/c")
    run = touch(place, mode, *words, env={"DFTRACER_DATA_DIR": "data"})
    names = [
        (event.path, event.args["newpath_hash"]) for event in run.events if event.name == "rename"
    ]
    assert names == [
        (f"{place}/data/a", f"{place}/other/a"),
        (f"{place}/other/b", f"{place}/data/b"),
    ]


@intercept.IN_EACH_MODE
def test_inherited_descriptors_are_judged_by_their_file(place: Path, mode: str) -> None:
    program = intercept.program("cov_touch", mode)
    script = 'exec "$0" "$@" 3>>data/a 4>>other/a 5>>/dev/null'
    run = intercept.traced(
        *("sh", "-c", script, program, "w3", "w4", "w5", "w3"),
        mode=mode,
        cwd=place,
        env={"DFTRACER_DATA_DIR": f"{place}/data"},
    )
    (process,) = run.of(program.name)
    assert [(event.name, event.path) for event in process.events] == [
        ("write", f"{place}/data/a"),
        ("write", f"{place}/data/a"),
    ]
    assert process.end["filtered"] == 2


@intercept.IN_EACH_MODE
def test_processes_are_always_recorded(place: Path, mode: str) -> None:
    run = touch(place, mode, "oother/a", "x", env={"DFTRACER_DATA_DIR": f"{place}/data"})
    (parent,) = [one for one in run.processes if one.named("fork")]
    assert [event.name for event in parent.events] == ["fork", "wait"]


@intercept.IN_EACH_MODE
def test_directories_of_the_call_and_of_the_variable_add_up(place: Path, mode: str) -> None:
    env = {"DFTRACER_DATA_DIR": "data", "TOUCH_DIRECTORIES": f"{place}/other"}
    run = touch(place, mode, "odata/a", "oother/a", "odata2/a", env=env)
    added = ["home/other/a"] if mode == intercept.FUNCTION else []
    assert seen(run, place) == ["home/data/a", *added]


def test_all_works_as_an_argument(place: Path) -> None:
    env = {"TOUCH_DIRECTORIES": "all"}
    run = touch(place, intercept.FUNCTION, "odata/a", "s/dev/null", env=env)
    assert seen(run, place) == ["home/data/a", "/dev/null"]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("DFTRACER_DISABLE_POSIX", ["fopen", "fwrite", "fclose"]),
        ("DFTRACER_DISABLE_STDIO", ["open", "write", "close", "stat"]),
        ("DFTRACER_DISABLE_IO", []),
    ],
)
def test_families_can_be_switched_off(
    place: Path, mode: str, switch: str, expected: list[str]
) -> None:
    run = touch(place, mode, "odata/a", "fdata/a", "sdata/a", env={switch: "1"})
    assert [event.name for event in run.events] == expected
    usual = touch(place, mode, "odata/a", "fdata/a", "sdata/a", env={switch: "0"})
    assert len(usual.events) == 7


@intercept.IN_EACH_MODE
def test_without_details_only_the_file_is_left(place: Path, mode: str) -> None:
    words = ("odata/a", "fdata/a", "sdata/a", "rdata/a,data/b", "onone/none")
    run = touch(place, mode, *words, env={"DFTRACER_INC_METADATA": "0"})
    assert [event.name for event in run.events] == [
        *("open", "write", "close"),
        *("fopen", "fwrite", "fclose"),
        *("stat", "rename", "open"),
    ]
    for event in run.events:
        assert event.args == {}, str(event)
        assert event.path is not None


# ---- The line at the end -------------------------------------------------------------------------

LINE = re.compile(r"dftracer: [^\n]+\n")


@intercept.IN_EACH_MODE
def test_nothing_recorded_and_why(place: Path, mode: str) -> None:
    """The most usual disappointment: a directory that nobody uses."""
    env = {"DFTRACER_DATA_DIR": f"{place}/none", "DFTRACER_SUMMARY": "1"}
    run = touch(place, mode, "oother/a", "sother/a", env=env, stderr=LINE)
    line = run.result.stderr
    assert re.search(r"\b0 events\b|\bno events\b", line), line
    assert re.search(r"\b4 calls\b|\b4 \w+ filtered|\bfiltered\b.*\b4\b|\b4 filtered\b", line), line
    assert "DFTRACER_DATA_DIR" in line or "data_dir" in line, line


@intercept.IN_EACH_MODE
def test_the_line_counts_what_the_trace_holds(place: Path, mode: str) -> None:
    env = {"DFTRACER_DATA_DIR": f"{place}/data", "DFTRACER_SUMMARY": "1"}
    run = touch(place, mode, "odata/a", "fdata/b", "oother/a", env=env, stderr=LINE)
    numbers = [int(number) for number in re.findall(r"\b\d+\b", run.result.stderr)]
    assert 6 in numbers, run.result.stderr  # events
    assert 3 in numbers, run.result.stderr  # filtered
    assert str(run.directory) in run.result.stderr or "t-" in run.result.stderr


def test_switched_off_there_is_neither_a_line_nor_a_file(place: Path) -> None:
    program = intercept.program("cov_touch", intercept.PRELOAD)
    env = {"DFTRACER_ENABLE": "0", "DFTRACER_SUMMARY": "1"}
    run = intercept.traced(program, "odata/a", cwd=place, env=env)
    assert run.processes == []
    assert traces.files(run.directory) == []
    assert traces.spools(run.directory) == []


def test_relative_directories_are_those_of_the_first_process(place: Path) -> None:
    """A child that starts elsewhere means the same files, and writes to the same place."""
    program = intercept.program("cov_touch", intercept.PRELOAD)
    (place / "other" / "data").mkdir()
    script = 'cd other && "$0" o../data/a odata/no && cd data && "$0" o../../data/b ono && true'
    env = {"DFTRACER_DATA_DIR": "data", "DFTRACER_LOG_FILE": "../out/t"}
    out = place.parent / "out"
    run = intercept.traced("sh", "-c", script, program, cwd=place, out=out, env=env)
    children = run.of(program.name)
    assert sorted(seen(intercept.Run(run.result, out, children), place)) == [
        "home/data/a",
        "home/data/b",
    ]
    assert [path.name for path in place.rglob("*.pfw*")] == []
