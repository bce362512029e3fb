"""Names, keys and values drawn at random: every line is JSON, and every value is had back."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.limits import HANG
from support.python_face import same
from support.run import environment
from support.traces import Record, decode, parse_line

SERVER = """\
import pickle, sys
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer
log = dftracer.initialize_log("t.pfw")
while True:
    try: name, category, arguments = pickle.load(sys.stdin.buffer)
    except EOFError: break
    with DFTracerAI(cat=category, name=name or "unnamed", args=arguments): pass
    with dft_fn(category, name=name or "unnamed") as block: block.update(args=arguments)
    log.log_event(name, category, log.get_time(), 0, {k: (0, v) for k, v in arguments.items()})
    log.log_metadata_event(name, category)
    log.flush()
    sys.stdout.write("done\\n"); sys.stdout.flush()
"""


class Server:
    """A traced process that records what it is told, and shows the new lines of its trace."""

    def __init__(self, where: Path) -> None:
        (where / "program.py").write_text(SERVER)
        self._file = where / "t.pfw"
        self._at = 0
        self._process = subprocess.Popen(
            [sys.executable, "program.py"],
            cwd=where,
            env=environment({"DFTRACER_TRACE_COMPRESSION": "0"}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def record(self, *case: Any) -> list[Record]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(case, self._process.stdin)
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"done\n"
        with self._file.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        self._at += len(text)
        assert text.endswith(b"\n")
        lines = [line for line in text.split(b"\n")[:-1] if line != b"["]
        return list(map(parse_line, lines))

    def close(self) -> None:
        self._process.communicate(timeout=HANG)
        assert self._process.returncode == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"))
    made.record("warm up", "c", {})
    yield made
    made.close()


# Characters that something on the way may take for its own: quotes, controls, surrogates, and the
# private ones that stand for bytes.
SPECIAL = st.sampled_from(
    '"\\/\0\n\x1f\x7f\x80\ud800\udc80\udcff\uef80\uefff\ufffe\uffff\U0001f600'
)
# A list, because text() would draw from the union of both, in which the few are lost.
CHARACTER = st.one_of(SPECIAL, st.characters())
TEXT = st.lists(CHARACTER, max_size=8).map("".join)
SOME_TEXT = st.lists(CHARACTER, min_size=1, max_size=8).map("".join)
KEY = st.one_of(
    TEXT, st.sampled_from(["hhash", "p_idx", "level", "level_", "name", "step", "args"])
)
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**66), 2**66),
    st.floats(),
    TEXT,
    st.binary(max_size=12),
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner, inner),
        st.dictionaries(TEXT, inner, max_size=4),
    ),
    max_leaves=8,
)


def raw(text: str | bytes) -> bytes:
    """The bytes of a text, as programs that deal in bytes have them."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def expected(value: Any, nested: bool = False) -> Any:
    """A value as the trace has it, texts as bytes."""
    if isinstance(value, bool):
        return value if nested else int(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value).encode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, bytes)):
        return raw(value)
    if isinstance(value, (list, tuple)):
        return [expected(item, True) for item in value]
    if isinstance(value, dict):
        return {raw(key): expected(item, True) for key, item in value.items()}
    return value


def had_back(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()  # a lone surrogate is JSON by its grammar, and many readers refuse it
        return decode(value)
    if isinstance(value, list):
        return [had_back(item) for item in value]
    if isinstance(value, dict):
        return {decode(key): had_back(item) for key, item in value.items()}
    return value


RESERVED = ("hhash", "p_idx", "level")


def check_event(event: Record, name: str, category: str, arguments: dict[str, Any]) -> None:
    assert decode(event["name"]) == (raw(name) or b"unnamed")
    assert decode(event["cat"]) == raw(category)
    args = list(event["args"].items())
    assert [key for key, _ in args[:3]] == list(RESERVED)
    had = {decode(key): had_back(value) for key, value in args[3:]}
    wanted: dict[bytes, Any] = {}
    taken = {raw(key) for key in arguments}
    for key, value in arguments.items():
        encoded = raw(key) or b"unnamed"
        if key in RESERVED:
            encoded += b"_"
            while encoded in taken:
                encoded += b"_"
        wanted[encoded] = expected(value)
    assert had.keys() == wanted.keys()
    for key, value in wanted.items():
        assert same(had[key], value), (key, had[key], value)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    name=TEXT,
    category=SOME_TEXT,
    arguments=st.dictionaries(KEY, VALUE, max_size=4).filter(
        # The empty key is called "unnamed".
        lambda found: not ("" in found and "unnamed" in found)
    ),
)
@example("", "c", {"": "", "level": 1, "level_": 2})
@example(
    "\ud800\udc80", "\uef80", {"\uef80": ["\uef80", {"\uefff": "\udcff"}], "k": (1, b"\xff", "")}
)
def test_every_line_is_json_and_every_value_is_had_back(
    server: Server, name: str, category: str, arguments: dict[str, Any]
) -> None:
    *events, mark = server.record(name, category, arguments)
    assert len(events) == 3
    for event in events:
        check_event(event, name, category, arguments)
    assert decode(mark["args"]["name"]) == (raw(name) or b"unnamed")
    assert decode(mark["args"]["value"]) == raw(category)
