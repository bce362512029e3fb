"""The programs under measurement, and the ways in which they are run.

Annotated programs are built three times from one source: `bare` compiles the annotations away,
`ours` links this project, `peer` links dftracer 2.2.0 from the package index. Programs that only do
I/O are built once and run four times: `bare`, and with the library of `ours`, `peer` or `lttng`
preloaded. `off` is `ours` with tracing not switched on.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from errors import BenchError
from lttng import Lttng
from venvs import install

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
PEER = "dftracer==2.2.0"
TRACED = {"DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": "trace", "DFTRACER_INC_METADATA": "1"}
PRELOADED = {**TRACED, "DFTRACER_INIT": "PRELOAD", "DFTRACER_DATA_DIR": "all"}
ANNOTATED = ("loop", "burst", "worst", "nothing")
PLAIN = ("call_bursts", "call_loop", "tree")


@dataclass(frozen=True)
class Subject:
    """One way of building and running the programs."""

    name: str
    programs: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]
    lttng: Lttng | None = None


@dataclass(frozen=True)
class Subjects:
    of: Mapping[str, Subject]
    # Why a column stays empty.
    missing: Mapping[str, str] = field(default_factory=dict)


def peer_prefix(venv: Path) -> Path | None:
    """Where the peer's headers and libraries are, installed first if need be."""
    if install(venv, PEER):
        return None
    found = sorted(venv.glob("lib/python3*/site-packages/dftracer/lib64/libdftracer_core.so"))
    return found[0].parent.parent if found else None


def compile_program(source: str, target: Path, options: Sequence[str]) -> Path:
    command = ["cc", "-std=gnu11", "-O2", "-g", "-Wall", "-o", str(target)]
    command += [str(PROGRAMS / source), *options, "-lpthread"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise BenchError(f"{' '.join(command)}\n{result.stderr}")
    return target


def installed() -> Path:
    """The package beside this interpreter: what `make bench` put there is a wheel."""
    found = importlib.util.find_spec("dftracer")
    return Path(found.origin).parent if found and found.origin else ROOT / "build" / "stage"


def libraries(prefix: Path) -> Path:
    """A wheel has lib64, a prefix lib."""
    return prefix / ("lib64" if (prefix / "lib64").is_dir() else "lib")


def build_subject(
    name: str, options: Sequence[str], out: Path, environment: Mapping[str, str]
) -> Subject:
    programs = {
        n: (str(compile_program(f"{n}.c", out / f"{n}-{name}", options)),) for n in ANNOTATED
    }
    return Subject(name, programs, environment)


def annotated_subjects(prefix: Path, peer: Path | None, out: Path) -> Subjects:
    include = [f"-I{prefix}/include"]
    if not (prefix / "include" / "dftracer" / "dftracer.h").exists():
        raise BenchError(f"{prefix} holds no installed dftracer: run `make bench`")
    lib = libraries(prefix)
    ours = build_subject(
        "ours", [*include, f"-L{lib}", "-ldftracer_core", f"-Wl,-rpath,{lib}"], out, TRACED
    )
    subjects = {
        "bare": build_subject("bare", [*include, "-DDFTRACER_DISABLE"], out, {}),
        "ours": ours,
        "off": Subject("off", ours.programs, {}),
    }
    if peer is not None:
        bundled = peer.parent / "dftracer.libs"
        options = [f"-I{peer}/include", f"-L{peer}/lib64", "-ldftracer_core"]
        options += [f"-Wl,-rpath,{peer}/lib64", f"-Wl,-rpath,{bundled}"]
        options += ["-Wl,--allow-shlib-undefined"]
        try:
            subjects["peer"] = build_subject(
                "peer", options, out, {**TRACED, "DFTRACER_DATA_DIR": "all"}
            )
        except BenchError as error:
            print(f"the peer cannot be used: {error}", file=sys.stderr)
    return Subjects(subjects)


def preloaded_subjects(prefix: Path, peer: Path | None, lttng: Lttng, out: Path) -> Subjects:
    library = libraries(prefix) / "libdftracer_preload.so"
    if not library.exists():
        raise BenchError(f"{library} is missing: run `make bench`")
    programs: dict[str, Sequence[str]] = {
        n: (str(compile_program(f"{n}.c", out / n, [])),) for n in PLAIN
    }
    programs["preads"] = (sys.executable, str(PROGRAMS / "preads.py"))
    programs["true"] = ("/bin/true",)
    ours = {"LD_PRELOAD": str(library)}
    subjects = {
        "bare": Subject("bare", programs, {}),
        "ours": Subject("ours", programs, {**PRELOADED, **ours}),
        "off": Subject("off", programs, ours),
    }
    if peer is not None:
        theirs = {"LD_PRELOAD": str(peer / "lib64" / "libdftracer_preload.so")}
        subjects["peer"] = Subject("peer", programs, {**PRELOADED, **theirs})
    reason = lttng.start(out)
    if reason:
        return Subjects(subjects, {"lttng": reason})
    subjects["lttng"] = Subject("lttng", programs, lttng.environment, lttng)
    return Subjects(subjects)
