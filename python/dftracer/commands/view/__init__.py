"""`dftracer view TRACE...`: the Perfetto UI, offline, with the traces loaded."""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dftracer import _format
from dftracer._format import counted, duration
from dftracer._names import printable, shorten
from dftracer.commands._cli import reading
from dftracer.commands._cli.options import add_no_recover, seconds, size
from dftracer.commands._cli.recovery import recover_directory
from dftracer.commands._cli.terminal import styled
from dftracer.commands.view._stream import Choice, Part, count, look, stream
from dftracer.errors import DFTracerError
from dftracer.trace.files import find_traces, without_copies
from dftracer.trace.stream import Damage

EXAMPLES = """\
  dftracer view traces                       all files of a directory, on one timeline
  dftracer view a.pfw.gz b.pfw.gz            several files
  dftracer view traces --from 10 --to 12.5   from second 10 to second 12.5
  dftracer view traces --pid 4711            one process
  dftracer view traces --no-browser --port 8000    for a browser on another machine,
                                                   through ssh -L 8000:127.0.0.1:8000 HOST
"""

# Bytes of JSON text that the UI can load: 924 MB, 4.3 million events, took 1.7 GB of memory, of the
# 4 GB it can have.
LIMIT = 1_000_000_000
_UNFOLD_UP_TO = 12  # processes: with more, expanded threads give no overview
_LINGER = 2.0  # seconds without a request after which the page is complete


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_paths(parser)
    reading.add_run(parser)
    parser.add_argument("--from", dest="begin", metavar="T", type=seconds, help=_TIME_HELP)
    parser.add_argument(
        "--to", dest="end", metavar="T", type=seconds, help="leave out events that begin after T"
    )
    parser.add_argument(
        "--pid",
        metavar="N",
        type=int,
        action="append",
        help="show only this process; may be repeated",
    )
    parser.add_argument("--port", type=_port, default=0, help="TCP port (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="only print the URL")
    parser.add_argument(
        "--once", action="store_true", help="exit when the page has loaded the trace"
    )
    parser.add_argument(
        "--limit",
        metavar="SIZE",
        type=size,
        default=LIMIT,
        help="refuse more JSON text than this (default 1GB); the UI may crash on more",
    )
    add_no_recover(parser)


_TIME_HELP = "leave out events that end before T: seconds after the first event, or 500ms, 2m"


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from dftracer.commands.view._server import find_ui

    reading.settle_run(args)
    parts = _find(args.paths, recover=not args.no_recover, run=args.run)
    ui = find_ui()
    if ui is None:
        raise DFTracerError(
            "the Perfetto UI is not installed: pip install 'pydftracer[view]'; or open "
            f"{printable(str(parts[0].path))} at https://ui.perfetto.dev",
            1,
        )
    choice = _choose(args)
    whole = sum(part.size for part in parts)
    # Of a part, the size is known only after reading.
    if not choice and whole > args.limit:
        raise DFTracerError(_too_large(parts, choice, whole, args.limit))
    found = count([part.path for part in parts], choice, args.limit)
    if found["too_large"]:
        raise DFTracerError(_too_large(parts, choice, max(whole, args.limit), args.limit))
    if choice.pids is not None and not choice.pids & set(found["pids"]):
        some = ", ".join(map(str, found["pids"][:10]))
        raise DFTracerError(f"no trace of process {min(choice.pids)}; the traces are of {some}")
    if choice and found["events"] == 0:
        raise DFTracerError("the selected part of the trace is empty", 1)
    reading.report_damage(Damage.of(found))
    return _serve(args, ui, parts, choice, found)


def _find(paths: Sequence[str], *, recover: bool, run: str | None = None) -> list[Part]:
    for path in sorted({path if os.path.isdir(path) else os.path.dirname(path) for path in paths}):
        directory = path or "."
        if recover and os.path.isdir(directory) and os.access(directory, os.W_OK):
            recover_directory(directory)
    traces = find_traces(paths)
    if not traces:
        raise DFTracerError(f"no trace files (.pfw, .pfw.gz) in {', '.join(paths)}")
    reading.need_traces(traces)
    traces = without_copies(reading.of_run(traces, run))
    reading.report_runs(traces)
    return [look(path) for path in traces]


def _choose(args: argparse.Namespace) -> Choice:
    if args.begin is not None and args.end is not None and args.end <= args.begin:
        raise DFTracerError("--to must be later than --from")
    return Choice(args.begin, args.end, None if args.pid is None else frozenset(args.pid))


def _too_large(parts: Sequence[Part], choice: Choice, size: int, limit: int) -> str:
    more = "" if size > limit else "more than "
    lines = [
        f"{more}{_format.size(size)} of text, but the UI can load about {_format.size(limit)}; "
        "select a part:"
    ]
    if choice:
        lines.append("  a shorter time or fewer processes; or raise --limit at your own risk")
        return "\n".join(lines)
    times = [(part.first, part.last) for part in parts if part.first and part.last]
    if times and size > limit:
        passed = max(last for _, last in times) - min(first for first, _ in times)
        share = passed * limit / size * 0.9
        if share > 0:
            lines.append(
                f"  --to {share:.3g}  about the first {limit / size * 0.9:.0%} of "
                f"{duration(1e9 * passed)}; or any --from and --to"
            )
    for part in sorted(parts, key=lambda part: -part.size)[:8] if len(parts) > 1 else ():
        label = shorten(part.label, 60, keep_start=True)
        lines.append(f"  --pid {part.pid:<8} {_format.size(part.size):>8}  {label}".rstrip())
    if len(parts) > 8:
        lines.append(f"  … and {counted(len(parts) - 8, 'more file')}")
    lines.append("  or raise --limit at your own risk")
    return "\n".join(lines)


def _serve(
    args: argparse.Namespace, ui: Path, parts: list[Part], choice: Choice, found: dict[str, Any]
) -> int:
    from dftracer.commands.view._server import Viewer

    def trace() -> Iterator[bytes]:
        return stream([part.path for part in parts], choice, args.limit)

    try:
        server = Viewer(
            ui,
            _title(args.paths),
            trace,
            port=args.port,
            unfold=len(parts) <= _UNFOLD_UP_TO,
        )
    except OSError as error:
        raise DFTracerError(f"port {args.port}: {error.strerror}") from None
    about = f"{counted(len(parts), 'trace')}, {_format.size(found['bytes'])} of text"
    print(f"{about}: {styled(server.address, 'bold')}")
    if os.environ.get("SSH_CONNECTION") or args.no_browser:
        port = server.server_port
        print(f"from another machine: ssh -L {port}:127.0.0.1:{port} {os.uname().nodename}")
    print(
        "Ctrl-C stops the server" if not args.once else "exits when the page has loaded the trace",
        flush=True,
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    door = None if args.no_browser else _open_browser(server.address)
    try:
        while not (args.once and server.sent.is_set()) or (
            time.monotonic() < server.last_request + _LINGER
        ):
            if door is not None and server.opened.is_set():
                door.unlink(missing_ok=True)
                door = None
            time.sleep(0.1)
    except KeyboardInterrupt:
        print()
    finally:
        if door is not None:
            door.unlink(missing_ok=True)
        server.shutdown()
        server.server_close()
    return 0


def _title(paths: Sequence[str]) -> str:
    name = os.path.basename(os.path.normpath(os.path.abspath(paths[0])))
    return f"{name} and {len(paths) - 1} more" if len(paths) > 1 else name


def _open_browser(address: str) -> Path | None:
    """Opens a graphical browser; one in this terminal could not show the UI. Returns the file that
    it was given, which must be removed once it was read."""
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        print("no display: open the URL in a browser")
        return None
    import webbrowser

    door = _make_door(address)
    if not webbrowser.open(door.as_uri()):
        print("no browser found: open the URL in one")
    return door


def _make_door(address: str) -> Path:
    """A page that redirects to the URL, readable by its owner only. Every user can read the
    browser's arguments (ps), and the URL is the key to the trace."""
    import tempfile

    home = os.path.expanduser("~")
    # Sandboxed browsers (snap) can read the home directory but not /tmp.
    directory = home if os.path.isdir(home) and os.access(home, os.W_OK) else None
    handle, name = tempfile.mkstemp(".html", "dftracer-view-", directory)  # mode 0600
    with open(handle, "w", encoding="ascii") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>dftracer view</title>'
            f'<meta http-equiv="refresh" content="0; url={address}">\n'
        )
    return Path(name)
