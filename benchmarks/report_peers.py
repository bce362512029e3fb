"""Other tools that report, beside `dftracer report`: dftracer-analyzer and PyDarshan's summary.

A peer that cannot be had or fails gives a cell that says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import BenchError
from reading import BIN, OURS, THREADS, Figures, best, make_trace, run, script
from subjects import ROOT
from table import Row
from venvs import install, last_line

ANALYZER = ("dftracer-analyzer==0.0.9", "dftracer-utils==0.0.12")
DARSHAN = ("darshan==3.5.0",)
EXAMPLE = "lib/python3*/site-packages/darshan/examples/example_logs/dxt.darshan"
SAMPLE = 0.2  # seconds
# Of the calls that a log holds one by one, which is what a trace holds, and of all its records. The
# other import makes matplotlib's list of fonts, which is made once and not at every report.
COUNT = """
import sys, darshan, matplotlib.font_manager
log = darshan.DarshanReport(sys.argv[1], read_all=True)
log.read_all_dxt_records()
single = [one for name in log.records if name.startswith("DXT") for one in log.records[name]]
calls = sum(len(one["read_segments"]) + len(one["write_segments"]) for one in single)
print(calls, sum(len(log.records[name]) for name in log.records))
"""


def watch(
    command: Sequence[str | Path],
    directory: Path,
    limit: float = 600,
    environment: Mapping[str, str] | None = None,
) -> Figures:
    """Runs a command and all that it starts. The peak is that of all its processes together, since
    one of the peers does its work in several."""
    output = directory / "output"
    began = time.monotonic()
    with output.open("w") as out:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    peak, sampled, late = 0, 0.0, False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.monotonic() - began
        if pid:
            break
        if seconds > limit and not late:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
        if seconds >= sampled + SAMPLE:
            peak = max(peak, _memory_of_session(process.pid))
            sampled = seconds
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(errors="replace")
    if late:
        raise BenchError(f"not done after {limit:g} s")
    if process.returncode != 0:
        raise BenchError(f"failed: {last_line(text)}")
    # The largest of its processes is known exactly, and may have peaked between two samples.
    peak = max(peak, usage.ru_maxrss * 1024)
    return Figures(seconds, usage.ru_utime + usage.ru_stime, peak, text)


def _memory_of_session(session: int) -> int:
    """Proportional shares, so that what processes share counts once."""
    total = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) != session:
                continue
            with open(f"/proc/{entry.name}/smaps_rollup", encoding="ascii") as lines:
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:
            continue  # ended meanwhile
    return total * 1024


@dataclass(frozen=True)
class Plan:
    events: int
    repeats: int
    limit: float  # seconds, of a peer
    prefix: Path
    log: Path | None


def peer_rows(plan: Plan, scratch: Path) -> list[Row]:
    return [_analyzer_row(plan, scratch / "analyzer"), _darshan_row(plan, scratch / "darshan")]


def _cell(figures: Figures) -> str:
    return f"{figures.seconds:.2f} s, CPU {figures.cpu:.1f} s, {figures.peak / 1e6:.0f} MB"


def _ours(trace: Path, directory: Path) -> Figures:
    return watch([BIN / "dftracer", "report", trace, "--threads", str(THREADS)], directory)


def _analyzer_row(plan: Plan, directory: Path) -> Row:
    directory.mkdir()
    trace = make_trace(plan.events, directory, plan.prefix)
    (ours,) = best(plan.repeats, lambda: _ours(trace, directory))
    (calls,) = run(script(OURS, trace), directory).text.split()[:1]
    return Row(
        f"report on {plan.events:,} events of ours",
        ours=_cell(ours),
        others={"dftracer-analyzer 0.0.9": _analyzer(plan, trace, int(calls), directory)},
    )


def _analyzer(plan: Plan, trace: Path, calls: int, directory: Path) -> str:
    """Once: it takes long."""
    venv = ROOT / "build" / "analyzer-venv"
    reason = install(venv, *ANALYZER)
    if reason:
        return f"does not install: {reason}"
    # It wants a directory, and leaves its index there; its Dask workers leave theirs in another.
    data = directory / "data"
    data.mkdir()
    shutil.copy(trace, data)
    words = [f"trace_path={data}", f"cluster.local_directory={directory / 'workers'}"]
    try:
        figures = watch([venv / "bin" / "dfanalyzer", *words], directory, plan.limit)
    except BenchError as error:
        return str(error)
    if f"{calls:,}" not in figures.text:
        return f"failed: it did not see {calls:,} calls"
    return _cell(figures)


def _darshan_row(plan: Plan, directory: Path) -> Row:
    directory.mkdir()
    head = "PyDarshan 3.5.0"
    venv = ROOT / "build" / "darshan-venv"
    reason = install(venv, *DARSHAN)
    if reason:
        return Row("summary of a Darshan log", others={head: f"does not install: {reason}"})
    python = venv / "bin" / "python"
    try:
        log = plan.log or next(venv.glob(EXAMPLE))
        calls, records = map(int, watch([python, "-c", COUNT, log], directory).text.split()[-2:])
        trace = make_trace(calls, directory, plan.prefix)
        summary = [python, "-m", "darshan", "summary", "--enable_dxt_heatmap", log]
        ours, theirs = best(
            plan.repeats,
            lambda: _ours(trace, directory),
            lambda: watch(summary, directory, plan.limit),
        )
    except StopIteration:
        return Row("summary of a Darshan log", others={head: "failed: it ships no example"})
    except (BenchError, ValueError) as error:
        return Row("summary of a Darshan log", others={head: last_line(str(error))})
    return Row(
        f"report on {calls:,} calls; PyDarshan: as many, in {records} records of {log.name}",
        ours=_cell(ours),
        others={head: _cell(theirs)},
    )
