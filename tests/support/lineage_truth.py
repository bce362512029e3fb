"""What batches were waited for, found moment by moment from the events of a trace.

Slow and plain on purpose: the reports get the same numbers from SQL and a sweep, and are compared
with these. Times are microseconds.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Batch = tuple[int, int, int, int]  # pid of the process that uses it, loader, pass, batch


def records(directory: Path) -> list[Record]:
    found = []
    for path in sorted(directory.glob("*.pfw")):
        for line in path.read_text().splitlines():
            if line.startswith("{"):
                record = json.loads(line)
                if record["ph"] == "X":
                    found.append(record)
    return found


def covers(span: Record, moment: float) -> bool:
    return bool(span["ts"] <= moment < span["ts"] + span["dur"])


def end(span: Record) -> int:
    return int(span["ts"] + span["dur"])


class Truth:
    """By batch: the parts of the wait for it (waits), and those of making it (work)."""

    def __init__(self, directory: Path) -> None:
        self.events = records(directory)
        self.threads: dict[tuple[int, int], list[Record]] = defaultdict(list)
        for event in self.events:
            self.threads[event["pid"], event["tid"]].append(event)
        self.fetches = self._keyed("fetch")
        self.tasks = self._keyed("batch")
        self.arrivals = self._keyed("arrive")
        self.work = {key: self._work(task) for key, task in self.tasks.items()}
        self.waits = {key: self._wait(key, fetch) for key, fetch in self.fetches.items()}

    def named(self, cat: str, name: str) -> list[Record]:
        return [e for e in self.events if (e["cat"], e["name"]) == (cat, name)]

    def _keyed(self, name: str) -> dict[Batch, Record]:
        found = {}
        for event in self.named("dataloader", name):
            args = event["args"]
            owner = args.get("parent", event["pid"])
            found[owner, args["loader"], args["pass"], args["batch"]] = event
        return found

    def exposed(self) -> Counter[str]:
        return sum(self.waits.values(), Counter())

    def total(self) -> Counter[str]:
        return sum(self.work.values(), Counter())

    def _inside(self, task: Record) -> list[Record]:
        return [
            event
            for event in self.threads[task["pid"], task["tid"]]
            if event["ts"] < end(task) and end(event) > task["ts"] and event is not task
        ]

    @staticmethod
    def _activity(inside: list[Record], moment: float) -> str:
        open_now = [(event["cat"], event["name"]) for event in inside if covers(event, moment)]
        if ("python", "gc") in open_now:
            return "gc"
        if any(cat == "POSIX" for cat, _ in open_now):
            return "reading"
        if ("data", "preprocess.collate") in open_now:
            return "collating"
        if ("data", "item") in open_now:
            return "decoding"
        return "other"

    @staticmethod
    def _pieces(first: int, last: int, cuts: list[int]) -> list[tuple[int, int]]:
        moments = sorted({first, last, *(cut for cut in cuts if first < cut < last)})
        return list(zip(moments, moments[1:]))

    def _work(self, task: Record) -> Counter[str]:
        inside = self._inside(task)
        cuts = [moment for event in inside for moment in (event["ts"], end(event))]
        found: Counter[str] = Counter()
        for first, last in self._pieces(task["ts"], end(task), cuts):
            found[self._activity(inside, (first + last) / 2)] += last - first
        return found

    def _wait(self, key: Batch, fetch: Record) -> Counter[str]:
        task = self.tasks[key]
        alone = task["pid"] == fetch["pid"]
        inside = self._inside(task)
        maker = [e for e in self.threads[task["pid"], task["tid"]] if e["name"] == "batch"]
        is_first = min(maker, key=lambda event: event["ts"]) is task
        pins = [
            event
            for event in self.named("dataloader", "pin")
            if event["pid"] == fetch["pid"] and event["args"]["batch"] == key[3]
            and end(task) <= event["ts"] <= end(fetch)
        ]  # fmt: skip
        collections = [
            event
            for event in self.threads[fetch["pid"], fetch["tid"]]
            if event["name"] == "gc" and not alone
        ]
        free = self._free(key)
        spans = [fetch, task, *inside, *pins, *collections]
        cuts = [free, *(moment for event in spans for moment in (event["ts"], end(event)))]
        found: Counter[str] = Counter()
        for first, last in self._pieces(fetch["ts"], end(fetch), cuts):
            moment = (first + last) / 2
            if covers(task, moment):
                what = self._activity(inside, moment)
            elif alone:
                what = "other"
            elif moment < task["ts"]:
                what = "start" if is_first else "dispatch"
            elif any(covers(pin, moment) for pin in pins):
                what = "pinning"
            elif moment < free:
                what = "turn"
            elif any(covers(one, moment) for one in collections):
                what = "gc"
            else:
                what = "queue"
            found[what] += last - first
        return found

    def _free(self, key: Batch) -> int:
        """Until when the queue was busy with the batch before this one."""
        if key not in self.arrivals:
            return 0
        mine = end(self.arrivals[key])
        earlier = [
            (end(event), other)
            for other, event in self.arrivals.items()
            if other[:3] == key[:3] and end(event) < mine
        ]
        if not earlier:
            return 0
        arrived, other = max(earlier)
        pins = [
            end(event)
            for event in self.named("dataloader", "pin")
            if event["pid"] == key[0]
            and event["args"]["batch"] == other[3]
            and event["ts"] == arrived
        ]
        return max([arrived, *pins])
