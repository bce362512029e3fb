"""The checks of `dftracer doctor` on the installation, the machine and the settings."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

from dftracer import _cleanup, _libcore, _mixture
from dftracer._format import counted, size
from dftracer.commands.doctor._check import Check, fail, ok, warn
from dftracer.commands.doctor._machine import check_clock, check_permissions, check_system, read
from dftracer.errors import DFTracerError


def check_installation() -> Iterator[Check]:
    for check in (
        _version,
        _wheel,
        _package,
        _library_loads,
        _extension,
        _preload,
        _directory,
        _space,
        check_system,
        check_clock,
        check_permissions,
        _proc,
        _settings,
        _neighbours,
        _extras,
    ):
        yield from _guarded(check)


def _guarded(check: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from check()
    except (OSError, DFTracerError, ImportError, subprocess.SubprocessError) as error:
        name = check.__name__.replace("check_", "").strip("_").replace("_", " ")
        yield fail(name, str(error))


def _version() -> Iterator[Check]:
    version = importlib.metadata.version("pydftracer")
    where = _libcore.LIBRARY.parent.parent
    yield ok("version", f"dftracer {version} in {where}, Python {platform.python_version()}")


def _wheel() -> Iterator[Check]:
    """How the package came here, as pip notes it."""
    ours = importlib.metadata.distribution("pydftracer")
    lines = (ours.read_text("WHEEL") or "").splitlines()
    tags = ", ".join(line.partition(": ")[2] for line in lines if line.startswith("Tag: "))
    origin = json.loads(ours.read_text("direct_url.json") or "{}")
    if "dir_info" in origin:
        editable = ", editable" if origin["dir_info"].get("editable") else ""
        how = f"built from source in {origin.get('url', '?').partition('file://')[2]}{editable}"
    elif "manylinux" in tags:
        found = re.search(r"manylinux_(\d+)_(\d+)", tags.replace("manylinux2014", "manylinux_2_17"))
        since = f"glibc {found[1]}.{found[2]}" if found else "glibc"
        how = f"a portable wheel, for {since} or later"
    else:
        how = "built from source; runs where glibc is not older than on the machine that built it"
    yield ok("wheel", f"{tags or 'no tag'}: {how}")


def _package() -> Iterator[Check]:
    """Whether the files of this package are complete, and alone in their directory."""
    text = _mixture.explain()
    if text is not None:
        yield fail("package", text)
        return
    ours = importlib.metadata.distribution("pydftracer")
    other = _distribution_version("dftracer", missing=ours.version)
    if other != ours.version:
        yield fail(
            "package",
            f"dftracer {other} is installed beside pydftracer {ours.version}, and uninstalling it "
            f"would delete files of this one: {_mixture.REPAIR}",
        )
        return
    missing = [file for file in ours.files or () if not os.path.exists(str(ours.locate_file(file)))]
    if missing:
        number = counted(len(missing), "file")
        yield warn("package", f"{number} missing, such as {missing[0]}: install pydftracer again")


def _library_loads() -> Iterator[Check]:
    version = _libcore.version()
    package = importlib.metadata.version("pydftracer")
    if version != package:
        yield fail("library", f"{_libcore.LIBRARY} is {version}, the package is {package}")
    else:
        yield ok("library", f"{_libcore.LIBRARY.name} {version} loads")


def _extension() -> Iterator[Check]:
    from dftracer import _core

    yield ok("extension", f"{os.path.basename(_core.__file__ or '_core')} loads")


def _preload() -> Iterator[Check]:
    """End to end: traces an unmodified program."""
    from dftracer.trace.lines import find_traces, read_records

    library = _libcore.PRELOAD
    if not library.exists():
        yield fail("preload", f"{library} is missing: programs must start tracing themselves")
        return
    cat = shutil.which("cat")
    if cat is None:
        yield warn("preload", "no `cat` found to test with")
        return
    with _cleanup.directory("dftracer-doctor-") as directory:
        data = os.path.join(directory, "data")
        with open(data, "w", encoding="utf-8") as file:
            file.write("text\n")
        clean = {name: text for name, text in os.environ.items() if not _is_setting(name)}
        done = subprocess.run(
            [cat, data],
            env={
                **clean,
                "LD_PRELOAD": str(library),
                "DFTRACER_ENABLE": "1",
                "DFTRACER_LOG_FILE": os.path.join(directory, "t"),
                "DFTRACER_SUMMARY": "0",
            },
            capture_output=True,
            timeout=30,
            check=False,
        )
        messages = done.stderr.decode(errors="replace").strip().splitlines()
        if done.returncode != 0 or done.stdout != b"text\n":
            why = messages[0] if messages else f"status {done.returncode}"
            yield fail("preload", f"{cat} does not run under {library}: {why}")
            return
        events = [
            record
            for path in find_traces([directory])
            for record in read_records(path)
            if record.get("cat") in ("POSIX", "STDIO")
        ]
    if events:
        yield ok("preload", f"traced {cat}: {counted(len(events), 'event')}")
    else:
        why = f": {messages[0]}" if messages else ""
        yield fail("preload", f"{cat} runs under {library}, but recorded nothing{why}")


def _is_setting(name: str) -> bool:
    return name.startswith("DFTRACER_") or name == "LD_PRELOAD"


def _place() -> str:
    given = os.environ.get("DFTRACER_LOG_FILE")
    place = os.path.dirname(os.path.abspath(given)) if given else os.getcwd()
    while not os.path.isdir(place):  # it would be created
        place = os.path.dirname(place)
    return place


def _directory() -> Iterator[Check]:
    place = _place()
    try:
        _cleanup.remove(_cleanup.make_directory(".dftracer-doctor-", place))
    except OSError as error:
        yield fail("directory", f"traces cannot be written to {place}: {error.strerror}")
        return
    yield ok("directory", f"traces can be written to {place}")


def _space() -> Iterator[Check]:
    place = _place()
    free = shutil.disk_usage(place).free
    text = f"{size(free)} free in {place}; an event takes about 10 to 30 bytes"
    if free < 10_000_000:
        yield fail("space", text)
    elif free < 1_000_000_000:
        yield warn("space", text)
    else:
        yield ok("space", text)


def _proc() -> Iterator[Check]:
    """/proc shows which processes have died. Nothing here uses ptrace."""
    missing = [name for name in ("stat", "maps", "io") if not os.access(f"/proc/self/{name}", 4)]
    if missing:
        yield warn(
            "/proc",
            f"/proc/self/{missing[0]} cannot be read: child processes are not recognised as one "
            "run, and traces of crashed processes are completed late",
        )
        return
    status = read("/proc/self/status") or ""
    modes = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    filtered = modes.get("Seccomp", "0") != "0"
    note = ", seccomp filters system calls, but the checks above passed" if filtered else ""
    yield ok("/proc", f"readable{note}; ptrace is not needed")


def _settings() -> Iterator[Check]:
    given = {name: text for name, text in sorted(os.environ.items()) if _is_setting(name)}
    ours = {name: text for name, text in given.items() if name.startswith("DFTRACER_")}
    with _environment(DFTRACER_ENABLE="1"):
        messages = _libcore.complaints()
    for line in messages:
        yield warn("settings", line)
    if not ours:
        yield ok("settings", "no DFTRACER_ variable is set; dftracer run sets those it needs")
    else:
        yield ok("settings", ", ".join(f"{name}={text}" for name, text in ours.items()))
    if ours.get("DFTRACER_DISABLE_IO", "").lower() in ("1", "true", "yes", "on"):
        yield warn("settings", "DFTRACER_DISABLE_IO is set: no I/O call is recorded")
    data = ours.get("DFTRACER_DATA_DIR", "")
    for directory in data.split(":") if data not in ("", "all") else ():
        if directory and not os.path.isdir(directory):
            yield warn("settings", f"DFTRACER_DATA_DIR: no such directory: {directory}")


def _neighbours() -> Iterator[Check]:
    given = os.environ.get("LD_PRELOAD", "")
    words = [word for word in given.replace(":", " ").split() if word]
    others = [word for word in words if "libdftracer" in word and not _is_ours(word)]
    if others:
        yield fail("LD_PRELOAD", f"{others[0]} belongs to another installation: both would record")
    elif words:
        yield ok("LD_PRELOAD", f"{given}; dftracer run appends its library")


def _is_ours(path: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(os.path.dirname(path), _libcore.LIBRARY.parent)
    return False


# Extras of the package: the module that each installs, and its purpose.
_EXTRAS = {
    "view": ("viztracer", "dftracer view"),
    "report": ("duckdb", "reports and queries"),
    "dynamo": ("torch", "compiled PyTorch models"),
    "dask": ("dask", "clusters"),
}


def _extras() -> Iterator[Check]:
    there, missing = [], []
    for extra, (module, purpose) in _EXTRAS.items():
        if importlib.util.find_spec(module) is not None:
            there.append(f"{extra} ({module} {_distribution_version(module)})")
        else:
            missing.append(f"{extra} (for {purpose})")
    text = ", ".join(there) or "none installed"
    if missing:
        text += f"; not installed: {', '.join(missing)}; pip install 'pydftracer[NAME]'"
    yield ok("extras", text)


def _distribution_version(name: str, missing: str = "unknown version") -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return missing


@contextlib.contextmanager
def _environment(**changed: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    sys.stdout.flush()
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text
