"""Workers, threads, late imports, switches, the report: boto3 against a local server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.stores.conftest import PROGRAMS, Found, Run
from tests.support import run as runner

from dftracer import reports


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers(run: Run, s3: str, how: str) -> None:
    found = run("processes.py", how, s3)
    told = sorted(found.told("offset", "bytes"))
    assert told == [("GetObject", 10 * number, 10) for number in (0, 1, 2, 9)]
    assert len({event["pid"] for event in found.requests}) == 4


@pytest.mark.parametrize(("how", "count"), [("program", 1), ("thread", 4), ("looked_for", 1)])
def test_a_library_is_imported(run: Run, s3: str, how: str, count: int) -> None:
    found = run("processes.py", how, s3)
    assert sorted(found.told("offset", "bytes")) == [
        ("GetObject", 10 * number, 10) for number in range(count)
    ]


def test_no_stores(run: Run, s3: str) -> None:
    found = run("processes.py", "once", s3, options=("--no-stores",))
    assert found.events == []


def test_a_program_that_starts_its_trace_after_the_import(s3: str, tmp_path: Path) -> None:
    env = {"DFTRACER_STORES": "1", "DFTRACER_LOG_FILE": str(tmp_path / "traces" / "t")}
    done = runner.run(sys.executable, PROGRAMS / "processes.py", "initialize", s3, env=env,
                      cwd=tmp_path)  # fmt: skip
    found = Found(tmp_path / "traces", done.stdout)
    assert found.told("offset", "bytes") == [("GetObject", 0, 10)]


def test_the_report_of_a_run(run: Run, s3: str, tmp_path: Path) -> None:
    """Against sums over the events."""
    pytest.importorskip("s3fs")
    found = run("clients.py", "s3fs", s3, tmp_path)
    report = reports.load(tmp_path / "traces")
    rows = {(row["prefix"], row["operation"]): row for row in report.stores}
    for (prefix, operation), row in rows.items():
        mine = [
            event
            for event in found.requests
            if event["name"] == operation
            and (event["args"].get("key") or "").rpartition("/")[0] == (prefix or "").rstrip("/")
        ]
        assert row["requests"] == len(mine)
        assert row["bytes"] == (sum(e["args"].get("bytes", 0) for e in mine) or None)
        assert row["total_ns"] == sum(event["dur"] for event in mine) * 1000
        firsts = [event["args"]["ttfb"] * 1000 for event in mine]
        assert min(firsts) * 0.98 <= row["ttfb_p50_ns"] <= max(firsts) * 1.02
    assert sum(row["requests"] for row in rows.values()) == len(found.requests)
    (cache,) = report.store_caches
    assert (cache["reads"], cache["hits"], cache["misses"]) == (3, 1, 2)
    assert (cache["read_bytes"], cache["fetched_bytes"]) == (130, 10_110)
    assert cache["amplification"] == 10_110 / 130
