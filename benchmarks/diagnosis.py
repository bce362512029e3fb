#!/usr/bin/env python3
"""Runs programs with one injected cause of slowness, and shows what reports name first.

    python benchmarks/diagnosis.py [--only NAME ...] [--no-peer] [--analyzer] [--write] [--jobs N]

The bar: the cause is the first finding of at least 95 % of them, and no finding of a healthy
program is high. --write puts the table into docs/diagnosis.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import diagnosis_peers
from diagnosis_cases import CASES, PROGRAMS, Case
from venvs import last_line

BAR = 0.95
LIMIT = 600  # seconds for one program
PAGE = Path(__file__).parents[1] / "docs" / "diagnosis.md"
BEGIN, END = "<!-- diagnosis:begin -->", "<!-- diagnosis:end -->"


@dataclass
class Result:
    case: Case
    findings: list[dict[str, Any]]
    bound: str = ""
    seconds: float = 0.0
    peers: dict[str, str] = field(default_factory=dict)
    wrong: str = ""  # why the bar is missed

    @property
    def met(self) -> bool:
        return not self.wrong

    @property
    def bound_right(self) -> bool:
        return not self.case.bound or self.bound in self.case.bound

    @property
    def first(self) -> str:
        if not self.findings:
            return "no finding"
        first = self.findings[0]
        return f"{first['severity']}: {first['title']}"


def judge(case: Case, findings: Sequence[dict[str, Any]]) -> str:
    """Why a report is wrong about a case; empty if it is right."""
    if case.healthy:
        high = [row["rule"] for row in findings if row["severity"] == "high"]
        return f"{', '.join(high)} of a healthy program" if high else ""
    if not findings:
        return f"no finding in place of {case.rule}"
    first = findings[0]
    if first["rule"] != case.rule:
        return f"{first['rule']} in place of {case.rule}"
    said = f"{first['title']} {first['evidence']}"
    missing = [text for text in case.texts if text not in said]
    return f"{case.rule} without {', '.join(missing)}" if missing else ""


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DFTRACER_")}
    return {**kept, "OMP_NUM_THREADS": "1", "DFTRACER_SUMMARY": "0"}


class Throttled:
    """The slow side of a case's named pipe, for as long as the program runs."""

    def __init__(self, case: Case, place: Path) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        if case.throttle is not None:
            way, path, seconds = case.throttle
            if not (place / path).exists():
                os.mkfifo(place / path)
            words = [sys.executable, str(PROGRAMS / "throttle.py"), way, path, str(seconds)]
            self.process = subprocess.Popen(words, cwd=place, env=environment())

    def __enter__(self) -> Throttled:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def execute(case: Case, place: Path, command: Sequence[str]) -> None:
    """Runs a program with all that it starts, and leaves none of these behind."""
    with Throttled(case, place):
        process = subprocess.Popen(
            command,
            cwd=place,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if status:
        raise subprocess.CalledProcessError(status, command)


def dftracer(*words: str) -> list[str]:
    return [sys.executable, "-m", "dftracer", *words]


def report(traces: Path) -> dict[str, Any]:
    words = dftracer("report", str(traces), "--json")
    done = subprocess.run(words, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
    tables: dict[str, Any] = json.loads(done.stdout)
    return tables


def diagnose(case: Case, place: Path) -> Result:
    """Traces the program of a case and judges the report on it."""
    torch = ["--torch"] if case.trains else []
    began = time.monotonic()
    if not (place / "traces").exists():
        if case.prepare:
            subprocess.run(case.preparation(), cwd=place, env=environment(), check=True)
        began = time.monotonic()
        execute(case, place, dftracer("run", *torch, "-o", "made", "--", *case.command()))
        (place / "made").rename(place / "traces")
    seconds = time.monotonic() - began
    tables = report(place / "traces")
    findings, overview = tables["findings"], tables["overview"][0]
    for row in findings:
        row["title"] = row["title"].replace(f"{place}/", "")
    bound = overview.get("bound") or ""
    result = Result(case, findings, bound, seconds)
    result.wrong = judge(case, findings)
    return result


def markdown(results: Sequence[Result]) -> str:
    peers = sorted({name for result in results for name in result.peers})
    head = ["cause", "dftracer names first", "bound by", *peers, "verdict"]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for result in results:
        cells = [
            result.case.cause + (" (healthy)" if result.case.healthy else ""),
            result.first,
            result.bound if result.bound_right else f"**{result.bound}**",
            *(result.peers.get(name, "") for name in peers),
            "right" if result.met else f"**wrong**: {result.wrong}",
        ]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def verdict(results: Sequence[Result]) -> tuple[str, bool]:
    slow = [result for result in results if not result.case.healthy]
    healthy = [result for result in results if result.case.healthy]
    right, quiet = sum(r.met for r in slow), sum(r.met for r in healthy)
    told = [result for result in results if result.case.bound]
    share = right / len(slow) if slow else 1.0
    bound = sum(result.bound_right for result in told)
    text = (
        f"The injected cause is the first finding of {right} of {len(slow)} slow programs; "
        f"{quiet} of {len(healthy)} healthy programs have no finding of high severity. What a run "
        f"is bound by is right for {bound} of the {len(told)} programs for which it was arranged."
    )
    return text, share >= BAR and quiet == len(healthy)


def put(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these cases")
    parser.add_argument("--no-peer", action="store_true", help="do not run other tools")
    parser.add_argument("--analyzer", action="store_true", help="run DFAnalyzer too: minutes each")
    parser.add_argument("--write", action="store_true", help="put the table into docs/diagnosis.md")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time (1)")
    parser.add_argument("--keep", type=Path, help="keep traces here, and use those that are there")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    peers = [] if options.no_peer else diagnosis_peers.available(options.analyzer)

    def examine(case: Case) -> Result:
        with tempfile.TemporaryDirectory(prefix="diagnosis-") as temporary:
            place = options.keep / case.name if options.keep else Path(temporary)
            place.mkdir(parents=True, exist_ok=True)
            try:
                result = diagnose(case, place)
            except subprocess.SubprocessError as error:
                return Result(case, [], wrong=last_line(str(error)))
            for peer in peers:
                result.peers[peer.name] = peer.first(case, place, execute)
        return result

    results = []
    workers = ThreadPoolExecutor(options.jobs)
    for case, result in zip(chosen, workers.map(examine, chosen)):
        results.append(result)
        state = "right" if result.met else f"WRONG: {result.wrong}"
        if not result.bound_right:
            state += f", bound by {result.bound} and not {' or '.join(case.bound)}"
        print(f"{case.name:<24} {result.seconds:4.1f} s  {state}", file=sys.stderr, flush=True)
        for row in result.findings[:3]:
            print(f"    {row['severity']:<6} {row['rule']}: {row['title']}", file=sys.stderr)
    text, met = verdict(results)
    table = f"{text}\n\n{markdown(results)}"
    print(table)
    if options.write:
        put(table)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
