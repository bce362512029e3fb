"""When two traces are the same process: by their key, or not at all without a host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import synthetic
from support.synthetic import EPOCH, events_of, write

from dftracer import reports, trace
from dftracer.commands._cli.main import main

Capture = pytest.CaptureFixture[str]


def processes_and_events(capsys: Capture, *paths: Path) -> tuple[int, int]:
    assert main(["stats", "--json", *map(str, paths)]) == 0
    found = json.loads(capsys.readouterr().out)
    return len(found["processes"]), found["events"]


def test_a_trace_copied_before_recovery_is_one_process(tmp_path: Path, capsys: Capture) -> None:
    """The copy ends where the process was killed; recovery has added the rest to the other."""
    records = synthetic.process(rank=0, events=50)
    whole = write(tmp_path / "run.pfw.gz", records)
    write(tmp_path / "before.pfw.gz", records[:30])
    write(tmp_path / "plain.pfw", records)
    write(tmp_path / "worker.pfw.gz", synthetic.process(rank=0, pid=101, events=7))
    assert main(["stats", str(tmp_path)]) == 0
    seen = capsys.readouterr()
    assert "2 processes, 57 events" in seen.out
    assert f"before.pfw.gz: a copy of the trace of the same process in {tmp_path}" in seen.err
    assert seen.err.count("left out") == 2
    report = reports.load(tmp_path)
    assert [row["events"] for row in report.processes] == [50, 7]
    assert trace.read(tmp_path).files[-1] == tmp_path / "worker.pfw.gz"
    out = tmp_path / "out.pfw"
    assert main(["merge", str(tmp_path), "-o", str(out), "--quiet"]) == 0
    assert len(events_of(out)) == 57
    capsys.readouterr()
    # What speaks of each file by itself speaks of all.
    assert main(["info", "--json", str(whole), str(tmp_path / "before.pfw.gz")]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 2


def test_two_directories_that_were_copied_and_recovered_are_one_run(
    tmp_path: Path, capsys: Capture
) -> None:
    """Each has its own end record; all before it is the same."""
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        records = synthetic.process(rank=0, events=20)
        records[-1]["args"].update(recovered=True, lost=number)
        write(tmp_path / name / "run.pfw.gz", records)
    assert processes_and_events(capsys, tmp_path / "one", tmp_path / "two") == (1, 20)


def test_pieces_of_a_trace_are_no_copies(tmp_path: Path, capsys: Capture) -> None:
    whole = write(tmp_path / "run.pfw.gz", synthetic.process(rank=0, events=50))
    place = tmp_path / "pieces"
    place.mkdir()
    assert main(["split", str(whole), "-n", "3", "-o", str(place / "p"), "--quiet"]) == 0
    capsys.readouterr()
    _, events = processes_and_events(capsys, place)
    assert events == 50


@pytest.mark.parametrize("host", ["", "node0"])
def test_merge_joins_one_pid_at_two_times_only_on_a_known_host(
    tmp_path: Path, host: str, capsys: Capture
) -> None:
    paths = []
    for number in range(2):
        at = EPOCH + 1_000_000_000 * number  # a thousand seconds
        event = {"name": "n", "cat": "c", "pid": 7, "tid": 7, "ts": at, "dur": 5, "ph": "X"}
        path = tmp_path / f"{number}.pfw"
        args = {"hostname": host} if host else {}
        path.write_text("[\n" + json.dumps({**event, "args": args}) + "\n")
        paths.append(path)
    out = tmp_path / "o.pfw"
    assert main(["merge", *map(str, paths), "-o", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["processes"] == (1 if host else 2)
    assert len({event["pid"] for event in events_of(out)}) == (1 if host else 2)
    if not host:
        assert processes_and_events(capsys, *paths) == (2, 2)
        assert processes_and_events(capsys, out) == (2, 2)
