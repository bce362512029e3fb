"""Hand-made tables of a report: plausible, the same every time, without a trace behind them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from dftracer.reports.model import SCHEMAS, Report, Table

START = 1_794_775_604_000_000_000
MS = 1_000_000
COMMAND = "python train.py --epochs 3"

# Names that a page could take for more than names.
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "</title></style><img src=x onerror=\"document.title='owned'\">",
    "\"'`><svg/onload=document.title='owned'>",
    "<a href='http://example.invalid/'>a link</a>",
    "${document.title='owned'}%{x}{{x}}<!--",
    "\u202egnp.exe \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "line\nbreak\ttab\x00nul\x1b[31m\u2028sep",
    "lone \udcff surrogate",
    "/deep" * 820,
    "",
)


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Of dictionaries; what a row does not name is None."""
    names = [column.name for column in SCHEMAS[name].columns]
    unknown = {key for row in rows for key in row} - set(names)
    assert not unknown, f"{name} has no {unknown}"
    return Table(SCHEMAS[name], [tuple(row.get(key) for key in names) for row in rows])


def empty() -> Report:
    report = Report({name: Table(schema) for name, schema in SCHEMAS.items()})
    zeros = {column.name: 0 for column in SCHEMAS["overview"].columns if column.kind == "int"}
    report.tables["overview"] = table("overview", [{**zeros, "first_ns": None, "last_ns": None}])
    report.traces = ["traces/empty.pfw.gz"]
    return report


def training(
    *,
    ranks: int = 2,
    workers: int = 2,
    epochs: int = 3,
    steps: int = 40,
    step_ms: float = 80,
    noise: float = 0.06,
    slower_fetch: float = 1.0,
    files: int = 60,
    findings: bool = True,
    names: Sequence[str] = (),
    seed: int = 1,
) -> Report:
    """A data-parallel training; `names` take the place of the first names of every kind."""
    chance = random.Random(seed)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    name = _namer(names)
    _add_steps(rows, chance, ranks, epochs, steps, step_ms, noise, slower_fetch)
    job_ns = max(row["start_ns"] + row["dur_ns"] for row in rows["steps"]) - START
    _add_processes(rows, chance, names, ranks, workers, job_ns)
    _add_time(rows, chance, job_ns)
    _add_calls(rows, chance, name)
    _add_files(rows, chance, name, files)
    if findings:
        _add_findings(rows, name, job_ns)
    _add_slow_steps(rows, name)
    _add_overview(rows, ranks, job_ns)
    report = Report({key: table(key, found) for key, found in rows.items()})
    report.traces = [f"traces/{name('trace', n)}.pfw.gz" for n in range(ranks * (workers + 1))]
    return report


def _namer(names: Sequence[str]) -> Any:
    def name(what: str, number: int) -> str:
        return names[number] if number < len(names) else f"{what}-{number}"

    return name


def _add_steps(
    rows: dict[str, list[dict[str, Any]]],
    chance: random.Random,
    ranks: int,
    epochs: int,
    steps: int,
    step_ms: float,
    noise: float,
    slower_fetch: float,
) -> None:
    for rank in range(ranks):
        now = START + 900 * MS
        for epoch in range(epochs):
            began, sums = now, dict.fromkeys(("fetch", "compute", "transfer", "communication"), 0)
            for step in range(steps):
                wait = step_ms * 0.3 * slower_fetch * chance.lognormvariate(0, noise * 3)
                if step == 0:
                    wait += step_ms * 4
                parts = {
                    "fetch": wait,
                    "compute": step_ms * 0.5 * chance.lognormvariate(0, noise),
                    "transfer": step_ms * 0.04,
                    "communication": step_ms * 0.1 * chance.lognormvariate(0, noise * 2),
                }
                spent = {key: int(value * MS) for key, value in parts.items()}
                dur = sum(spent.values()) + int(step_ms * 0.06 * MS)
                split = {f"{key}_ns": value for key, value in spent.items()}
                for key, value in spent.items():
                    sums[key] += value
                rows["steps"].append(
                    {
                        "process": rank,
                        "rank": rank,
                        "epoch": epoch,
                        "step": step,
                        "start_ns": now,
                        "dur_ns": dur,
                        **split,
                        "checkpoint_ns": 0,
                        "io_ns": spent["fetch"] // 3,
                        "unhidden_io_ns": spent["fetch"] // 4,
                        "unattributed_ns": dur - sum(spent.values()),
                    }
                )
                now += dur
            checkpoint = int(step_ms * 3 * MS)
            now += checkpoint
            rows["epochs"].append(
                {
                    "process": rank,
                    "rank": rank,
                    "epoch": epoch,
                    "start_ns": began,
                    "dur_ns": now - began,
                    "steps": steps,
                    **{f"{key}_ns": value for key, value in sums.items()},
                    "checkpoint_ns": checkpoint,
                    "io_ns": sums["fetch"] // 3,
                    "unhidden_io_ns": sums["fetch"] // 4,
                    "unattributed_ns": now - began - checkpoint - sum(sums.values()),
                }
            )


