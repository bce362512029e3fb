"""Runs that are slow on purpose are told so, with numbers; a healthy one is left alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.synthetic_program import Program, training

from dftracer import reports
from dftracer.reports.findings import RULES
from dftracer.reports.render.summary import summarise

US = 1000


def findings(place: Path) -> dict[str, dict[str, object]]:
    report = reports.load(place)
    found = {row["rule"]: row for row in report.findings}
    for row in found.values():
        assert re.search(r"\d", row["evidence"]), "a finding without numbers"
        assert row["title"]
        assert row["advice"]
        assert row["severity"] in ("low", "medium", "high")
        assert 0 <= row["share"] <= 1
        assert row["concerns_ns"] is None or row["concerns_ns"] >= 0
    order = [("high", "medium", "low").index(row["severity"]) for row in report.findings]
    assert order == sorted(order)
    text = "\n".join(summarise(report))
    assert all(str(row["title"]) in text for row in found.values())
    return found


def healthy(place: Path, ranks: int = 2, fetch: int = 100) -> None:
    """Compute-bound ranks, each with two workers that read small pieces, again and again."""
    for rank in range(ranks):
        program = training(pid=200 + rank, rank=rank, steps=40, fetch=fetch)
        program.span("checkpoint", "capture", 5000)
        program.write(place)
        for number in range(2):
            worker = Program(pid=300 + 10 * rank + number, ppid=200 + rank)
            for i in range(900):
                start = worker.span("data", "item", 400)
                worker.span("POSIX", "stat", 20, at=start, file=f"/d/{i % 7}")
                worker.read(f"/d/{i % 7}", 4096, 100, start + 20, name="pread",
                            offset=4096 * (i * 31 % 50))  # fmt: skip
                worker.now += 300
            worker.write(place)


def test_a_balanced_run_that_computes_has_none(tmp_path: Path) -> None:
    healthy(tmp_path)
    assert findings(tmp_path) == {}
    report = reports.load(tmp_path)
    assert "No findings" in "\n".join(summarise(report))


def test_training_that_waits_for_its_data(tmp_path: Path) -> None:
    healthy(tmp_path, fetch=6000)
    found = findings(tmp_path)
    wait = found["waiting-for-data"]
    assert wait["concerns_ns"] == 2 * 80 * 6000 * US
    # Of steps of 16,100 us; the last one of an epoch has no gap.
    assert wait["share"] == pytest.approx(6000 / 16_100, rel=0.01)
    assert wait["severity"] == "high"
    assert "160 steps" in str(wait["evidence"])
    assert "4 worker processes" in str(wait["evidence"])
    # Now that somebody waits, what the workers do is of interest.
    assert {"small-reads", "random-access"} <= set(found)


def training_of(place: Path, checkpoint: int = 0, **how: int) -> None:
    program = training(**how)
    if checkpoint:
        program.span("checkpoint", "capture", checkpoint)
    program.write(place)


def computes_and_reads(place: Path, dur: int, hidden: bool = False) -> None:
    program = Program()
    for _ in range(20):
        start = program.span("compute", "forward", 1000)
        program.read("/d/a", 1 << 20, dur, at=start if hidden else program.now)
        program.now += dur
    program.span("compute", "forward", 10)
    program.write(place)


def reads_and_thinks(place: Path, dur: int, compute: bool = False) -> None:
    program = Program()
    for _ in range(100):
        program.read("/d/a", 1 << 20, dur)
        if compute:
            program.span("compute", "forward", 1)
        program.now += 1000
    program.write(place)


def transfers(
    place: Path, name: str, count: int = 1000, size: int = 16383, dur: int = 40, large: int = 0
) -> None:
    program = Program()
    program.span("POSIX", "open", 5, file="/d/a", ret=3)
    for i in range(count + large):
        program.read("/d/a", size if i < count else 1 << 20, dur, name=name)
        program.now += 1000
    program.write(place)


def reads_again(place: Path, again: int, piece: int = 1 << 20, dur: int = 10_000) -> None:
    program = Program()
    for pieces in (8, again):
        program.span("POSIX", "open", 5, file="/d/a", ret=3)
        for _ in range(pieces):
            program.read("/d/a", piece, dur)
            program.now += 20_000
        program.span("POSIX", "close", 5, file="/d/a", ret=0)
    program.write(place)


def looks(place: Path, count: int = 1000, dur: int = 60) -> None:
    program = Program()
    for i in range(count):
        program.span("POSIX", "stat", dur, file=f"/d/{i}")
        program.now += 1000
    program.write(place)


def jumps(
    place: Path, count: int = 1000, dur: int = 40, straight: int = 0, synced: bool = False
) -> None:
    """From the one end of the file to the other, nearer to its middle each time."""
    program = Program()
    for i in range(count + 1):
        to = i // 2 if i % 2 == 0 else 5000 - i // 2
        program.read("/d/a", 1 << 16, dur, name="pread", offset=to << 16)
        program.now += 1000
    if synced:
        program.span("POSIX", "fsync", 20_000, file="/d/a", ret=0)
    for i in range(straight + 1 if straight else 0):
        program.read("/d/b", 1 << 16, dur, name="pread", offset=i << 16)
        program.now += 1000
    program.write(place)


def fails(place: Path, count: int = 1000, dur: int = 24, others: int = 0) -> None:
    program = Program()
    for _ in range(others):
        program.span("POSIX", "open", 8000, file="/d/a", ret=3)
    for i in range(count):
        program.span("POSIX", "open", dur, file=f"/d/{i % 3}", ret=-1, errno=2)
        program.now += 2000
    program.write(place)


def writes_and_syncs(place: Path, dur: int) -> None:
    program = Program()
    for _ in range(100):
        program.read("/d/a", 1 << 20, 1000, name="write")
        program.span("POSIX", "fsync", dur, file="/d/a", ret=0)
        program.now += 10_000
    program.write(place)


def faults_wait(place: Path, count: int = 20, waited: int = 200_000) -> None:
    """Page faults on a mapped file, in a program that otherwise computes for a second."""
    program = Program()
    program.span("POSIX", "mmap", 5, file="/d/a", length=1 << 30, offset=0)
    more = {"major": count, "major_us": waited} if count else {}
    program.span("MMAP", "page_faults", waited, file="/d/a", offset=0, faults=30, **more)
    told = {"length": 1 << 30, "touched": 81920, "ranges": 20}
    program.span("MMAP", "touched", 0, file="/d/a", offset=0, **told)
    program.now += 1_000_000 - waited
    program.write(place)


def reads_slowly(place: Path, dur: int = 2000, size: int = 1 << 16, count: int = 100) -> None:
    program = Program()
    for _ in range(count):
        program.read("/d/a", size, dur)
        program.now += 6000
    program.write(place)


def opens_again(place: Path, count: int = 1000, dur: int = 60, files: int = 1) -> None:
    program = Program()
    for i in range(count):
        program.span("POSIX", "open", dur, file=f"/d/{i % files}", ret=3)
        program.now += 1000
    program.write(place)


def collects_garbage(place: Path, dur: int) -> None:
    program = Program()
    for step in range(40):
        program.span("dataloader", "fetch", 100, epoch=0, step=step)
        start = program.span("compute", "backward", 2900, epoch=0, step=step)
        program.span("python", "gc", dur, at=start + 50)
    program.write(place)


def evaluates(place: Path, dur: int) -> None:
    program = Program()
    for step in range(20):
        program.span("compute", "backward", 1000, epoch=0, step=step)
    program.span("pipeline", "evaluate", dur)
    program.write(place)


def pipes(place: Path, dur: int = 30_000, cpu: int = 1000, writes: bool = True) -> None:
    """Ten transfers of a process; the one at the other end sleeps, or computes."""
    for pid, mine in ((100, True), (101, False)):
        program = Program(pid=pid, command=f"python;{'waits' if mine else 'sleeps'}.py")
        for _ in range(10):
            way = "write" if mine is writes else "read"
            program.read("pipe:[9]", 4096, dur if mine else 10, name=way)
            program.now += 100_000 - (dur if mine else 10)
        program.write(place, cpu_us=100_000 if mine else cpu)


def waits_for_children(
    place: Path, dur: int = 300_000, cpu: int = 1000, command: str = "python;main.py"
) -> None:
    program = Program(command=command)
    program.now = 1_000_000 - dur
    for number in range(2):
        start = program.span("POSIX", "waitpid", dur // 2)
        child = Program(pid=101 + number, ppid=100, command="convert;a.png", begin=start)
        child.span("POSIX", "stat", 10, at=start, file="/d/a.png")
        child.now = start + dur // 2
        child.write(place, cpu_us=cpu)
    program.write(place, cpu_us=600_000)


def waits_for_locks(place: Path, dur: int, cmd: int = 7) -> None:
    program = Program()
    for _ in range(100):
        program.span("POSIX", "fcntl", dur, file="/d/lock", cmd=cmd, ret=0)
        program.now += 10_000
    program.write(place)


def connects(
    place: Path, count: int = 20, dur: int = 1000, sends: int = 1, peer: str = "tcp://10.0.0.1:80"
) -> None:
    """A connection per request, or with many requests."""
    program = Program()
    for _ in range(count):
        program.span("NET", "connect", dur, file=f"{peer}#3", ret=0)
        for _ in range(sends):
            program.span("NET", "send", 10, file=f"{peer}#3", ret=100, flags=0)
            program.span("NET", "recv", 100, file=f"{peer}#3", ret=1000, flags=0)
        program.now += 1000
    program.write(place)


def looks_up(place: Path, dur: int = 2000, gap: int = 10_000, name: str = "getaddrinfo") -> None:
    program = Program()
    for _ in range(10):
        program.span("NET", name, dur, name_="h", ret=0)
        program.now += gap
    program.write(place)


def workers(place: Path, slow: int, items: int = 50) -> None:
    for number in range(4):
        worker = Program(pid=300 + number, ppid=200)
        for _ in range(items if number == 2 else 50):
            worker.span("data", "item", slow if number == 2 else 1000)
        worker.span("data", "batch", 50_000)
        worker.write(place)


def starts_workers(place: Path, start: int) -> None:
    program = Program(pid=200)
    for step in range(20):
        program.span("dataloader", "fetch", 100 if step else start, epoch=0, step=step)
        program.span("compute", "backward", 2900, epoch=0, step=step)
    program.write(place)
    for number in range(2):
        worker = Program(pid=300 + number, ppid=200)
        worker.span("data", "item", 100, at=start)
        worker.now = program.now
        worker.write(place)


def ranks(place: Path, compute: int = 10_000, fetch: int = 100, gap: int = 50) -> None:
    for rank in range(4):
        how = {"compute": compute, "fetch": fetch, "gap": gap} if rank == 3 else {}
        training(pid=200 + rank, rank=rank, **how).write(place)


def steps(place: Path, long: int = 5500, at: int = 20, count: int = 41) -> None:
    program = Program()
    for step in range(count):
        program.span("compute", "backward", long if step == at else 1000, epoch=0, step=step)
    program.write(place)


def loses(place: Path, events: int) -> None:
    program = training()
    program._line("lost", "dftracer", 0, 0, {"events": events})
    program.write(place)


@dataclass
class Slow:
    """A run that has one finding and no other, and runs that just do not have it."""

    make: Callable[..., None]
    how: dict[str, Any]
    near: list[dict[str, Any]]
    concerns: int | None  # microseconds
    texts: tuple[str, ...]


def asks_for_ranges(
    place: Path, count: int = 20, dur: int = 1000, size: int = 262_143, whole: int = 0, gap: int = 0
) -> None:
    """Ranged requests, one after the other; `whole` more are for whole objects, `gap` is idle."""
    program = Program()
    for number in range(count):
        told = {"store": "s3", "bucket": "b", "key": "d/x", "offset": number * size}
        program.span("STORE", "GetObject", dur, size=size, bytes=size, **told)
    for _ in range(whole):
        program.span("STORE", "GetObject", dur, store="s3", bucket="b", key="d/x", offset=0,
                     size=1 << 20, bytes=1 << 20)  # fmt: skip
    program.now += gap
    program.span("app", "rest", 1)
    program.write(place)


def is_turned_away(place: Path, dur: int = 20_000, gap: int = 0, retries: int = 2) -> None:
    program = Program()
    told = {"store": "s3", "bucket": "b", "key": "d/x", "status": 200, "bytes": 1 << 20}
    program.span("STORE", "GetObject", dur, retries=retries, throttled=retries, **told)
    program.now += gap
    program.span("app", "rest", 1)
    program.write(place)


CASES = {
    "reconnects": Slow(
        connects,
        {},
        [{"count": 19}, {"dur": 999}, {"sends": 4}, {"peer": "tcp-from://10.0.0.1->:80"}],
        20 * 1000,
        ("20 connections", "took 20 ms", "tcp://10.0.0.1:80", "20 KB"),
    ),
    "host-lookups": Slow(
        looks_up,
        {},
        [{"dur": 1999}, {"gap": 100_000}, {"name": "socket"}],
        10 * 2000,
        ("10 look-ups", "2 ms each", "the longest 2 ms"),
    ),
    "small-ranges": Slow(
        asks_for_ranges,
        {},
        [{"count": 19}, {"dur": 999}, {"size": 262_144}, {"whole": 21}, {"gap": 1_000_000}],
        20 * 1000,
        ("20 requests for less than 256 KiB", "took 20 ms for 5.24 MB", "s3://b/d/"),
    ),
    "store-retries": Slow(
        is_turned_away,
        {},
        [{"dur": 19_999}, {"gap": 1_000_000}, {"retries": 0}],
        20_000,
        ("2 retries, 2 answers of them 429 or 503", "s3://b/d/, GetObject: 20 ms of 20 ms"),
    ),
    "waiting-for-data": Slow(
        training_of, {"fetch": 1200}, [{"fetch": 1100}], 40 * 1200, ("40 steps",)
    ),
    "worker-start": Slow(
        starts_workers,
        {"start": 3200},
        [{"start": 3000}],
        3200,
        ("20 steps", "1 start of 2 workers"),
    ),
    "unhidden-io": Slow(
        computes_and_reads,
        {"dur": 120},
        [{"dur": 110}, {"dur": 120, "hidden": True}],
        20 * 120,
        ("1 computing process", "2.4 ms"),
    ),
    "io-bound": Slow(
        reads_and_thinks,
        {"dur": 1000},
        [{"dur": 980}, {"dur": 1000, "compute": True}],
        100 * 1000,
        ("most of it in read", "100 calls"),
    ),
    "slow-storage": Slow(
        reads_slowly,
        {},
        [{"dur": 1300}, {"size": 16_383}, {"count": 15, "dur": 10_000}, {"dur": 660}],
        100 * 2000,
        ("65.5 KB per call", "/d/a: 200 ms at 32.8 MB/s"),
    ),
    "cold-page-faults": Slow(
        faults_wait,
        {},
        [{"count": 19}, {"waited": 19_000}, {"count": 0}],
        200_000,
        (
            "200 ms in 20 major page faults, 10 ms each",
            "/d/a: 200 ms, 81.9 KB of 1.07 GB in 20 pieces",
        ),
    ),
    "reopened-files": Slow(
        opens_again,
        {},
        [{"count": 999}, {"dur": 50}, {"files": 2}],
        1000 * 60,
        ("/d/0 was opened 1,000 times by 1 process",),
    ),
    "garbage-collection": Slow(
        collects_garbage, {"dur": 150}, [{"dur": 149}], 40 * 150, ("in 40 of 40 steps",)
    ),
    "evaluation": Slow(
        evaluates, {"dur": 6700}, [{"dur": 6600}], 6700, ("1 pass over the validation set",)
    ),
    "pipe-waits": Slow(
        pipes,
        {},
        [{"dur": 19_000}, {"cpu": 900_000}],
        10 * 30_000,
        ("waits.py spent 300 ms in 10 calls writing to it", "sleeps.py slept"),
    ),
    "child-waits": Slow(
        waits_for_children,
        {},
        [{"dur": 190_000}, {"cpu": 150_000}, {"command": "bash;main.sh"}],
        2 * 149_000 - 20,
        ("for 2 children", "convert"),
    ),
    "small-reads": Slow(
        transfers,
        {"name": "read"},
        [
            {"name": "read", "count": 999},
            {"name": "read", "size": 16384},
            {"name": "read", "dur": 30},
            {"name": "read", "large": 1001},
            {"name": "write"},
        ],
        1000 * 40,
        ("1,000 reads", "most of them are read", "most on /d/a: 1,000 calls, 40 ms"),
    ),
    "small-writes": Slow(
        transfers,
        {"name": "write"},
        [
            {"name": "write", "count": 999},
            {"name": "write", "size": 16384},
            {"name": "write", "dur": 30},
            {"name": "write", "large": 1001},
            {"name": "read"},
        ],
        1000 * 40,
        ("1,000 writes", "most of them are write"),
    ),
    "rereads": Slow(
        reads_again,
        {"again": 8},
        [{"again": 7}, {"again": 8, "piece": 100 << 10}, {"again": 8, "dur": 1000}],
        8 * 10_000,
        ("was read 2.0 times", "in 1 file"),
    ),
    "metadata-storm": Slow(
        looks,
        {},
        [{"count": 999}, {"dur": 50}],
        1000 * 60,
        ("1,000 of 1,000 I/O calls", "1,000 files", "stat 1,000", "most in /d/: 1,000 calls"),
    ),
    "random-access": Slow(
        jumps,
        {},
        [{"count": 999}, {"dur": 30}, {"straight": 1001}, {"dur": 30, "synced": True}],
        1000 * 40,
        ("1,000 of 1,000 transfers", "/d/a alone 1,000"),
    ),
    "failed-calls": Slow(
        fails,
        {},
        [{"count": 999}, {"dur": 19}, {"dur": 19, "others": 5}],
        1000 * 24,
        ("1,000 of 1,000 open failed", "most in /d/: 1,000 calls, 24 ms on 3 files"),
    ),
    "syncs": Slow(
        writes_and_syncs,
        {"dur": 600},
        [{"dur": 550}],
        100 * 600,
        ("100 calls of fsync", "most on /d/a: 100 calls, 60 ms"),
    ),
    "lock-waits": Slow(
        waits_for_locks,
        {"dur": 600},
        [{"dur": 500}, {"dur": 600, "cmd": 3}],
        100 * 600,
        ("100 calls of fcntl", "most on /d/lock: 100 calls, 60 ms, which 1 process uses"),
    ),
    "slow-worker": Slow(
        workers,
        {"slow": 1500},
        [{"slow": 1490}, {"slow": 2000, "items": 2}],
        50 * 500,
        ("process 302",),
    ),
    "unbalanced-rank": Slow(
        # Of 10,000, half is the backward pass.
        ranks,
        {"compute": 12_400},
        [{"compute": 11_000}],
        40 * 1200,
        ("over 40 steps",),
    ),
    "checkpoint-stalls": Slow(
        training_of, {"checkpoint": 22_000}, [{"checkpoint": 21_000}], 22_000, ("1 checkpoint ",)
    ),
    "communication": Slow(
        training_of, {"comm": 3400}, [{"comm": 3380}], 40 * 3400, ("the median step has",)
    ),
    "transfers": Slow(
        training_of, {"transfer": 1800}, [{"transfer": 1790}], 40 * 1800, ("the median step has",)
    ),
    # The last step of an epoch ends with its last event.
    "unattributed": Slow(
        training_of, {"gap": 4600}, [{"gap": 4570}], 38 * 4600, ("the median step has",)
    ),
    "uneven-steps": Slow(
        steps,
        {},
        [{"long": 5400}, {"at": 0}, {"long": 3000, "count": 21}, {"at": 5, "count": 10}],
        4500,
        ("the median step takes 1 ms", "step 20 of epoch 0"),
    ),
    "lost-events": Slow(loses, {"events": 1}, [{"events": 0}], None, ("1 lost",)),
}


def test_every_rule_has_its_case() -> None:
    assert set(CASES) == {rule.name for rule in RULES}


@pytest.mark.parametrize("rule", CASES)
def test_a_run_that_is_slow_in_one_way(tmp_path: Path, rule: str) -> None:
    case = CASES[rule]
    case.make(tmp_path, **case.how)
    found = findings(tmp_path)
    assert set(found) == {rule}
    assert found[rule]["concerns_ns"] == (None if case.concerns is None else case.concerns * US)
    for text in case.texts:
        assert text in str(found[rule]["evidence"])


@pytest.mark.parametrize(
    ("rule", "how"), [(rule, how) for rule, case in CASES.items() for how in case.near]
)
def test_a_run_that_is_nearly_so(tmp_path: Path, rule: str, how: dict[str, Any]) -> None:
    CASES[rule].make(tmp_path, **how)
    assert rule not in findings(tmp_path)


def test_a_rank_whose_fetches_alone_are_slow(tmp_path: Path) -> None:
    """Its steps are so too, by a little more, and by a ratio that is not worth a word."""
    ranks(tmp_path, fetch=1000, gap=60)
    found = findings(tmp_path)
    assert set(found) == {"unbalanced-rank"}
    assert "fetch time 10.00 times" in str(found["unbalanced-rank"]["title"])


def test_every_rule_is_named_once_and_explained() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    docs = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
    text = docs.read_text()
    assert [name for name in names if f"`{name}`" not in text] == []


def test_a_cause_stands_before_what_it_explains_and_is_as_severe(tmp_path: Path) -> None:
    """Small reads are all of the I/O that a program which only reads is bound by."""
    program = Program()
    program.span("POSIX", "open", 5, file="/d/a", ret=3)
    for _ in range(20_000):
        program.read("/d/a", 100, 40)
    program.write(tmp_path)
    rows = reports.load(tmp_path).findings.dicts()
    assert [row["rule"] for row in rows] == ["small-reads", "io-bound"]
    assert (rows[0]["severity"], rows[1]["severity"]) == ("high", "medium")


def test_a_slow_worker_stands_before_the_wait_that_it_causes(tmp_path: Path) -> None:
    training(fetch=4000, compute=6000, steps=80).write(tmp_path)
    workers(tmp_path, slow=8000)
    rows = reports.load(tmp_path).findings.dicts()
    order = [row["rule"] for row in rows]
    assert order.index("slow-worker") < order.index("waiting-for-data")
    assert rows[order.index("slow-worker")]["severity"] == "high"


def test_a_finding_says_how_sure_it_is_and_which_files_it_concerns(tmp_path: Path) -> None:
    once, many = tmp_path / "once", tmp_path / "many"
    for place in (once, many):
        place.mkdir()
    transfers(once, "read")
    reads_again(many, again=8)
    small = findings(once)["small-reads"]
    assert (small["sure"], small["files"]) == ("measured", "/d/a")
    again = findings(many)["rereads"]
    assert (again["sure"], again["files"]) == ("estimated", "/d/a")
    assert "(estimated)" in "\n".join(summarise(reports.load(many)))


def test_files_that_are_concerned_are_listed_costliest_first(tmp_path: Path) -> None:
    program = Program()
    for number, dur in enumerate((20, 90, 40, 60)):
        for _ in range(500):
            program.span("POSIX", "stat", dur, file=f"/d/{number}\n")
            program.now += 100
    program.write(tmp_path)
    names = str(findings(tmp_path)["metadata-storm"]["files"]).split("\n")
    assert [name[:4] for name in names] == ["/d/1", "/d/3", "/d/2"]


def test_writes_that_wait_for_storage_now_and_then_are_not_small_writes(tmp_path: Path) -> None:
    """2,000 writes of 10 us, and 10 that take 200 ms each: no larger buffer would help these."""
    program = Program()
    for number in range(2000):
        program.read("/d/a", 8192, 200_000 if number % 200 == 7 else 10, name="write")
        program.now += 300
    program.write(tmp_path)
    found = findings(tmp_path)["small-writes"]
    # Of 2 s; the median, accurate to 1.6 %, is rounded up by a microsecond.
    assert found["concerns_ns"] == pytest.approx(4 * 2000 * 11 * US, rel=0.02)
    assert (found["severity"], found["sure"]) == ("low", "estimated")


def test_reads_below_the_resolution_of_the_clock_are_small_reads(tmp_path: Path) -> None:
    program = Program()
    for number in range(90_000):
        program.read("/d/a", 16, int(number % 3 == 0), at=2 * number)
    program.now = 180_000
    program.write(tmp_path)
    found = findings(tmp_path)["small-reads"]
    assert (found["concerns_ns"], found["sure"]) == (30_000 * US, "measured")


def test_io_between_regions_is_not_untraced_work(tmp_path: Path) -> None:
    program = Program()
    for step in range(20):
        told = {"epoch": 0, "step": step}
        program.span("dataloader", "fetch", 100, **told)
        program.span("compute", "backward", 5000, **told)
        program.read("/d/log", 1 << 20, 10_000, name="write")
    program.span("compute", "backward", 1, epoch=0, step=19)
    program.write(tmp_path)
    found = findings(tmp_path)
    assert "unattributed" not in found
    assert "/d/log" in str(found["unhidden-io"]["evidence"])
