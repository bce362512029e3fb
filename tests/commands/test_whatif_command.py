"""`dftracer whatif`: what it prints, and what it says where it cannot know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.simulated_loader import Item, Loader
from support.synthetic_program import Program, training

from dftracer import reports
from dftracer.commands._cli.main import main
from dftracer.reports import whatif
from dftracer.reports.whatif import Change


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    batches = [[Item(read=300 + 10 * (n % 7), decode=2_000)] * 2 for n in range(40)]
    loader = Loader(batches, compute=lambda step: 1_000, passes=2, persistent=False)
    loader.run().write(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["whatif", *words]) == 0
    seen = capsys.readouterr()
    assert seen.err == ""
    return seen.out


def test_the_usual_changes(
    traces: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    shown = printed(capsys, str(traces))
    head, *lines = shown.splitlines()
    assert head.split()[:2] == ["change", "step"]
    changes = [line.split("  ")[0] for line in lines[: lines.index("")]]
    assert changes == [
        *("measured", "unchanged", "num_workers=1", "num_workers=4", "num_workers=8"),
        *("num_workers=16", "prefetch_factor=4", "persistent_workers=True"),
        *("reads 2 times as fast", "decoding 2 times as fast"),
        next(change for change in changes if change.startswith("reads at ")),
    ]
    assert "cores enough, because their number is unknown" in shown


def test_all_options_are_one_change(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--workers", "8", "--prefetch", "4", "--persistent", "--decode", "2x"]
    shown = printed(capsys, str(traces), *words, "--local-disk", "2GB/s", "--cpus", "4", "--json")
    found = json.loads(shown)
    change = Change(workers=8, prefetch=4, persistent=True, decode=2.0, disk=2e9)
    rows = whatif.predict(reports.load(traces), [change], cores=4)
    assert found["whatif"] == json.loads(json.dumps(rows))
    assert [row["change"] for row in found["whatif"]] == [
        "measured",
        "unchanged",
        "num_workers=8, prefetch_factor=4, persistent_workers=True, decoding 2 times as fast, "
        "reads at 2 GB/s",
    ]


def test_the_rate_of_the_fastest_reads(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, str(traces), "--local-disk", "fastest", "--json"))
    # 200 KB in 600 us or more, and the tenth that is fastest in no more.
    assert found["whatif"][-1]["change"] == "reads at 333 MB/s each"


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["whatif", *words]) == 1
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    return seen.err


def test_traces_without_lineage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training().write(tmp_path)
    line = refused(capsys, str(tmp_path))
    assert line == (
        "dftracer: nothing can be predicted: the trace does not say how batches were made: "
        "record it with `--torch`\n"
    )


def test_a_program_that_does_not_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program()
    program.read("/data/x", 4096, 10)
    program.write(tmp_path)
    assert "no training steps" in refused(capsys, str(tmp_path))


def test_a_trace_of_another_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        {"name": f"ProfilerStep#{n}", "cat": "user_annotation", "ph": "X", "pid": 1, "tid": 1}
        | {"ts": 100 * n, "dur": 90}
        for n in range(30)
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    assert "how batches were made" in refused(capsys, str(tmp_path / "trace.json"))


def test_no_rate_of_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Loader([[Item(read=0)] * 2] * 30).run().write(tmp_path)
    assert "no batch reads enough" in refused(capsys, str(tmp_path), "--local-disk", "fastest")


def test_a_damaged_trace(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The predictions are of what can be read, and the exit status says that it is not all."""
    path = traces / "t-node1-100.pfw"
    path.write_bytes(path.read_bytes()[:-500] + b'{"id":9,"na')
    assert main(["whatif", str(traces)]) == 3
    seen = capsys.readouterr()
    assert "measured" in seen.out
    assert "t-node1-100.pfw" in seen.err