def _add_processes(
    rows: dict[str, list[dict[str, Any]]],
    chance: random.Random,
    names: Sequence[str],
    ranks: int,
    workers: int,
    job_ns: int,
) -> None:
    name = _namer(names)
    number = 0
    for rank in range(ranks):
        for worker in range(-1, workers):
            main = worker < 0
            io = int(job_ns * (0.08 if main else chance.uniform(0.3, 0.5)))
            compute = int(job_ns * 0.5) if main else 0
            hidden = io // 2 if main else 0
            host = name("node", rank)
            rows["processes"].append(
                {
                    "process": number,
                    "pid": 4100 + number,
                    "host": host,
                    "rank": rank if main else None,
                    "role": "main" if main else "worker",
                    "name": name("python", number),
                    "command": names[number]
                    if number < len(names)
                    else "python train.py --epochs 3",
                    "events": 12_000 + 31 * number,
                    "threads": 3 if main else 1,
                    "first_ns": START + number * MS,
                    "last_ns": START + job_ns,
                    "io_ns": io,
                    "compute_ns": compute,
                    "hidden_io_ns": hidden,
                    "unhidden_io_ns": io - hidden,
                    "overlap_percent": 100 * hidden / io,
                    "read_bytes": 120_000_000 if not main else 3_000_000,
                    "write_bytes": 40_000_000 if main else 0,
                    "ops": 4000,
                    "lost": 0,
                    "ended": "cleanly",
                    "trace": f"traces/run-{number}.pfw.gz",
                }
            )
            kind = "rank" if main else "worker"
            value = int(80 * MS * (1.6 if number == 2 else chance.uniform(0.95, 1.05)))
            rows["stragglers"].append(
                {
                    "kind": kind,
                    "process": number,
                    "rank": rank,
                    "measure": "step time" if main else "item time",
                    "value": value,
                    "median": 80 * MS,
                    "ratio": value / (80 * MS),
                }
            )
            number += 1
    rows["stragglers"].sort(key=lambda row: -row["ratio"])
    for host in dict.fromkeys(row["host"] for row in rows["processes"]):
        there = [row for row in rows["processes"] if row["host"] == host]
        keys = ("events", "io_ns", "compute_ns", "read_bytes", "write_bytes")
        sums = {key: sum(row[key] for row in there) for key in keys}
        rows["hosts"].append({"host": host, "processes": len(there), **sums})


