"""Programs that use stores run in processes of their own, against servers of this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.stores import servers
from tests.support import traces
from tests.support.command import dftracer

PROGRAMS = Path(__file__).resolve().parent / "programs"
KEY = "train/shard-0.bin"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    pytest.importorskip("moto")
    with servers.s3() as address:
        yield address


@pytest.fixture
def s3(s3_server: str) -> str:
    """A server with one bucket and one object."""
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=s3_server,
        region_name="us-east-1",
        aws_access_key_id="another",
        aws_secret_access_key="another",
    )
    client.create_bucket(Bucket="data")
    client.put_object(Bucket="data", Key=KEY, Body=servers.CONTENT)
    client.delete_object(Bucket="data", Key="up.bin")
    return s3_server


class Found:
    """The events of the category STORE of a run."""

    def __init__(self, directory: Path, stdout: str) -> None:
        self.stdout = stdout
        self.directory = directory
        # A body that is never read to its end closes after what was around it.
        self.traces = traces.read_directory(directory, open_parents=True)
        every = [event for trace in self.traces for event in trace.events]
        self.events = sorted((e for e in every if e["cat"] == "STORE"), key=lambda e: e["ts"])
        self.requests = [e for e in self.events if "layer" not in e["args"]]

    def layer(self, name: str) -> list[traces.Record]:
        return [event for event in self.events if event["args"].get("layer") == name]

    def told(self, *keys: str) -> list[tuple[Any, ...]]:
        """Operation and arguments of each request."""
        return [(e["name"], *(e["args"].get(key) for key in keys)) for e in self.requests]


Run = Callable[..., Found]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def go(program: str, *words: str | Path, options: tuple[str, ...] = ()) -> Found:
        place = tmp_path / "traces"
        done = dftracer(
            *("run", "-q", "-o", place, *options),
            *("--", sys.executable, PROGRAMS / program, *words),
            cwd=tmp_path,
        )
        assert "dftracer:" not in done.stderr, done.stderr
        return Found(place, done.stdout)

    return go
