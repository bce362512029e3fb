"""The tables of object stores, against sums over the events, on one block and on several."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.synthetic_program import Program

from dftracer import reports
from dftracer.reports.model import SCHEMAS
from dftracer.reports.render.page import page
from dftracer.reports.render.summary import summarise
from dftracer.reports.store import Store

OPERATIONS = ("GetObject", "HeadObject", "PutObject")


def write_traces(place: Path, processes: int = 3) -> list[dict[str, Any]]:
    """Random requests of some processes; what they are, one by one."""
    chance = random.Random(7)
    truth = []
    for number in range(processes):
        program = Program(pid=100 + number)
        for _ in range(200):
            told: dict[str, Any] = {
                "store": chance.choice(("s3", "gs")),
                "bucket": chance.choice(("one", "two")),
                "key": f"{chance.choice(('', 'a/', 'a/b/'))}{chance.randint(0, 9)}.bin",
            }
            operation = chance.choice(OPERATIONS)
            if operation != "HeadObject":
                told["size"] = chance.choice((1000, 300_000, 5_000_000))
                told["bytes"] = told["size"] if chance.random() < 0.9 else told["size"] // 2
            if operation == "GetObject" and chance.random() < 0.5:
                told["offset"] = chance.randint(0, 1000)
            told["status"] = chance.choice((200, 200, 200, 404, 503))
            told["retries"] = chance.choice((0, 0, 0, 2))
            if told["retries"] or told["status"] == 503:
                told["throttled"] = told["retries"] + (told["status"] == 503)
            if told["status"] == 404:
                told["error"] = "NoSuchKey"
            dur = chance.randint(100, 100_000)
            told["ttfb"] = dur // 2
            program.span("STORE", operation, dur, **told)
            truth.append({"operation": operation, "dur": dur, **told})
        program.write(place)
    return truth


def expected(truth: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for each in truth:
        prefix = each["key"][: each["key"].rfind("/") + 1]
        groups[each["store"], each["bucket"], prefix, each["operation"]].append(each)
    found = {}
    for key, rows in groups.items():
        small = [r for r in rows if "offset" in r and r["bytes"] < 256 << 10]
        again = [r for r in rows if r["retries"] or r.get("throttled")]
        told = [r["bytes"] for r in rows if "bytes" in r]
        found[key] = {
            "requests": len(rows),
            "ranged": sum("offset" in r for r in rows),
            "requested_bytes": sum(r["size"] for r in rows if "size" in r) if told else None,
            "bytes": sum(told) if told else None,
            "errors": sum(r["status"] >= 400 for r in rows),
            "retries": sum(r["retries"] for r in rows),
            "throttled": sum(r.get("throttled", 0) for r in rows),
            "total_ns": sum(r["dur"] for r in rows) * 1000,
            "small": len(small),
            "small_bytes": sum(r["bytes"] for r in small),
            "small_ns": sum(r["dur"] for r in small) * 1000,
            "retry_ns": sum(r["dur"] for r in again) * 1000,
        }
    return found


@pytest.mark.parametrize("blocks", [1, 3])
def test_requests_add_up(tmp_path: Path, blocks: int) -> None:
    truth = write_traces(tmp_path)
    files = sorted(tmp_path.glob("*.pfw*"))
    with Store() as store:
        for number in range(blocks):
            store.add_block(files[number::blocks], first_file=number)
        rows = store.tables()["stores"]
    columns = [column.name for column in SCHEMAS["stores"].columns]
    found = {}
    for row in rows:
        cells = dict(zip(columns, row))
        key = (cells["store"], cells["bucket"], cells["prefix"], cells["operation"])
        found[key] = cells
    wanted = expected(truth)
    assert set(found) == set(wanted)
    for key, cells in wanted.items():
        assert {name: found[key][name] for name in cells} == cells
        firsts = sorted(
            each["ttfb"] * 1000
            for each in truth
            if (each["store"], each["bucket"], each["operation"]) == (key[0], key[1], key[3])
            and each["key"][: each["key"].rfind("/") + 1] == key[2]
        )
        middle = firsts[min(len(firsts) // 2, len(firsts) - 1)]
        assert found[key]["ttfb_p50_ns"] == pytest.approx(middle, rel=0.032)
        assert found[key]["ttfb_p99_ns"] == pytest.approx(firsts[-1], rel=0.032)
    assert [row[columns.index("total_ns")] for row in rows] == sorted(
        (cells["total_ns"] for cells in wanted.values()), reverse=True
    )


def test_a_cache_that_fetches_more_than_is_read(tmp_path: Path) -> None:
    program = Program()
    file = {"store": "s3", "bucket": "b", "key": "d/x.bin"}
    start = program.span("STORE", "read", 1000, layer="file", bytes=10, cached="miss", **file)
    program.span("STORE", "fetch", 900, at=start + 10, layer="cache", bytes=5000, **file)
    program.span("STORE", "GetObject", 800, at=start + 20, bytes=5000, ttfb=5, status=206, **file)
    program.span("STORE", "read", 5, layer="file", bytes=90, cached="hit", **file)
    program.span("STORE", "open", 50, layer="copy", cached="miss", **file)
    program.span("STORE", "open", 5, layer="copy", cached="hit", **file)
    program.span("STORE", "cat_file", 50, layer="call", **file)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    (row,) = report.store_caches
    assert row == {
        "store": "s3",
        "bucket": "b",
        "prefix": "d/",
        "reads": 2,
        "hits": 1,
        "misses": 1,
        "read_bytes": 100,
        "fetches": 1,
        "fetched_bytes": 5000,
        "amplification": 50.0,
        "copy_hits": 1,
        "copy_misses": 1,
        "total_ns": 1_060_000,
    }
    (request,) = report.stores
    assert (request["operation"], request["requests"], request["bytes"]) == ("GetObject", 1, 5000)
    (layer,) = report.layers
    assert (layer["cat"], layer["class"], layer["union_ns"]) == ("STORE", "store", 1_110_000)
    text = "\n".join(summarise(report))
    assert "1 request to 1 bucket or host, received 5 KB" in " ".join(text.split())
    assert "(50.00 ×)" in text
    shown = page(report)
    assert "Object stores" in shown
    assert "Files with a cache" in shown


def test_waiting_for_a_store_is_no_untraced_wait(tmp_path: Path) -> None:
    """Nor is it I/O or compute, with which it overlaps here for 100 ms each."""
    program = Program()
    start = program.span("STORE", "GetObject", 900_000, store="s3", bucket="b", key="k")
    program.read("/d/a", 4096, 100_000, at=start)
    program.span("compute", "forward", 100_000, at=start + 100_000)
    program.span("app", "rest", 100_000)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    (overview,) = report.overview
    assert overview["store_wait_ns"] == 700_000_000
    assert overview["busy_ns"] == 300_000_000
    assert overview["bound_by"].startswith("waiting for object stores 70 %, ")
    assert overview["io_ns"] == 100_000_000
    (process,) = report.processes
    assert (process["wait_ns"], process["idle_ns"]) == (700_000_000, 0)


def test_hostile_arguments(tmp_path: Path) -> None:
    """Numbers that are none, and no arguments at all."""
    program = Program()
    program.span("STORE", "GetObject", 10)
    program.span("STORE", "GetObject", 10, store=["s3"], bucket={"a": 1}, key=7, size="x",
                 bytes=-5, status="no", retries=-3, ttfb=-1, offset="none")  # fmt: skip
    program.span("STORE", "GetObject", 10, bytes=1 << 62, size=1 << 62, ttfb=1 << 62)
    program.span("STORE", "GetObject", 10, bytes=1 << 62, size=1 << 62, ttfb=1 << 62)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert sum(row["requests"] for row in report.stores) == 4
    assert all(row["errors"] == 0 and row["retries"] == 0 for row in report.stores)
    assert json.dumps(report.dicts()["stores"])


def test_a_run_without_stores_says_nothing_of_them(tmp_path: Path) -> None:
    program = Program()
    program.read("/d/a", 4096, 10)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert len(report.stores) == len(report.store_caches) == 0
    assert not [line for line in summarise(report) if line.startswith("stores")]
    assert "Object stores" not in page(report)