def _add_time(rows: dict[str, list[dict[str, Any]]], chance: random.Random, job_ns: int) -> None:
    piece = 1 << math.ceil(math.log2(job_ns / 240))
    for at in range(job_ns // piece + 1):
        start = START + at * piece
        wave = 1 + math.sin(at / 9)
        for cat, ops in (("POSIX", 180), ("STDIO", 20), ("compute", 6), ("dataloader", 2)):
            io = cat in ("POSIX", "STDIO")
            rows["timeline"].append(
                {
                    "start_ns": start,
                    "dur_ns": piece,
                    "cat": cat,
                    "ops": int(ops * wave * chance.uniform(0.8, 1.2)),
                    "read_bytes": int(ops * 20_000 * wave) if io else 0,
                    "write_bytes": int(ops * 9_000 * (at % 40 > 36)) if io else 0,
                    "busy_ns": int(piece * wave * 0.7),
                }
            )
        for process in rows["processes"]:
            share = 0.4 * wave * chance.uniform(0.5, 1.0)
            busy = process["compute_ns"] > 0
            rows["heat"].append(
                {
                    "process": process["process"],
                    "start_ns": start,
                    "dur_ns": piece,
                    "io_ns": int(piece * share),
                    "compute_ns": int(piece * 0.5) if busy else 0,
                    "unhidden_io_ns": int(piece * share / 2),
                    "ops": int(30 * wave),
                    "bytes": int(400_000 * wave),
                }
            )


def _add_calls(rows: dict[str, list[dict[str, Any]]], chance: random.Random, name: Any) -> None:
    known = [
        ("POSIX", "read", "io", 52_000, 90_000, 20_000),
        ("POSIX", "openat", "io", 9000, 210_000, 0),
        ("POSIX", "pread", "io", 7000, 65_000, 131_072),
        ("POSIX", "write", "io", 2400, 320_000, 65_536),
        ("POSIX", "close", "io", 9000, 6000, 0),
        ("STDIO", "fread", "io", 4000, 40_000, 4096),
        ("compute", "forward", "compute", 240, 18_000_000, 0),
        ("compute", "backward", "compute", 240, 21_000_000, 0),
        ("dataloader", "fetch.iter", "fetch", 240, 24_000_000, 0),
        ("comm", "all_reduce", "communication", 240, 8_000_000, 0),
        ("checkpoint", "capture", "checkpoint", 6, 240_000_000, 0),
    ]
    for number, (cat, call, klass, count, mean, moved) in enumerate(known):
        shown = name(call, number) if name("x", number) != f"x-{number}" else call
        bytes_ = count * moved
        written = bytes_ if call == "write" else 0
        rows["calls"].append(
            {
                "cat": cat,
                "name": shown,
                "class": klass,
                "count": count,
                "errors": 3 if call == "openat" else 0,
                "total_ns": count * mean,
                "mean_ns": float(mean),
                "min_ns": mean // 9,
                "p50_ns": int(mean * 0.8),
                "p90_ns": int(mean * 1.6),
                "p99_ns": mean * 4,
                "max_ns": mean * 19,
                "read_bytes": bytes_ - written,
                "write_bytes": written,
                "bandwidth": bytes_ / (count * mean) * 1e9 if bytes_ else None,
                "mean_size": float(moved) if moved else None,
            }
        )
        for octave in range(-3, 5):
            lower = int(mean * 2.0**octave)
            share = math.exp(-(octave**2) / 3)
            rows["latencies"].append(
                {
                    "cat": cat,
                    "name": shown,
                    "lower_ns": lower,
                    "upper_ns": lower * 2,
                    "count": int(count * share / 3),
                }
            )
        if moved:
            middle = moved.bit_length()
            for power in range(max(0, middle - 4), middle + 3):
                calls = int(count * math.exp(-((power - middle) ** 2) / 4) * chance.uniform(0.3, 1))
                rows["sizes"].append(
                    {
                        "direction": "write" if written else "read",
                        "cat": cat,
                        "name": shown,
                        "lower": 1 << power,
                        "upper": 2 << power,
                        "count": calls,
                        "bytes": calls * (3 << power) // 2,
                        "total_ns": calls * mean,
                    }
                )
    for cat in dict.fromkeys(row["cat"] for row in rows["calls"]):
        there = [row for row in rows["calls"] if row["cat"] == cat]
        total = sum(row["total_ns"] for row in there)
        moved = sum(row["read_bytes"] + row["write_bytes"] for row in there)
        rows["layers"].append(
            {
                "cat": cat,
                "class": there[0]["class"],
                "events": sum(row["count"] for row in there),
                "total_ns": total,
                "union_ns": total * 2 // 3,
                "read_bytes": sum(row["read_bytes"] for row in there),
                "write_bytes": sum(row["write_bytes"] for row in there),
                "bandwidth": moved / (total * 2 / 3) * 1e9 if moved else None,
                "files": 40 if moved else None,
                "processes": 4,
                "overlap_percent": 31.5 if moved else None,
            }
        )
    for number, op in enumerate(("convolution", "addmm", "relu", "native_batch_norm", "mm")):
        for phase in ("forward", "backward"):
            rows["torch_ops"].append(
                {
                    "name": name(f"function.{op}.default", number),
                    "phase": phase,
                    "count": 240,
                    "total_ns": (6 - number) * 500 * MS,
                    "mean_ns": (6 - number) * 2.1 * MS,
                    "p99_ns": (6 - number) * 5 * MS,
                }
            )


def _add_files(
    rows: dict[str, list[dict[str, Any]]], chance: random.Random, name: Any, files: int
) -> None:
    for number in range(files):
        reads = chance.randint(4, 400)
        steps = {"sequential": reads // 2, "strided": reads // 8, "random": reads // 4}
        rows["files"].append(
            {
                "fname": name(f"/data/train/class-{number % 7}/shard", number),
                "opens": 2,
                "reads": reads,
                "writes": 0,
                "metadata": 3,
                "read_bytes": reads * 20_000,
                "write_bytes": 0,
                "total_ns": reads * 90_000,
                "mean_size": 20_000.0,
                **steps,
                "pattern": "mixed" if number % 3 else "sequential",
                "extent_bytes": reads * 15_000,
                "reread_bytes": reads * 5000,
                "processes": 2,
            }
        )
    rows["files"].sort(key=lambda row: -row["total_ns"])
    for number in range(min(7, files)):
        rows["directories"].append(
            {
                "dir": name("/data/train/class", number),
                "files": files // 7 + 1,
                "calls": 4000 - 300 * number,
                "metadata": 90,
                "total_ns": (4000 - 300 * number) * 90_000,
                "read_bytes": 80_000_000 - 1_000_000 * number,
                "write_bytes": 0,
            }
        )


def _add_slow_steps(rows: dict[str, list[dict[str, Any]]], name: Any) -> None:
    for number, step in enumerate(rows["steps"][::13]):
        file = name("/data/shard", number)
        rows["slow_steps"].append(
            {
                **{key: step[key] for key in ("process", "rank", "epoch", "step", "start_ns")},
                "dur_ns": step["dur_ns"],
                "late_ns": (40 - number % 9) * MS,
                "cause": ("reading", "decoding", "too few workers")[number % 3],
                **{"loader": 0, "pass": 0, "batch": number, "worker": number % 2, "file": file},
                "chain": f"step {step['step']} late by 40 ms: batch {number}, 30 ms reading {file}",
            }
        )
    rows["slow_steps"].sort(key=lambda row: -row["late_ns"])
    parts = {"start-up": 900, "compute": 4000, "waiting for data: reading": 700, "shut-down": 50}
    for process in dict.fromkeys(step["process"] for step in rows["steps"]):
        for part, ms in parts.items():
            share = ms / sum(parts.values())
            rows["breakdown"].append(
                {"process": process, "part": part, "time_ns": ms * MS, "share": share}
            )
        for activity, total, exposed in (("reading", 900, 700), ("decoding", 3000, 0)):
            rows["input_overlap"].append(
                {
                    "process": process,
                    "activity": activity,
                    "total_ns": total * MS,
                    "exposed_ns": exposed * MS,
                    "hidden_ns": (total - exposed) * MS,
                    "hidden_percent": 100 * (total - exposed) / total,
                }
            )


def _add_findings(rows: dict[str, list[dict[str, Any]]], name: Any, job_ns: int) -> None:
    rows["findings"] += [
        {
            "rule": "waiting for data",
            "severity": "high",
            "title": f"Training waits for data 31 % of the time {name('in file', 0)}",
            "evidence": "fetch takes 24.1 ms of 80 ms a step (median of 240 steps)",
            "concerns_ns": job_ns // 3,
            "share": 0.31,
            "advice": "More DataLoader workers, or prefetch_factor above 2.",
        },
        {
            "rule": "small reads",
            "severity": "medium",
            "title": "Half of the reads are smaller than 4 KB",
            "evidence": "26,104 of 52,000 reads moved 2.1 % of the bytes in 44 % of the time",
            "concerns_ns": job_ns // 9,
            "share": 0.11,
            "advice": "Read with a larger buffer, or pack the samples into shards.",
        },
    ]


def _add_overview(rows: dict[str, list[dict[str, Any]]], ranks: int, job_ns: int) -> None:
    processes = rows["processes"]
    summed = ("io_ns", "compute_ns", "hidden_io_ns", "unhidden_io_ns", "read_bytes", "write_bytes")
    rows["overview"].append(
        {
            "first_ns": START,
            "last_ns": START + job_ns,
            "job_ns": job_ns,
            "processes": len(processes),
            "ranks": ranks,
            "hosts": len(rows["hosts"]),
            "threads": sum(row["threads"] for row in processes),
            "traces": len(processes),
            "events": sum(row["events"] for row in processes),
            "lost": 0,
            "recovered": 1,
            "damaged": 0,
            **{key: sum(row[key] for row in processes) for key in summed},
            "not_traced": "I/O through io_uring and mmap",
        }
    )
