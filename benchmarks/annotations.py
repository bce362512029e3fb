"""The measures of annotated events: what a region with two arguments costs."""

from __future__ import annotations

import os
from statistics import median

from measures import MISSING, Measures
from runner import Figures, Run
from table import Row


class Annotations(Measures):
    title = "Annotations: a region with two arguments"
    names = (
        "instructions",
        "time_of_a_call",
        "all_threads_together",
        "several_threads",
        "memory_and_finalize",
        "start_and_end",
        "size_on_disk",
        "worst_call",
        "switched_off",
    )

    def _instructions(self, subject: str, events: int, *rest: int) -> float:
        return self.instructions_each(subject, "loop", "one_event", events, *rest)

    def instructions(self) -> list[Row]:
        # 400 to 800 events lie within one buffer; pauses keep the writer ahead in the second case.
        inside = {s: self._instructions(s, 400) for s in self.subjects}
        switching = {s: self._instructions(s, 4000, 1, 0, 1000, 20000) for s in self.subjects}
        ours = inside["ours"] - inside["bare"]
        rows = []
        for what, seen, bar in (
            ("one event with two arguments, calling thread: instructions", inside, 250),
            ("… with the changes of buffer", switching, 250),
        ):
            ours = seen["ours"] - seen["bare"]
            peer = f"{seen['peer'] - seen['bare']:,.0f}" if "peer" in seen else MISSING
            cells = (f"{seen['bare']:.0f}", f"{ours:.0f}", peer)
            rows.append(Row(what, f"≤ {bar}", *cells, met=ours <= bar, values=dict(seen)))
        return rows

    def time_of_a_call(self) -> list[Row]:
        bursts = self.sizes.burst
        runs = self.turns(lambda s: self.bench.run(s, "burst", bursts if s != "peer" else 10, 4000))
        bare = runs.median("bare", "event_ns")

        def ratio(subject: str) -> float:
            return median((f["event_ns"] - bare) / f["yardstick_ns"] for f in runs.figures(subject))

        def shown(subject: str) -> str:
            return f"{runs.median(subject, 'event_ns') - bare:.0f} ns = {ratio(subject):.2f} x"

        yardstick = median(f["yardstick_ns"] for s in self.subjects for f in runs.figures(s))
        return [
            Row(
                "the same in time, in bursts that the buffers take up "
                "(x: two `clock_gettime` calls and a copy of 64 bytes)",
                "≤ 2 x",
                f"{bare:.1f} ns; x = {yardstick:.0f} ns",
                shown("ours"),
                shown("peer") if self.bench.has_peer else MISSING,
                ratio("ours") <= 2,
                {"ratio": ratio("ours"), **runs.as_json()},
            )
        ]

    def all_threads_together(self) -> list[Row]:
        sizes = self.sizes
        runs = self.turns(
            lambda s: self.bench.run(
                s, "loop", self.events(s, sizes.sustained, sizes.peer_sustained), count="step"
            )
        )
        for subject in self.subjects[1:]:
            for run in runs.of[subject]:
                if run.events != run.figures["events"]:
                    print(
                        f"{subject}: {run.events} of {run.figures['events']:.0f} are in the trace"
                    )
        call = runs.each("loop_cpu_ns")
        whole = runs.each("process_cpu_ns")
        wall = runs.each("loop_wall_ns")
        caller = Row(
            "the same without a pause: the calling thread, when it outruns the writer",
            "",
            f"{call['bare']:.1f} ns",
            f"{call['ours'] - call['bare']:.0f} ns",
            f"{call['peer'] - call['bare']:,.0f} ns" if self.bench.has_peer else MISSING,
            values={"cpu": call, "wall": wall},
        )
        ours = whole["ours"] - whole["bare"]
        peer = f"{whole['peer'] - whole['bare']:,.0f} ns" if self.bench.has_peer else MISSING
        return [
            caller,
            Row(
                "all threads together, event to compressed byte on disk: CPU",
                "≤ 450 ns",
                f"{whole['bare']:.1f} ns",
                f"{ours:.0f} ns",
                peer,
                ours <= 450,
                whole | {"runs": runs.as_json()},
            ),
        ]

    def several_threads(self) -> list[Row]:
        sizes = self.sizes
        cores = len(os.sched_getaffinity(0))
        counts = (1, 2, 4, 8)
        calling: dict[str, list[float]] = {s: [] for s in self.subjects}
        together: dict[str, list[float]] = {s: [] for s in self.subjects}
        for count in counts:

            def burst(subject: str, count: int = count) -> Run:
                bursts = 10 if subject == "peer" else sizes.burst // 2
                return self.bench.run(subject, "burst", bursts, 4000 // count, count)

            def loop(subject: str, count: int = count) -> Run:
                events = self.events(subject, sizes.threads, sizes.peer_threads)
                return self.bench.run(subject, "loop", events, count)

            bursts = self.turns(burst, 3)
            loops = self.turns(loop, 3)
            for subject in self.subjects:
                calling[subject].append(bursts.median(subject, "event_ns"))
                together[subject].append(loops.each("process_cpu_ns")[subject])

        def shown(figures: dict[str, list[float]], subject: str) -> str:
            if subject not in figures:
                return MISSING
            costs = figures[subject]
            ratios = " / ".join(f"{ns / costs[0]:.2f}" for ns in costs)
            return " / ".join(f"{ns:,.0f}" for ns in costs) + f" ns = {ratios}"

        def row(what: str, figures: dict[str, list[float]]) -> Row:
            ours = figures["ours"]
            allowed = [ns / ours[0] for ns, count in zip(ours, counts) if count <= max(cores, 1)]
            return Row(
                f"1 / 2 / 4 / 8 threads on {cores} cores, {what}",
                "≤ 1.3 x where cores allow",
                shown(figures, "bare"),
                shown(figures, "ours"),
                shown(figures, "peer"),
                max(allowed) <= 1.3,
                dict(figures),
            )

        return [
            row("CPU per event on the calling thread, bursts", calling),
            row("CPU per event of all threads together, no pause", together),
        ]

    def memory_and_finalize(self) -> list[Row]:
        sizes = self.sizes
        runs = self.turns(
            lambda s: self.bench.run(s, "loop", self.events(s, sizes.memory, sizes.peer_memory)),
            min(3, sizes.repeats),
        )
        millions = f"{sizes.memory / 1e6:g} M"
        note = f" ({sizes.peer_memory / 1e6:g} M events)"
        base = runs.median("bare", "peak_kb")

        def grown(subject: str, key: str) -> float:
            return (runs.median(subject, key) - base) / 1024

        def shown(subject: str) -> str:
            half = grown(subject, "half_kb")
            return f"{grown(subject, 'peak_kb'):.1f} MiB, {half:.1f} after half"

        crowd = self.turns(
            lambda s: self.bench.run(
                s, "loop", self.events(s, sizes.threads, sizes.peer_threads), 16
            ),
            min(3, sizes.repeats),
        )
        crowd_base = crowd.median("bare", "peak_kb")
        crowd_kb = {s: crowd.greatest(s, "peak_kb") - crowd_base for s in self.subjects}
        crowd_ms = {s: crowd.greatest(s, "finalize_ns") / 1e6 for s in self.subjects}

        def crowd_shown(subject: str) -> str:
            if subject not in crowd_kb:
                return MISSING
            return f"{crowd_kb[subject] / 1024:.1f} MiB, {crowd_ms[subject]:.0f} ms"

        flat = grown("ours", "peak_kb") - grown("ours", "half_kb") <= 1.0
        final = {s: runs.median(s, "finalize_ns") / 1e6 for s in self.subjects}
        return [
            Row(
                f"memory after {millions} events: peak above the bare program",
                "≤ 16 MB, flat",
                f"{base / 1024:.1f} MiB in all",
                shown("ours"),
                shown("peer") + note if self.bench.has_peer else MISSING,
                (runs.median("ours", "peak_kb") - base) * 1024 <= 16e6 and flat,
                runs.as_json(),
            ),
            Row(
                f"finalize after {millions} events",
                "≤ 100 ms",
                "",
                f"{final['ours']:.1f} ms",
                f"{final['peer']:.1f} ms{note}" if self.bench.has_peer else MISSING,
                final["ours"] <= 100,
                dict(final),
            ),
            Row(
                f"… both with 16 threads and {sizes.threads / 1e6:g} M events, worst run",
                "the same",
                f"{crowd_base / 1024:.1f} MiB in all",
                crowd_shown("ours"),
                crowd_shown("peer"),
                crowd_kb["ours"] * 1024 <= 16e6 and crowd_ms["ours"] <= 100,
                crowd.as_json(),
            ),
        ]

    def start_and_end(self) -> list[Row]:
        commands = [("bare", "0"), ("off", "1"), ("ours", "1"), ("ours", "0")]
        if self.bench.has_peer:
            commands += [("peer", "1"), ("peer", "0")]
        figures = self.bench.spawn(
            self.sizes.starts, [(subject, ("nothing", bind)) for subject, bind in commands]
        )
        bare, off, ours, ours_plain = figures[:4]

        def added(f: Figures) -> str:
            quarter, wall, cpu = (
                (f[key] - bare[key]) / 1000 for key in ("quarter_us", "wall_us", "cpu_us")
            )
            return f"+ {quarter:.2f} ms (median + {wall:.2f}, CPU + {cpu:.2f})"

        peer = added(figures[4]) if self.bench.has_peer else MISSING
        peer_plain = added(figures[5]) if self.bench.has_peer else MISSING
        met = ours["quarter_us"] - bare["quarter_us"] <= 2000
        alone = f"{bare['quarter_us'] / 1000:.2f} ms"
        return [
            Row(
                "start and end of a traced program that does nothing",
                "≤ 2 ms",
                alone,
                added(ours),
                peer,
                met,
                {"ours": ours, "bare": bare},
            ),
            Row("… without following I/O calls", "", alone, added(ours_plain), peer_plain),
            Row("… linked, but tracing not switched on", "", alone, added(off), values=dict(off)),
        ]

    def size_on_disk(self) -> list[Row]:
        events = self.sizes.sizes
        rows = []
        sizes: dict[str, dict[str, float]] = {}
        for name, mixed in (("regular", 0), ("random", 1)):
            each = {}
            for subject in self.subjects[1:]:
                count = self.events(subject, events, events // 5)
                run = self.bench.run(subject, "loop", count, 1, mixed, 1000, 2000)
                each[subject] = run.trace_bytes / run.figures["events"]
            sizes[name] = each
        for name, what in (
            ("regular", "bytes per event, compressed, two arguments (a count and a constant)"),
            ("random", "… the second argument random below 2^20"),
        ):
            peer = f"{sizes[name]['peer']:.1f}" if self.bench.has_peer else MISSING
            ours = sizes[name]["ours"]
            met = ours <= 10 if name == "regular" else None
            bar = "≤ 10" if name == "regular" else ""
            rows.append(Row(what, bar, "", f"{ours:.1f}", peer, met, dict(sizes[name])))
        levels = []
        values = {}
        for level in range(4):
            run = self.bench.run(
                "ours", "loop", events, extra={"DFTRACER_COMPRESSION_LEVEL": str(level)}
            )
            each_bytes = run.trace_bytes / run.figures["events"]
            each_cpu = run.figures["process_cpu_ns"] / run.figures["events"]
            levels.append(f"{each_bytes:.1f} ({each_cpu:.0f})")
            values[str(level)] = {"bytes": each_bytes, "cpu_ns": each_cpu}
        rows.append(
            Row(
                "… at level 0 / 1 / 2 / 3, no pause (ns of CPU per event)",
                ours=" / ".join(levels),
                values=values,
            )
        )
        return rows

    def worst_call(self) -> list[Row]:
        sizes = self.sizes
        runs = self.turns(
            lambda s: self.bench.run(s, "worst", self.events(s, sizes.worst, sizes.peer_worst)),
            3,
            self.subjects[1:],
        )

        def shown(subject: str, prefix: str = "") -> str:
            cpu = runs.least(subject, f"{prefix}worst_cpu_ns") / 1e6
            most = runs.greatest(subject, f"{prefix}worst_cpu_ns") / 1e6
            wall = runs.least(subject, f"{prefix}worst_wall_ns") / 1e6
            return f"{cpu:.2f} ms (of three runs up to {most:.2f}; wall {wall:.1f})"

        note = f", {sizes.peer_worst / 1e6:g} M events"
        return [
            Row(
                f"worst single call in {sizes.worst / 1e6:g} M: CPU of the calling thread "
                "(bare: calls that do nothing, in turn with ours in the same process)",
                "≤ 2 ms",
                shown("ours", "bare_"),
                shown("ours"),
                shown("peer") + note if self.bench.has_peer else MISSING,
                runs.least("ours", "worst_cpu_ns") <= 2e6,
                runs.as_json(),
            )
        ]

    def switched_off(self) -> list[Row]:
        runs: dict[str, list[Run]] = {"bare": [], "off": []}
        for _ in range(self.sizes.repeats):
            for subject, seen in runs.items():
                seen.append(self.bench.run(subject, "burst", self.sizes.burst, 4000, 1, 100))
        bare, off = (
            median(run.figures["event_ns"] for run in runs[subject]) for subject in ("bare", "off")
        )
        clock = median(run.figures["clock_ns"] for run in runs["off"])
        files = max(run.files for run in runs["off"])
        threads = max(run.figures["threads"] for run in runs["off"])
        bare_count = self._instructions("bare", 4000)
        count = self._instructions("off", 4000) - bare_count
        quiet = files == 0 and threads == 1
        return [
            Row(
                "tracing off: a region with two arguments",
                f"no file, no thread, nothing measurable (below a clock reading, {clock:.0f} ns)",
                f"{bare:.1f} ns, {bare_count:.0f} instructions",
                f"+ {off - bare:.1f} ns, + {count:.0f} instructions; "
                f"{files} files, {threads - 1:.0f} threads",
                "",
                quiet and off - bare < clock,
                {"off_ns": off, "bare_ns": bare, "instructions": count},
            )
        ]
