"""Programs, processes and pipes of builds and pipelines: tables, summary and page."""

from __future__ import annotations

from pathlib import Path

from support.synthetic_program import Program, build

from dftracer import reports
from dftracer.reports.programs import by_program
from dftracer.reports.render.page import page
from dftracer.reports.render.summary import summarise
from dftracer.reports.tree import tree_table, walk


def test_programs_are_the_sums_of_their_processes(tmp_path: Path) -> None:
    build(tmp_path)
    rows = {row["program"]: row for row in reports.load(tmp_path).programs}
    assert list(rows) == ["cc", "make", "sh"]
    ms = 1_000_000
    cc = rows["cc"]
    assert (cc["processes"], cc["life_ns"], cc["wall_ns"]) == (2, 400 * ms, 330 * ms)
    assert (cc["cpu_ns"], cc["io_ns"], cc["wait_ns"]) == (340 * ms, 60 * ms, 0)
    assert cc["read_bytes"] == 205_000
    assert rows["make"]["wait_ns"] == 370 * ms
    assert rows["sh"]["wall_ns"] == 400 * ms


def test_the_cpu_time_of_a_program_is_unknown_if_that_of_a_process_is() -> None:
    known = {"command": "cc a.c", "start_ns": 0, "end_ns": 5, "life_ns": 5, "cpu_ns": 3,
             "busy_ns": 5, "io_ns": 0, "wait_ns": 0, "read_bytes": 1, "write_bytes": 0}  # fmt: skip
    ((name, count, wall, life, cpu, *_),) = by_program([known, {**known, "cpu_ns": None}])
    assert (name, count, wall, life, cpu) == ("cc", 2, 5, 10, None)


def test_the_tree_has_every_process_below_its_parent(tmp_path: Path) -> None:
    build(tmp_path)
    report = reports.load(tmp_path)
    told = [(depth, row["pid"]) for depth, row in walk(report.processes.dicts())]
    assert told == [(0, 100), (1, 101), (2, 102), (2, 103)]
    names = [row["tree"].strip() for row in tree_table(report.processes.dicts())]
    assert [name.split()[-1] for name in names] == ["make", "-j2", "a.c", "b.c"]
    text = "\n".join(summarise(report))
    assert "Programs, by busy time" in text
    # Of the two compilers, the one that lived longer comes first.
    assert text.index("b.c") < text.index("a.c")


def test_no_process_is_lost_whatever_its_parent_is() -> None:
    parents = {0: None, 1: 9, 2: 3, 3: 2, 4: 0}  # 9 is not there; 2 and 3 started each other
    rows = [{"process": p, "parent": parent, "start_ns": 0} for p, parent in parents.items()]
    told = [(depth, row["process"]) for depth, row in walk(rows)]
    assert told == [(0, 0), (1, 4), (0, 1), (0, 2), (1, 3)]


def test_a_page_without_training_leads_with_programs_and_files(tmp_path: Path) -> None:
    build(tmp_path)
    made = page(reports.load(tmp_path))
    order = ["programs-section", "files-section", "calls-section", "time"]
    places = [made.index(f'<section id="{key}"') for key in order]
    assert places == sorted(places)
    assert '<section id="training"' not in made
    assert "hidden by compute" not in made.split('<section id="programs-section"')[0]
    assert "CPU time" in made


def test_pipes_have_the_calls_of_both_ends(tmp_path: Path) -> None:
    writer, reader = Program(pid=100, command="seq;9"), Program(pid=101, command="sort")
    for _ in range(3):
        writer.read("pipe:[5]", 100, 40, name="write")
        reader.read("pipe:[5]", 100, 70)
    reader.read("socket:[6]", 30, 5)
    for program in (writer, reader):
        program.write(tmp_path)
    rows = reports.load(tmp_path).pipes.dicts()
    assert [(r["process"], r["pipe"], r["reads"], r["writes"], r["read_ns"], r["write_ns"],
             r["read_bytes"], r["write_bytes"]) for r in rows] == [
        (1, "pipe:[5]", 3, 0, 210_000, 0, 300, 0),
        (0, "pipe:[5]", 0, 3, 0, 120_000, 0, 300),
        (1, "socket:[6]", 1, 0, 5_000, 0, 30, 0),
    ]  # fmt: skip
