"""Sockets: every call is recorded under the name of its peer, with what it moved, and nothing that
a program sees of its sockets changes. The peers are on loopback."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import intercept, traces

NAMED = re.compile(r"((tcp|udp|unix)(-\w+)?|socketpair):")


def calls(trace: traces.Trace) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    """Category, name, peer and arguments of the calls on sockets, in the order of their begin."""
    names = intercept.hashes(trace)
    found = []
    for record in sorted(trace.recorded, key=lambda one: (one["ts"], one["id"])):
        args = record["args"]
        path = names[args["fhash"]] if "fhash" in args else None
        if record["cat"] == "NET" or (path is not None and NAMED.match(path)):
            found.append((record["cat"], record["name"], path, args))
    return found


def recorded(run: intercept.Run) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    return calls(run.one.trace)


def traced(
    what: str, place: Path, mode: str, flags: tuple[str, ...] = (), **more: Any
) -> intercept.Run:
    return intercept.traced(
        intercept.program("cov_net", mode, *intercept.ODD, *flags),
        what,
        place,
        mode=mode,
        cwd=place,
        **more,
    )


def told(run: intercept.Run) -> list[tuple[str, str, int]]:
    """What the program says that it did: function, name of the socket, result."""
    lines = [line.split() for line in run.result.stdout.splitlines()]
    return [(words[0], words[1], int(words[2])) for words in lines if len(words) == 3]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "p"
    made.mkdir()
    return made


FORTIFY = ("-O2", "-D_FORTIFY_SOURCE=2", "-fbuiltin")


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("flags", [(), FORTIFY])
def test_every_call_of_a_stream(place: Path, mode: str, flags: tuple[str, ...]) -> None:
    run = traced("streams", place, mode, flags)
    every = recorded(run)
    expected = told(run)
    shown = Counter((name, path, args["ret"]) for _, name, path, args in every if "ret" in args)
    for step in expected:
        assert shown[step] >= 1, step
    assert len([one for one in expected if one[0] == "connect"]) in (2, 4)  # with and without IPv6
    # Calls of POSIX stay in their category.
    assert {cat for cat, name, _, _ in every if name in ("read", "write", "close", "sendfile")} == {
        "POSIX"
    }
    assert {cat for cat, name, _, _ in every if name in ("send", "recv", "connect")} == {"NET"}
    later = [args for _, name, _, args in every if name == "connect" and args["ret"] == -1]
    assert {args["errno"] for args in later} <= {115}
    (peek,) = {args["flags"] for _, name, _, args in every if name == "recv" and args["flags"] == 2}
    assert peek == 2
    sums = [args["ret_len"] for _, name, _, args in every if name == "sendmmsg"]
    assert set(sums) == {84}
    # Both ends of a connection know its port.
    locals_ = [args["local_port"] for _, name, _, args in every if name == "connect"]
    peers = [args["peer_port"] for _, name, _, args in every if name.startswith("accept")]
    assert locals_ == peers


@intercept.IN_EACH_MODE
def test_datagrams_are_named_by_their_peers(place: Path, mode: str) -> None:
    run = traced("datagrams", place, mode)
    shown = Counter((name, path, args.get("ret")) for _, name, path, args in recorded(run))
    for step in told(run):
        assert shown[step] >= 1, step
    (received,) = [args for _, name, _, args in recorded(run) if name == "recvmmsg"]
    assert received["ret_len"] == 22


@intercept.IN_EACH_MODE
def test_local_sockets(place: Path, mode: str) -> None:
    run = traced("locals", place, mode)
    path = f"{place}/s\x01\udcff"
    numbers = [line.split()[1:] for line in run.result.stdout.splitlines()]
    wanted = []
    for at, (client, taken) in zip(("", "@"), numbers):
        wanted += [
            ("connect", f"unix:{at}{path}#{client}"),
            ("accept", f"unix-from:{at}{path}#{taken}"),
            ("send", f"unix:{at}{path}#{client}"),
            ("recv", f"unix-from:{at}{path}#{taken}"),
            ("listen", f"unix-listen:{at}{path}"),
        ]
    shown = {(name, path) for _, name, path, _ in recorded(run)}
    assert set(wanted) <= shown
    pair = [path for _, name, path, _ in recorded(run) if (path or "").startswith("socketpair:[")]
    assert len(set(pair)) == 2


@intercept.IN_EACH_MODE
def test_names_that_a_program_looks_up(place: Path, mode: str) -> None:
    run = traced("lookups", place, mode)
    every = recorded(run)
    asked = [(name, args.get("name"), args.get("ret")) for _, name, _, args in every]
    assert ("getaddrinfo", "localhost", 0) in asked
    assert [one for one in asked if one[0] == "getaddrinfo" and one[2] != 0]
    assert ("getnameinfo", "127.0.0.1", 0) in asked
    found = {args["name"] for _, name, _, args in every if name.startswith("gethostbyname")}
    assert found == {"localhost"}
    assert {args["status"] for _, name, _, args in every if name.startswith("gethostbyname")} == {0}
    assert {"gethostbyaddr", "gethostbyaddr_r"} <= {name for _, name, _, _ in every}
    (step,) = told(run)
    assert step in [(name, path, args.get("ret")) for _, name, path, args in every]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("off", [{}, {"DFTRACER_DISABLE_NET": "1"}, {"DFTRACER_DATA_DIR": "/d"}])
def test_what_the_kernel_refuses_is_refused_alike(
    place: Path, mode: str, off: dict[str, str]
) -> None:
    """Bad pointers, descriptors that are closed or no sockets: the program itself checks."""
    run = traced("refusals", place, mode, env=off)
    every = calls(run.one.trace) if run.processes else []
    if off:
        assert not [one for one in every if one[0] == "NET"]
        return
    (refused,) = [args for _, name, path, args in every if (path or "").startswith("tcp://127")]
    assert refused["errno"] == 111
    assert "local_port" not in refused


def test_switched_off_sockets_still_have_their_names(place: Path) -> None:
    """Calls of POSIX on sockets are recorded, under the peer that the kernel tells."""
    run = traced("streams", place, intercept.PRELOAD, env={"DFTRACER_DISABLE_NET": "1"})
    every = recorded(run)
    assert {cat for cat, *_ in every} == {"POSIX"}
    wrote = [path for _, name, path, _ in every if name == "write"]
    assert wrote
    assert all(re.match(r"tcp(-from)?://(127\.0\.0\.1|\[::1\])", path or "") for path in wrote)


def test_counts_and_bytes_are_those_of_strace(place: Path) -> None:
    program = intercept.program("cov_net", intercept.PRELOAD, *intercept.ODD)
    names = ("sendto", "recvfrom", "sendmsg", "recvmsg", "connect", "accept", "accept4", "shutdown")
    log = place.with_name("strace")
    witnessed: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for name, rest in intercept.strace(program, "streams", place, cwd=place, calls=names, log=log):
        witnessed[name] += 1
        result = re.search(r"= (-?\d+)[^=]*$", rest)
        assert result is not None
        if "MSG_PEEK" not in rest:
            moved[name] += max(int(result[1]), 0)
    run = traced("streams", place, intercept.PRELOAD)
    # There are no system calls of these names.
    real = {"send": "sendto", "recv": "recvfrom"}
    seen: Counter[str] = Counter()
    bytes_: Counter[str] = Counter()
    for _, name, _, args in recorded(run):
        if real.get(name, name) in names:
            seen[real.get(name, name)] += 1
            if args.get("flags", 0) & 2 == 0:
                bytes_[real.get(name, name)] += max(args["ret"], 0)
    assert seen == witnessed
    for name in ("sendto", "recvfrom", "sendmsg", "recvmsg"):
        assert bytes_[name] == moved[name], name


SHARED = """
import os, socket, threading
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
client = socket.create_connection(("127.0.0.1", port))
other, _ = server.accept()
if (child := os.fork()) == 0:
    other.sendall(b"c" * 10)
    os._exit(0)
