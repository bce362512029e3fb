"""The measures of intercepted I/O calls, in programs that know nothing of a tracer.

What is added to a call is measured against the same call made straight to the kernel, in the same
process and in turn (programs/call_bursts.c); what libc itself adds, the bare program shows.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from measures import MISSING, Measures, Runs
from runner import Bench, Figures, Run
from sizes import Sizes
from table import Row

FILE_BYTES = 1 << 20
BURST = 4000
PAUSE_US = 3000
PEERS = ("peer", "lttng")
TENTHS = ("new_first_ns", "new_last_ns", "known_first_ns", "known_last_ns")


class Interception(Measures):
    title = "Interception: I/O calls of an unmodified program, library preloaded"
    notes = "interception.md"
    names = (
        "read_cost",
        "read_instructions",
        "open_and_close",
        "read_loop",
        "read_loop_python",
        "call_sites",
        "two_threads",
        "start_of_true",
        "many_names",
        "filtered_read",
        "preloaded_but_off",
    )

    def __init__(self, bench: Bench, sizes: Sizes) -> None:
        super().__init__(bench, sizes)
        data = bench.scratch / "data"
        data.mkdir()
        self.files = [data / f"input-{i}" for i in range(2)]
        for file in self.files:
            file.write_bytes(os.urandom(FILE_BYTES))
        self.elsewhere = bench.scratch / "elsewhere"
        self.elsewhere.mkdir()

    def row(
        self,
        measure: str,
        bar: str,
        shown: Callable[[str], str],
        met: bool | None = None,
        values: Runs | dict[str, object] | None = None,
    ) -> Row:
        def cell(subject: str) -> str:
            if subject in self.subjects:
                return shown(subject)
            reason = self.bench.missing.get(subject)
            return f"{MISSING}: {reason}" if reason else MISSING

        bare, ours, peer, lttng = map(cell, ("bare", "ours", "peer", "lttng"))
        figures = values.as_json() if isinstance(values, Runs) else values or {}
        return Row(measure, bar, bare, ours, peer, met, dict(figures), lttng)

    def complete(self, runs: Runs) -> bool:
        """Is every call in the trace? Whoever records less has less to do."""
        whole = True
        for subject in runs.of:
            for run in runs.of[subject] if subject != "bare" else ():
                made = int(run.figures["events"])
                if run.events is not None and run.events != made:
                    print(f"{subject}: {run.events} of {made} are in the trace", file=sys.stderr)
                    whole = whole and subject in PEERS
        return whole

    def _bursts(self, kind: str, runs_of: list[str] | None = None, **extra: str) -> Runs:
        sizes = self.sizes

        def measure(subject: str) -> Run:
            bursts = self.events(subject, sizes.call_bursts, 2)
            calls = BURST if kind == "read" else BURST // 4
            arguments = (kind, bursts, calls, PAUSE_US, self.files[0])
            count = {"open": "close"}.get(kind, kind)
            return self.bench.run(subject, "call_bursts", *arguments, extra=extra, count=count)

        return self.turns(measure, sizes.call_repeats, runs_of)

    def read_cost(self) -> list[Row]:
        runs = self._bursts("read")
        added = {s: added_ns(runs, s) for s in self.subjects}
        ours = added["ours"]
        fast = ours <= 100
        fast &= "peer" not in added or ours <= added["peer"] / 25
        fast &= "lttng" not in added or ours <= added["lttng"] / 3

        def shown(subject: str) -> str:
            if subject == "bare":
                return f"{runs.median('bare', 'call_ns'):.0f} ns"
            ratio = "" if subject == "ours" else f" = {added[subject] / ours:.1f} x ours"
            whole = runs.median(subject, "call_ns") - runs.median("bare", "call_ns")
            return f"+ {added[subject]:,.0f} ns{ratio} (run against run + {whole:,.0f})"

        return [
            self.row(
                "a cached 4 KiB read, metadata on: CPU added on the calling thread",
                "≤ 100 ns, ≤ 1/25 of the peer, ≤ 1/3 of LTTng-UST",
                shown,
                self.complete(runs) and fast,
                runs,
            )
        ]

    def read_instructions(self) -> list[Row]:
        def count(subject: str, calls: int, *pauses: int) -> float:
            return self.instructions_each(
                subject, "call_loop", "one_read", calls, "read", *pauses, self.files[0]
            )

        # As for annotations: within one buffer, and with its changes while the writer is ahead.
        inside = {s: count(s, 400, 0, 0) for s in self.subjects}
        switching = {s: count(s, 4000, 1000, 20000) for s in self.subjects}
        rows = []
        for what, seen in (
            ("a read: instructions added on the calling thread", inside),
            ("… with the changes of buffer", switching),
        ):

            def shown(subject: str, seen: dict[str, float] = seen) -> str:
                if subject == "bare":
                    return f"{seen['bare']:.0f}"
                return f"+ {seen[subject] - seen['bare']:,.0f}"

            met = seen["ours"] - seen["bare"] <= 300
            rows.append(self.row(what, "≤ 300", shown, met, dict(seen)))
        return rows

    def open_and_close(self) -> list[Row]:
        runs = self._bursts("open")

        def shown(subject: str) -> str:
            if subject == "bare":
                return f"{runs.median('bare', 'call_ns'):,.0f} ns"
            return f"+ {added_ns(runs, subject):,.0f} ns"

        met = self.complete(runs) and added_ns(runs, "ours") <= 1000
        what = "an open with its close: CPU added on the calling thread"
        return [self.row(what, "≤ 1 us", shown, met, runs)]

    def read_loop(self) -> list[Row]:
        def measure(subject: str) -> Run:
            calls = self.events(subject, self.sizes.reads, self.sizes.peer_reads)
            arguments = (calls, "read", 0, 0, self.files[0])
            return self.bench.run(subject, "call_loop", *arguments, count="read")

        runs = self.turns(measure, self.sizes.loop_repeats, seldom=PEERS)
        return [self._loop_row("a loop of cached 4 KiB reads from C, wall", 12, runs)]

    def read_loop_python(self) -> list[Row]:
        def measure(subject: str) -> Run:
            calls = self.events(subject, self.sizes.reads, self.sizes.peer_reads)
            count = "" if subject == "peer" else "pread64"
            return self.bench.run(subject, "preads", calls, self.files[0], count=count)

        runs = self.turns(measure, self.sizes.loop_repeats, seldom=PEERS)
        return [self._loop_row("… from Python (`os.pread`)", 8, runs)]

    def call_sites(self) -> list[Row]:
        """What finding the caller adds to a call that is recorded anyway."""
        rows = []
        for where, program, arguments, count in (
            ("C", "call_loop", ("read", 0, 0, self.files[0]), "read"),
            ("Python", "preads", (self.files[0],), "pread64"),
        ):
            runs = Runs({"off": [], "on": []})
            for _ in range(self.sizes.loop_repeats):
                for switch, kept in (("0", "off"), ("1", "on")):
                    extra = {"DFTRACER_CALL_SITES": switch}
                    run = self.bench.run(
                        "ours", program, self.sizes.reads, *arguments, extra=extra, count=count
                    )
                    runs.of[kept].append(run)
            added = runs.quarter("on", "cpu_ns") - runs.quarter("off", "cpu_ns")
            middle = runs.median("on", "cpu_ns") - runs.median("off", "cpu_ns")
            without = f"{runs.quarter('off', 'cpu_ns'):,.0f} ns, recorded without"
            shown = {"bare": without, "ours": f"+ {added:,.1f} ns (medians {middle:+,.1f})"}
            rows.append(
                self.row(
                    f"the call site of a read from {where}: CPU added on the calling thread",
                    "≤ 20 ns",
                    lambda subject, shown=shown: shown.get(subject, MISSING),
                    self.complete(runs) and added <= 20,
                    runs,
                )
            )
        return rows

    def _loop_row(self, what: str, percent: int, runs: Runs) -> Row:
        def above(subject: str) -> float:
            return (runs.ratio(subject, "bare", "wall_ns") - 1) * 100

        def shown(subject: str) -> str:
            if subject == "bare":
                return f"{runs.median('bare', 'wall_ns'):,.0f} ns"
            quarter = runs.quarter(subject, "wall_ns") / runs.quarter("bare", "wall_ns")
            cpu = runs.median(subject, "cpu_ns") - runs.median("bare", "cpu_ns")
            quarters = f"lower quarters + {(quarter - 1) * 100:.1f} %"
            return f"+ {above(subject):.1f} % ({quarters}, CPU of the thread + {cpu:,.0f} ns)"

        met = self.complete(runs) and above("ours") <= percent
        return self.row(what, f"≤ {percent} %", shown, met, runs)

    def two_threads(self) -> list[Row]:
        def measure(subject: str, threads: int) -> Run:
            calls = self.events(subject, self.sizes.reads, self.sizes.peer_reads)
            return self.bench.run(
                subject, "call_loop", calls, "read", 0, 0, *self.files[:threads], count="read"
            )

        # One and two threads take turns as well: the ratio of neighbours is the figure.
        alone = Runs({s: [] for s in self.subjects})
        both = Runs({s: [] for s in self.subjects})
        for turn in range(self.sizes.call_repeats):
            for subject in self.subjects:
                if turn < self.sizes.repeats or subject in ("bare", "ours"):
                    alone.of[subject].append(measure(subject, 1))
                    both.of[subject].append(measure(subject, 2))

        def ratio(subject: str, key: str = "cpu_ns") -> float:
            pairs = zip(alone.of[subject], both.of[subject])
            return median(two.figures[key] / one.figures[key] for one, two in pairs)

        def shown(subject: str) -> str:
            costs = (runs.median(subject, "cpu_ns") for runs in (alone, both))
            text = " / ".join(f"{ns:,.0f}" for ns in costs)
            return f"{text} ns = {ratio(subject):.2f} x (wall {ratio(subject, 'wall_ns'):.2f} x)"

        return [
            self.row(
                "… from C on 1 / 2 threads, each with its own file: CPU per call, the read "
                "included",
                "≤ 1.3 x",
                shown,
                self.complete(alone) and self.complete(both) and ratio("ours") <= 1.3,
                {"one": alone.as_json(), "two": both.as_json()},
            )
        ]

    def start_of_true(self) -> list[Row]:
        order = [*self.subjects, "off"]
        spawned = self.bench.spawn(self.sizes.starts, [(s, ("true",)) for s in order])
        seen: dict[str, Figures] = dict(zip(order, spawned))

        def added(subject: str, key: str) -> float:
            return (seen[subject][key] - seen["bare"][key]) / 1000

        def shown(subject: str) -> str:
            if subject == "bare":
                return f"{seen['bare']['wall_us'] / 1000:.2f} ms"
            quarter, cpu = added(subject, "quarter_us"), added(subject, "cpu_us")
            wall = added(subject, "wall_us")
            return f"+ {wall:.2f} ms (lower quarter + {quarter:.2f}, CPU + {cpu:.2f})"

        off = Row("… preloaded, but tracing not switched on", bare=shown("bare"), ours=shown("off"))
        what = "start and end of `/bin/true`"
        met = added("ours", "wall_us") <= 2
        return [self.row(what, "≤ 2 ms", shown, met, dict(seen)), off]

    def many_names(self) -> list[Row]:
        names = self.sizes.names
        with tempfile.TemporaryDirectory(prefix="bench-tree-", dir=memory_directory()) as parent:
            tree = Path(parent) / "tree"
            self.bench.make_tree(tree, names)
            runs = self.turns(
                lambda s: self.bench.run(s, "tree", "walk", tree, names, count="open"),
                3,
                once=["peer"],
            )
        base = runs.median("bare", "peak_kb")

        def added(subject: str, key: str) -> float:
            return runs.median(subject, key) - runs.median("bare", key)

        def memory(subject: str) -> str:
            if subject == "bare":
                return f"{base / 1024:.1f} MiB in all"
            return f"+ {added(subject, 'peak_kb') / 1024:.1f} MiB"

        def costs(subject: str) -> str:
            if subject == "bare":
                return f"{runs.median('bare', 'call_ns'):,.0f} ns"
            new, new_last, known, known_last = (f"{added(subject, key):,.0f}" for key in TENTHS)
            return f"+ {new} … {new_last} ns, + {known} … {known_last} ns"

        met = self.complete(runs) and added("ours", "peak_kb") * 1024 <= 40e6
        flat = max(added("ours", key) for key in TENTHS) <= 1.5 * added("ours", TENTHS[0])
        return [
            self.row(
                f"a tree of {names:,} distinct names, each opened and closed twice: peak memory",
                "≤ 40 MB above bare",
                memory,
                met,
                runs,
            ),
            self.row(
                "… CPU of an open with its close, first … last tenth of the names, "
                "when they are new and again when they are known",
                "flat: none > 1.5 x the first",
                costs,
                flat,
            ),
        ]

    def filtered_read(self) -> list[Row]:
        subjects = [s for s in self.subjects if s != "lttng"]
        runs = self._bursts("read", subjects, DFTRACER_DATA_DIR=str(self.elsewhere))

        def shown(subject: str) -> str:
            if subject == "bare":
                return f"{runs.median('bare', 'call_ns'):.0f} ns"
            if subject == "lttng":
                return "has no such filter"
            return f"+ {added_ns(runs, subject):,.0f} ns"

        left_out = not any(run.events for run in runs.of["ours"])
        met = left_out and added_ns(runs, "ours") <= 20
        what = "a read of a file outside `DFTRACER_DATA_DIR`: CPU added"
        return [self.row(what, "≤ 20 ns", shown, met, runs)]

    def preloaded_but_off(self) -> list[Row]:
        runs = self._bursts("read", ["bare", "off"], DFTRACER_ENABLE="0")
        files = max(run.files for run in runs.of["off"])
        bare = runs.median("bare", "call_ns")
        off = added_ns(runs, "off")
        what = "a read, preloaded but tracing not switched on: CPU added"
        cell = f"+ {off:.0f} ns = {off / bare * 100:.1f} %; {files} files"
        return [Row(what, "", f"{bare:.0f} ns", cell, values=dict(runs.as_json()))]


def added_ns(runs: Runs, subject: str) -> float:
    return runs.median(subject, "added_ns") - runs.median("bare", "added_ns")


def memory_directory() -> str | None:
    """Where many small files cost little; the usual temporary directory if there is no such."""
    place = "/dev/shm"
    return place if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) else None
