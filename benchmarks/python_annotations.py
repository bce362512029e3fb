"""The measures of Python annotations: what a recorded call adds to a call of an empty function.

Every process measures bare calls and recorded ones in turn; processes of the tracers take turns.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from errors import BenchError
from measures import MISSING, Measures
from runner import Bench, Figures, Run
from sizes import Sizes
from subjects import PROGRAMS, ROOT, TRACED, Subject, Subjects, compile_program
from table import Row

# Calls in a burst, which the buffers must take up: the slower, the fewer.
BURST = {"ours": 20_000, "viztracer": 20_000, "cprofile": 20_000}
SLOW_BURST = 2_000
PAUSE_MS = 30
OTHERS = {
    "viztracer": "viztracer",
    "cprofile": "cProfile",
    "torch": "torch `record_function`",
    "opentelemetry": "OpenTelemetry",
}
OPENTELEMETRY = "opentelemetry-sdk==1.45.2"
ROWS = (
    ("decorator", 120, "a decorated call, `@ai.compute.forward`: CPU added"),
    ("region", 200, "… the call in `with ai.compute.forward:`"),
    ("updated", 220, "… decorated, with `ai.update(epoch=, step=)` before each call"),
    ("arguments", 300, "… decorated with `args={...}`, two entries"),
    ("iterator", 300, "an item of `ai.dataloader.fetch.iter(...)`, two events: CPU added"),
)
BARE_OF = {"iterator": "bare_loop"}


def python_subjects(peer: Path | None, out: Path, wanted: bool) -> Subjects:
    """Each tracer with an interpreter that has it; what is pinned for tests is in our own."""
    found = {"ours": sys.executable, "off": sys.executable, "cprofile": sys.executable}
    missing: dict[str, str] = {}
    for name in ("viztracer", "torch") if wanted else ():
        if importable(sys.executable, name):
            found[name] = sys.executable
        else:
            missing[name] = f"{name} is not installed"
    if wanted:
        with_spans = venv_with(ROOT / "build" / "opentelemetry-venv", OPENTELEMETRY)
        if with_spans is not None:
            found["opentelemetry"] = with_spans
        else:
            missing["opentelemetry"] = f"{OPENTELEMETRY} cannot be installed"
    else:
        del found["cprofile"]
    if peer is not None:
        python = next(p for p in peer.parents if (p / "pyvenv.cfg").exists()) / "bin" / "python"
        found.update(peer=str(python), peer_off=str(python))
    collect = [f"-I{sysconfig.get_path('include')}", "-shared", "-fPIC", "-fvisibility=hidden"]
    compile_program("collect.c", out / "collect.so", collect)
    return Subjects({n: subject(n, python) for n, python in found.items()}, missing)


def subject(name: str, python: str) -> Subject:
    programs = {
        "calls": (python, str(PROGRAMS / "python_calls.py")),
        "import": (python, str(PROGRAMS / "python_import.py")),
    }
    traced = {k: v for k, v in TRACED.items() if k != "DFTRACER_LOG_FILE"}
    return Subject(name, programs, traced if name in ("ours", "peer") else {})


def importable(python: str, module: str) -> bool:
    done = subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True)
    return done.returncode == 0


def venv_with(venv: Path, requirement: str) -> str | None:
    """The interpreter of a venv that has the package, made first if need be."""
    python = venv / "bin" / "python"
    stamp = venv / ".installed"
    if not stamp.exists() or stamp.read_text() != requirement:
        make = [sys.executable, "-m", "venv", "--clear", str(venv)]
        install = [str(python), "-m", "pip", "install", "--quiet", requirement]
        try:
            for command in (make, install):
                subprocess.run(command, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError):
            return None
        stamp.write_text(requirement)
    return str(python)


class PythonAnnotations(Measures):
    title = "Python annotations: calls of an empty function"
    notes = "python_annotations.md"
    names = (
        "python_calls",
        "python_sustained",
        "python_instructions",
        "python_off",
        "python_import",
    )

    def __init__(self, bench: Bench, sizes: Sizes) -> None:
        super().__init__(bench, sizes)
        self.subjects = [s for s in ("ours", "peer", *OTHERS) if s in bench.subjects]
        self.packages = bench.scratch / "packages"
        (self.packages / "empty_package").mkdir(parents=True)
        (self.packages / "empty_package" / "__init__.py").touch()

    def row(
        self,
        measure: str,
        bar: str,
        bare: str,
        cells: Mapping[str, str],
        met: bool | None = None,
        values: Mapping[str, object] | None = None,
    ) -> Row:
        """A way that a tracer does not have leaves an empty cell."""

        def cell(subject: str) -> str:
            if subject in self.subjects:
                return cells.get(subject, "")
            reason = self.bench.missing.get(subject)
            return f"{MISSING}: {reason}" if reason else MISSING

        others = {head: cell(subject) for subject, head in OTHERS.items()}
        ours, peer = cells["ours"], cell("peer")
        return Row(measure, bar, bare, ours, peer, met, dict(values or {}), others=others)

    def run(self, subject: str, what: str, *rest: int, count: str = "") -> Run:
        who = subject.removesuffix("_off").replace("off", "ours")
        return self.bench.run(subject, "calls", what, who, *rest, count=count)

    def complete(self, run: Run) -> bool:
        """Is every call in the trace? Whoever records less has less to do."""
        if run.events == run.figures["events"]:
            return True
        made = int(run.figures["events"])
        print(f"ours: {run.events} of {made} are in the trace", file=sys.stderr)
        return False

    def python_calls(self) -> list[Row]:
        whole = True
        least: dict[str, Figures] = {s: {} for s in self.subjects}
        for _ in range(self.sizes.repeats):
            for subject, seen in least.items():
                sizes = (self.sizes.python_bursts, BURST.get(subject, SLOW_BURST), PAUSE_MS)
                counted = "forward" if subject == "ours" else ""
                run = self.run(subject, "bursts", *sizes, count=counted)
                whole &= subject != "ours" or self.complete(run)
                for key, ns in run.figures.items():
                    seen[key] = min(ns, seen.get(key, ns))
        rows = []
        for key, bar, what in ROWS:
            bare = BARE_OF.get(key, "bare")
            added = {s: seen[key] - seen[bare] for s, seen in least.items() if key in seen}
            cells = {s: f"+ {ns:,.0f} ns" for s, ns in added.items()}
            met = whole and added["ours"] <= bar
            shown = f"{least['ours'][bare]:.0f} ns"
            rows.append(self.row(what, f"≤ {bar} ns", shown, cells, met, dict(added)))
        return rows

    def python_sustained(self) -> list[Row]:
        seen: dict[str, list[Figures]] = {s: [] for s in self.subjects}
        for _ in range(self.sizes.repeats):
            for subject, figures in seen.items():
                ours = self.sizes.python_sustained
                calls = ours if subject in ("ours", "cprofile") else ours // 20
                counted = "forward" if subject == "ours" else ""
                run = self.run(subject, "sustained", calls, count=counted)
                if subject == "ours" and not self.complete(run):
                    raise BenchError("the trace is not complete")
                figures.append(run.figures)

        def added(subject: str, key: str) -> float:
            runs = seen[subject]
            return median(f[f"decorator_{key}"] - f[f"bare_{key}"] for f in runs)

        def shown(subject: str) -> str:
            wall, every = added(subject, "wall_ns"), added(subject, "all_ns")
            text = f"+ {added(subject, 'cpu_ns'):,.0f} ns"
            return f"{text} (wall {wall:,.0f}, all threads {every:,.0f})"

        calls = self.sizes.python_sustained
        what = f"{calls / 1e6:g} M decorated calls without a pause: CPU added on the calling thread"
        bare = f"{median(f['bare_cpu_ns'] for f in seen['ours']):.0f} ns"
        return [self.row(what, "", bare, {s: shown(s) for s in seen}, values=dict(seen))]

    def python_instructions(self) -> list[Row]:
        # Starting torch under valgrind takes minutes.
        subjects = [s for s in self.subjects if s != "torch"]
        counts = {s: self._instructions(s) for s in subjects}
        rows = []
        for key, _, what in ROWS:
            bare = BARE_OF.get(key, "bare")
            added = {s: seen[key] - seen[bare] for s, seen in counts.items() if key in seen}
            cells = {s: f"+ {count:,.0f}" for s, count in added.items()}
            name = what.replace("CPU added", "instructions added")
            rows.append(self.row(name, "", f"{counts['ours'][bare]:.0f}", cells, None, dict(added)))
        return rows

    def _instructions(self, subject: str) -> Figures:
        """Of one call, on the calling thread: what 400 more of them add."""
        library = self.bench.out / "collect.so"
        total = self.bench.counted(subject, "calls", "instructions", subject, library)
        keys = {key.split()[0] for key in total}
        return {key: (total[f"{key} 800"] - total[f"{key} 400"]) / 400 for key in keys}

    def python_off(self) -> list[Row]:
        subjects = [s for s in ("off", "peer_off") if s in self.bench.subjects]
        least: dict[str, Figures] = {s: {} for s in subjects}
        for _ in range(self.sizes.repeats):
            for subject, seen in least.items():
                run = self.run(subject, "bursts", self.sizes.python_bursts, 20_000, 0)
                for key, ns in run.figures.items():
                    seen[key] = min(ns, seen.get(key, ns))

        def shown(subject: str) -> str:
            seen = least[subject]
            added = max(seen["decorator"] - seen["bare"], 0)
            return "0: the same object" if seen["same"] else f"+ {added:.0f} ns"

        cells = {"ours": shown("off")}
        if "peer_off" in least:
            cells["peer"] = shown("peer_off")
        what = "tracing off: a decorated call"
        met = bool(least["off"]["same"])
        bare = f"{least['off']['bare']:.0f} ns"
        return [self.row(what, "0", bare, cells, met, dict(least))]

    def python_import(self) -> list[Row]:
        wanted = {"bare": ("off", "empty_package"), "ours": ("off", "dftracer.python")}
        if "peer_off" in self.bench.subjects:
            wanted["peer"] = ("peer_off", "dftracer.python")
        extra = {"PYTHONPATH": str(self.packages)}
        seen: dict[str, list[Figures]] = {s: [] for s in wanted}
        for _ in range(self.sizes.python_imports):
            for column, (subject, module) in wanted.items():
                run = self.bench.run(subject, "import", module, extra=extra)
                seen[column].append(run.figures)

        def quarter(column: str) -> float:
            return sorted(f["import_ns"] for f in seen[column])[len(seen[column]) // 4] / 1e6

        def middle(column: str) -> float:
            return median(f["import_ns"] for f in seen[column]) / 1e6

        def shown(column: str) -> str:
            loaded = max(f["libraries"] for f in seen[column])
            added = quarter(column) - quarter("bare")
            center = middle(column) - middle("bare")
            return f"+ {added:.2f} ms (median + {center:.2f}), {loaded:.0f} libraries"

        cells = {column: shown(column) for column in wanted if column != "bare"}
        libraries = max(f["libraries"] for f in seen["ours"])
        met = quarter("ours") - quarter("bare") <= 5 and libraries == 0
        what = "… `import dftracer.python`, against an empty package"
        bar = "≤ 5 ms, no library"
        return [self.row(what, bar, f"{quarter('bare'):.2f} ms", cells, met, dict(seen))]
