"""Loops that are left by `break`: the wait for the last item is fetching like any other."""

from __future__ import annotations

from pathlib import Path

from support.synthetic_program import Program

from dftracer import reports

US = 1000


def test_the_last_fetch_of_a_loop_that_is_left_is_fetching(tmp_path: Path) -> None:
    program = Program()
    for epoch in range(2):
        at = epoch * 1000
        program.span("pipeline", "epoch.block", 900, at=at)
        for i, left in enumerate(("", "", ".last")):
            program.span("dataloader", f"fetch.iter{left}", 100, at=at + 300 * i)
            program.span("dataloader", f"fetch.block{left}", 180, at=at + 300 * i + 100)
            program.span("compute", "forward", 150, at=at + 300 * i + 110)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    steps = [(s["epoch"], s["step"]) for s in report.steps]
    assert steps == [(epoch, 3 * epoch + i) for epoch in range(2) for i in range(3)]
    # The body stands around other events, and is no fetching itself.
    assert {s["fetch_ns"] // US for s in report.steps} == {100}
    assert {s["compute_ns"] // US for s in report.steps} == {150}
    assert [epoch["fetch_ns"] // US for epoch in report.epochs.dicts()] == [300, 300]
