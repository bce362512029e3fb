"""Clocks of hosts: what collective operations prove, and what is done about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import synthetic
from support.synthetic import EPOCH, events_of, lines_of, records_of, write
from support.synthetic import merge as merged


def skewed(tmp_path: Path, skew: int, *, wait: bool = True) -> list[Path]:
    """Two ranks a host, ten barriers; the second host's clock is ahead by `skew` microseconds."""
    files = []
    for rank in range(4):
        rounds = []
        for step in range(10):
            release = EPOCH + 1000 * step + 800
            come = release - 100 * ((rank * 3 + step) % 5) - 20
            leave = release + 3 * rank if wait else come + 1
            rounds.append(synthetic.collective("dist.barrier", come, leave))
        far = rank >= 2
        path = tmp_path / f"rank{rank}.pfw.gz"
        kwargs = {"host": f"node{int(far)}", "skew": skew if far else 0}
        files.append(
            write(path, synthetic.process(rank=rank, pid=50 + rank, extra=rounds, **kwargs))
        )
    return files


@pytest.mark.parametrize("skew", [5_000_000, -5_000_000])
def test_clocks_that_disagree_are_aligned_by_what_all_waited_for(
    tmp_path: Path, skew: int, capsys: pytest.CaptureFixture[str]
):
    files = skewed(tmp_path, skew)
    out = merged(tmp_path / "o.pfw.gz", *files)
    words = capsys.readouterr().err
    assert re.search(r"the clock of node1 is 5 s (ahead of|behind) that of node0", words)
    assert "within" in words
    assert "20 collective operations" not in words
    ends: dict[int, list[int]] = {}
    for event in events_of(out):
        if event["name"] == "dist.barrier":
            ends.setdefault(event["pid"], []).append(event["ts"] + event["dur"])
    for after in zip(*ends.values()):
        assert max(after) - min(after) <= 40
    (clock,) = [r["args"] for r in records_of(out) if r["name"] == "MC"]
    assert clock["applied"] is True
    assert clock["least_ns"] <= skew * 1000 <= clock["most_ns"]

    # What was taken out of the times can be given back, to the microsecond.
    untouched = merged(tmp_path / "plain.pfw", *files, options=("--no-align",))
    back = merged(tmp_path / "back.pfw", out, options=("--no-align",))
    assert sorted(lines_of(back)) == sorted(lines_of(untouched))


def test_clocks_that_agree_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = skewed(tmp_path, 0)
    out = merged(tmp_path / "o.pfw", *files)
    assert "not corrected" in capsys.readouterr().err
    starts = [r["ts"] for r in records_of(out) if r["name"] == "start"]
    assert starts == [EPOCH] * 4
    moved = merged(tmp_path / "a.pfw", *files, options=("--align",))
    assert ": corrected" in capsys.readouterr().err
    assert len(events_of(moved)) == len(events_of(out))


def test_operations_that_do_not_wait_say_nothing_about_clocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    merged(tmp_path / "o.pfw", *skewed(tmp_path, 0, wait=False))
    assert capsys.readouterr().err == ""