os.waitpid(child, 0)
assert client.recv(100) == b"c" * 10
# Threads that accept.
def serve():
    connection, _ = server.accept()
    with connection:
        connection.sendall(connection.recv(100))
threads = [threading.Thread(target=serve) for _ in range(4)]
for thread in threads: thread.start()
for number in range(4):
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"p" * (number + 1))
        assert len(one.recv(100)) == number + 1
for thread in threads: thread.join()
# A descriptor that arrives in a message.
a, b = socket.socketpair()
socket.send_fds(a, [b"x"], [client.fileno()])
_, (passed,), _, _ = socket.recv_fds(b, 10, 1)
os.write(passed, b"through")
assert other.recv(100) == b"through"
print(port)
"""


def test_sockets_of_children_and_threads_and_in_messages(place: Path) -> None:
    run = intercept.traced(sys.executable, "-c", SHARED, cwd=place)
    port = int(run.result.stdout)
    parent, child = sorted(run.processes, key=lambda one: len(one.events), reverse=True)
    sent = [(path, args["ret"]) for _, name, path, args in calls(child.trace) if name == "send"]
    assert len(sent) == 1
    assert re.fullmatch(rf"tcp-from://127\.0\.0\.1->:{port}#\d+", sent[0][0] or "")
    every = calls(parent.trace)
    accepts = [path for _, name, path, args in every if name.startswith("accept")]
    assert len(accepts) == 5
    echoed = sum(
        args["ret"]
        for _, name, path, args in every
        if name == "send" and (path or "").startswith("tcp-from://")
    )
    assert echoed == 1 + 2 + 3 + 4
    (through,) = [path for _, name, path, args in every if name == "write" and args["ret"] == 7]
    assert re.fullmatch(rf"tcp://127\.0\.0\.1:{port}#\d+", through or "")


MANY = """
import socket
server = socket.create_server(("127.0.0.1", 0), backlog=16)
for number in range(300):
    one = socket.create_connection(server.getsockname())
    two, _ = server.accept()
    one.sendall(b"1"); two.recv(1)
    one.close(); two.close()
