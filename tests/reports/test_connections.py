"""The table of peers, against sums over the events, on one block and on several; and that sockets
are no I/O."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer
from support.synthetic_program import Program, digest

from dftracer import reports
from dftracer.reports.bounds import bound
from dftracer.reports.model import SCHEMAS
from dftracer.reports.render.page import page
from dftracer.reports.render.summary import summarise
from dftracer.reports.store import Store

PEERS = {
    "tcp://s3.example.com/10.0.0.1:443": "network",
    "tcp://[2001:db8::1]:80": "network",
    "tcp-from://10.0.0.9->:8080": "network",
    "tcp://127.0.0.1:6379": "loopback",
    "tcp://localhost/[::1]:6379": "loopback",
    "tcp-from://127.0.0.1->:8080": "loopback",
    "unix:/run/x.sock": "local",
    "unix:@abstract": "local",
}


def write_traces(place: Path, processes: int = 3) -> dict[str, dict[str, Any]]:
    """Connections of some processes, several at a time; what they are, by peer."""
    chance = random.Random(11)
    truth: dict[str, dict[str, Any]] = {peer: defaultdict(int) for peer in PEERS}
    waits: dict[str, list[int]] = defaultdict(list)
    for number in range(processes):
        program = Program(pid=100 + number)
        for _ in range(30):
            open_now = chance.sample(sorted(PEERS), 3)
            began: dict[str, int | None] = {}
            names = {peer: f"{peer}#{chance.randint(3, 5)}" for peer in open_now}
            for peer in open_now:
                sums = truth[peer]
                dur = chance.randint(1, 500)
                is_from = "-from" in peer
                how: dict[str, Any] = {"ret": 3 if is_from else 0}
                if not is_from and chance.random() < 0.3:
                    how = {"ret": -1, "errno": 115}
                    sums["in_progress"] += 1
                start = program.span("NET", "accept4" if is_from else "connect", dur,
                                     file=names[peer], **how)  # fmt: skip
                began[peer] = start + dur if is_from else start
                sums["connections"] += 1
                sums["connect_ns"] += dur * 1000
                sums["calls"] += 1
            for _ in range(12):
                peer = chance.choice(open_now)
                sums = truth[peer]
                dur, moved = chance.randint(1, 2000), chance.randint(1, 5000)
                kind = chance.choice(("send", "write", "recv", "read", "peek", "later", "reset"))
                sums["calls"] += 1
                if kind in ("send", "write"):
                    cat = "NET" if kind == "send" else "POSIX"
                    program.span(cat, kind, dur, file=names[peer], ret=moved)
                    sums["sends"] += 1
                    sums["sent_bytes"] += moved
                    sums["send_ns"] += dur * 1000
                    continue
                sums["receives"] += 1
                sums["receive_ns"] += dur * 1000
                sums["stall_ns"] = max(sums["stall_ns"], dur * 1000)
                if kind in ("recv", "read"):
                    cat = "NET" if kind == "recv" else "POSIX"
                    start = program.span(cat, kind, dur, file=names[peer], ret=moved)
                    sums["received_bytes"] += moved
                    first = began[peer]
                    if first is not None:
                        waits[peer].append((start + dur - first) * 1000)
                        began[peer] = None
                elif kind == "peek":
                    program.span("NET", "recv", dur, file=names[peer], ret=moved, flags=2)
                elif kind == "later":
                    program.span("NET", "recv", dur, file=names[peer], ret=-1, errno=11)
                else:
                    program.span("NET", "recv", dur, file=names[peer], ret=-1, errno=104)
                    sums["errors"] += 1
            for peer in open_now:
                program.span("POSIX", "close", 1, file=names[peer], ret=0)
                truth[peer]["calls"] += 1
        program.write(place)
    for peer, each in waits.items():
        truth[peer]["first_byte_mean_ns"] = pytest.approx(sum(each) / len(each))
        truth[peer]["first_byte_max_ns"] = max(each)
    return truth


@pytest.mark.parametrize("blocks", [1, 3])
def test_connections_add_up(tmp_path: Path, blocks: int) -> None:
    truth = write_traces(tmp_path)
    files = sorted(tmp_path.glob("*.pfw*"))
    with Store() as store:
        for number in range(blocks):
            store.add_block(files[number::blocks], first_file=number)
        tables = store.tables()
    columns = [column.name for column in SCHEMAS["connections"].columns]
    rows = [dict(zip(columns, row)) for row in tables["connections"]]
    assert {row["peer"]: row["reach"] for row in rows} == PEERS
    for row in rows:
        wanted = truth[row["peer"]]
        for column in columns:
            if column not in ("peer", "reach"):
                assert row[column] == wanted[column], (row["peer"], column)
    costs = [row["connect_ns"] + row["send_ns"] + row["receive_ns"] for row in rows]
    assert costs == sorted(costs, reverse=True)


def network(place: Path) -> None:
    """6 s in which a process only waits for a peer on the network, 2 s of a file, 2 s of a local
    socket."""
    program = Program()
    program.span("NET", "connect", 1_000_000, file="tcp://10.0.0.1:80#3", ret=-1, errno=115)
    program.span("NET", "recv", 3_000_000, file="tcp://10.0.0.1:80#3", len=100, ret=100, flags=0)
    program.read("tcp://10.0.0.1:80#3", 7_000, 2_000_000)
    program.read("/d/a", 1_000_000, 2_000_000)
    program.span("NET", "recv", 2_000_000, file="unix:/s#4", ret=50, flags=0)
    program.write(place, cpu_us=1)


def test_sockets_are_no_io(tmp_path: Path) -> None:
    network(tmp_path)
    report = reports.load(tmp_path)
    (facts,) = report.overview
    assert facts["read_bytes"] == 1_000_000
    assert facts["io_ns"] == 2_000_000_000
    assert facts["net_wait_ns"] == 6_000_000_000
    assert facts["pipe_wait_ns"] == 2_000_000_000
    assert [row["fname"] for row in report.files] == ["/d/a"]
    assert [row["dir"] for row in report.directories] == ["/d"]
    assert not len(report.pipes)
    classes = {row["cat"]: row["class"] for row in report.layers}
    assert classes == {"NET": None, "POSIX net": None, "NET local": None, "POSIX": "io"}
    told = bound(report.tables)
    assert told is not None
    assert told[0] == "network"
    assert facts["bound"] == "network"
    # A connect that goes on in the background has not failed.
    assert {row["name"]: row["errors"] for row in report.calls if row["cat"] == "NET"} == {
        "connect": 0,
        "recv": 0,
    }
    text = " ".join(" ".join(summarise(report, width=100)).split())
    assert "1 connection with 1 peer, received 7.1 KB in 5 s" in text
    assert "1 connected in the background" in text
    made = page(report)
    assert "Peers of sockets" in made
    # The same rule in `stats`.
    done = dftracer("stats", "--json", tmp_path, cwd=tmp_path)
    rows = {row["name"]: row for row in json.loads(done.stdout)["names"]}
    assert rows["read"]["read_bytes"] == 1_000_000
    assert not rows["recv"]["read_bytes"]


def test_a_request_to_a_store_is_no_wait_for_the_network(tmp_path: Path) -> None:
    program = Program()
    start = program.span("STORE", "GetObject", 1_000_000, store="s3", bucket="b", key="k", bytes=10)
    program.span("NET", "recv", 900_000, at=start, file="tcp://10.0.0.1:443#3", ret=10, flags=0)
    program.write(tmp_path)
    (facts,) = reports.load(tmp_path).overview
    assert (facts["store_wait_ns"], facts["net_wait_ns"]) == (1_000_000_000, 0)


def test_a_file_that_is_sent_is_read_and_the_peer_gets_its_bytes(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "open", 10, file="/d/a", ret=4)
    program.span(
        "POSIX", "sendfile", 100, file="tcp://10.0.0.1:80#3", in_fd_hash=digest("/d/a"),
        ret=5000,
    )  # fmt: skip
    program.write(tmp_path)
    report = reports.load(tmp_path)
    (facts,) = report.overview
    assert (facts["read_bytes"], facts["write_bytes"]) == (5000, 0)
    (row,) = report.connections
    assert (row["sent_bytes"], row["sends"], row["send_ns"]) == (5000, 1, 100_000)
