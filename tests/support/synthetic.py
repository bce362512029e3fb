"""Traces of runs that never were: any rank, host, number and clock, as tools write them."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

from support.members import pack

Record = dict[str, Any]
VERSION = (Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
EPOCH = 1_790_000_000_000_000  # microseconds


def hash_of(text: str) -> str:
    return hashlib.md5(text.encode()).digest()[::2].hex()


def line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def process(
    *,
    rank: int | None = None,
    pid: int = 100,
    host: str = "node0",
    key: str = "",
    start: int = EPOCH,
    events: int = 5,
    parent: int = 1,
    skew: int = 0,
    extra: list[Record] | None = None,
) -> list[Record]:
    """The records of one process, in this project's shape."""
    hhash = hash_of(host)
    base = {"hhash": hhash}
    out: list[Record] = []

    def record(name: str, ph: str, cat: str = "dftracer", **fields: Any) -> None:
        args = fields.pop("args", {})
        tid = fields.pop("tid", pid)
        out.append(
            {
                "id": len(out) + 1,
                "name": name,
                "cat": cat,
                "pid": pid,
                "tid": tid,
                **fields,
                "ph": ph,
                "args": {**base, **args},
            }
        )

    def meta(name: str, text: str, value: str) -> None:
        record(name, "M", args={"name": text, "value": value})

    path = f"/data/rank-{rank}-{key}.bin"
    meta("HH", host, hhash)
    meta("thread_name", str(pid), "thread_name")
    meta("FH", "/work", hash_of("/work"))
    meta("SH", "train.py;--epochs;3", hash_of("train"))
    meta("SH", "/usr/bin/python3", hash_of("python"))
    at = start + skew
    span = {"p_idx": -1, "level": 1}
    opening = {
        "ppid": parent,
        "cmd_hash": hash_of("train"),
        "exec_hash": hash_of("python"),
        "version": f"v{VERSION}",
        "date": "now",
        "cwd": hash_of("/work"),
        "run": hash_of("run"),
        "proc": hash_of(f"{host}-{rank}-{pid}-{key}"),
    }
    record("start", "X", ts=at, dur=0, args={**span, **opening})
    if rank is not None:
        meta("PR", "rank", str(rank))
        meta("process_name", f"rank {rank}", "process_name")
    else:
        meta("process_name", "python3", "process_name")
    meta("FH", path, hash_of(path))
    for index in range(events):
        args = {**span, "fhash": hash_of(path), "ret": index, "step": index}
        record("read", "X", "POSIX", ts=at + 10 * index + 1, dur=5, args=args)
    for one in extra or []:
        record(**{**one, "ts": one["ts"] + skew} if "ts" in one else one)
    record("end", "X", ts=at + 10 * events + 5000, dur=0, args={**span, "num_events": len(out)})
    return out


def write(path: Path, records: list[Record], *, a_member: int = 40) -> Path:
    """By the name: plain lines, or members of ours."""
    lines = [line(record) for record in records]
    if path.name.endswith(".gz"):
        path.write_bytes(b"".join(pack(lines, a_member)))
    else:
        path.write_bytes(b"[\n" + b"".join(one + b"\n" for one in lines))
    return path


def numeric(records: list[Record]) -> list[Record]:
    """As DFTracer 2.2 writes them: numbers for phases, no process key, a column `type`."""
    numbers = {"X": 1, "C": 2, "M": 4}
    out = []
    for record in records:
        args = {k: v for k, v in record["args"].items() if k not in ("run", "proc")}
        out.append({**record, "ph": numbers[record["ph"]], "args": args, "type": 3})
    return out


def torch_document(
    *, pid: int, start: int = EPOCH, rank: int | None = None, host: str = "node0", steps: int = 3
) -> dict[str, Any]:
    """As torch.profiler writes them: a base, fractions, rows of its own, flows to a device."""
    base = (start // 10**6 - 7) * 10**6
    meta = [
        ("process_name", pid, {"name": "python"}),
        ("process_labels", pid, {"labels": "CPU"}),
        ("process_name", 0, {"name": "python"}),
        ("process_labels", 0, {"labels": "GPU 0"}),
        ("process_sort_index", "Spans", {"sort_index": 536870912}),
    ]
    events: list[Record] = [
        {"ph": "M", "name": name, "ts": 0.5, "pid": who, "tid": 0, "args": args}
        for name, who, args in meta
    ]
    for step in range(steps):
        at = start - base + step * 100 + 0.125
        common = {"ph": "X", "args": {"External id": step, "shape": [1, 2]}}
        events.append(
            {
                "name": "aten::mm",
                "cat": "cpu_op",
                "pid": pid,
                "tid": pid,
                "ts": at,
                "dur": 40.75,
                **common,
            }
        )
        events.append(
            {
                "name": "aten::inner",
                "cat": "cpu_op",
                "pid": pid,
                "tid": pid,
                "ts": at + 1,
                "dur": 39.75,
                **common,
            }
        )
        events.append(
            {
                "name": "kernel",
                "cat": "kernel",
                "pid": 0,
                "tid": 7,
                "ts": at + 50,
                "dur": 10,
                **common,
            }
        )
        flow = {"id": step, "cat": "ac2g", "name": "ac2g"}
        events.append({"ph": "s", "pid": pid, "tid": pid, "ts": at + 2, **flow})
        events.append({"ph": "f", "pid": 0, "tid": 7, "ts": at + 50, "bp": "e", **flow})
    whole = {"name": "PyTorch Profiler (0)", "cat": "Trace", "args": {"Op count": 0}}
    events.append(
        {
            "ph": "X",
            "pid": "Spans",
            "tid": "PyTorch Profiler",
            "ts": start - base,
            "dur": 400,
            **whole,
        }
    )
    out: dict[str, Any] = {"schemaVersion": 1, "host_name": host}
    if rank is not None:
        out["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": 2}
    return {**out, "baseTimeNanoseconds": base * 1000, "traceEvents": events}


def write_document(path: Path, document: dict[str, Any]) -> Path:
    text = json.dumps(document, indent=2).encode()
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


def collective(name: str, begin: int, end: int, cat: str = "comm") -> Record:
    return {
        "name": name,
        "ph": "X",
        "cat": cat,
        "ts": begin,
        "dur": end - begin,
        "args": {"p_idx": -1, "level": 1},
    }


def lines_of(path: Path) -> list[bytes]:
    """The records of a written trace, as they stand."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    if text.startswith(b"{"):
        return [line(record) for record in json.loads(text)["traceEvents"]]
    rows = text.splitlines()
    assert rows[0] == b"["
    return rows[1:]


def records_of(path: Path) -> list[Record]:
    return [json.loads(row) for row in lines_of(path)]


def events_of(path: Path) -> list[Record]:
    return [r for r in records_of(path) if r["ph"] != "M" and r.get("cat") != "dftracer"]


def merge(out: Path, *inputs: Path, options: tuple[str, ...] = (), status: int = 0) -> Path:
    """Runs the command; the output has its place whatever the inputs are."""
    from dftracer.commands._cli.main import main

    code = main(["merge", *map(str, inputs), "-o", str(out), "--quiet", *options])
    assert code == status
    return out