"""


def test_many_connections_to_one_peer_have_few_names(place: Path) -> None:
    """The number in a name is that of the descriptor, which the next connection gets again."""
    run = intercept.traced(sys.executable, "-c", MANY, cwd=place)
    every = recorded(run)
    assert len([1 for _, name, _, _ in every if name == "connect"]) == 300
    assert len({path for _, name, path, _ in every if name == "connect"}) <= 3
    assert len({path for _, name, path, _ in every if name.startswith("accept")}) <= 3


INTERRUPTED = """
import ctypes, os, signal, socket
a, b = socket.socketpair()
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.05)
buffer = ctypes.create_string_buffer(8)
assert libc.recv(a.fileno(), buffer, 8, 0) == -1
assert ctypes.get_errno() == 4, ctypes.get_errno()
"""


def test_a_receive_that_a_signal_interrupts(place: Path) -> None:
    run = intercept.traced(sys.executable, "-c", INTERRUPTED, cwd=place)
    assert [args["errno"] for _, name, _, args in recorded(run) if name == "recv"] == [4]


PEERS = """
import socket
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(17000):
    udp.sendto(b"12345", (f"127.0.{number >> 8}.{number & 255}", 9))
with open("after", "w") as file:
    file.write("1")
"""


def test_more_peers_than_are_kept_apart(place: Path) -> None:
    """The table of files keeps its room for files."""
    run = intercept.traced(sys.executable, "-c", PEERS, cwd=place)
    names = Counter(path for _, name, path, _ in recorded(run) if name == "sendto")
    assert sum(names.values()) == 17000
    numbered = [name for name in names if re.fullmatch(r"udp://127\.0\.\d+\.\d+:9#\d+", name or "")]
    alone = [name for name in names if re.fullmatch(r"udp://127\.0\.\d+\.\d+:9", name or "")]
    assert 8000 < len(numbered) <= 8192
    assert 8000 < len(alone) <= 8192
    assert names["udp:(more peers than are kept apart)"] == 17000 - len(numbered) - len(alone)
    assert [event for event in run.one.below(place) if event.name == "write"]


PING = """
import http.client, http.server, socket, threading
ROUNDS = 200
def serve(server):
    connection, _ = server.accept()
    with connection:
        while (asked := connection.recv(100)):
            connection.sendall(b"+PONG\\r\\n")
for kind in (0, 1):
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(server,))
    thread.start()
    with socket.create_connection(server.getsockname()) as client:
        for _ in range(ROUNDS):
            client.sendall(b"*1\\r\\n$4\\r\\nPING\\r\\n")
            assert client.recv(100) == b"+PONG\\r\\n"
    thread.join()
    print(server.getsockname()[1])
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 12345)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for _ in range(5):
    client = http.client.HTTPConnection(*server.server_address)
    client.request("GET", "/")
    assert len(client.getresponse().read()) == 12345
    client.close()
server.shutdown()
print(server.server_address[1])
"""


def test_a_report_of_programs_that_talk(place: Path) -> None:
    """Bytes and connections are those that the programs exchanged, at both ends."""
    from dftracer import reports

    run = intercept.traced(sys.executable, "-c", PING, cwd=place)
    first, second, web = (int(line) for line in run.result.stdout.split())
    rows = {row["peer"]: row for row in reports.load(run.directory).connections}
    for port in (first, second):
        client = rows[f"tcp://127.0.0.1:{port}"]
        server = rows[f"tcp-from://127.0.0.1->:{port}"]
        assert (client["connections"], server["connections"]) == (1, 1)
        assert (client["sent_bytes"], client["received_bytes"]) == (200 * 14, 200 * 7)
        assert (server["sent_bytes"], server["received_bytes"]) == (200 * 7, 200 * 14)
        assert (client["sends"], client["receives"]) == (200, 200)
        assert client["first_byte_max_ns"] > 0
        assert client["reach"] == "loopback"
    client = rows[f"tcp://127.0.0.1:{web}"]
    server = rows[f"tcp-from://127.0.0.1->:{web}"]
    assert (client["connections"], server["connections"]) == (5, 5)
    assert client["received_bytes"] == server["sent_bytes"] > 5 * 12345
    assert client["sent_bytes"] == server["received_bytes"] > 0
    assert (client["errors"], server["errors"]) == (0, 0)
