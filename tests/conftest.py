"""Fixtures of the Python tests. `support` is importable from every test below this directory."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# The same examples in every run, so that a run says something about the change and not about luck.
# HYPOTHESIS_PROFILE=search looks for others, and for more of them.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# The parent may ignore signals, as nohup and a shell's background jobs do. Programs would inherit
# that, and behave otherwise than these tests expect.
if threading.current_thread() is threading.main_thread():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            meant = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, meant)

if TYPE_CHECKING:
    from support.perfetto_importer import Importer


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of long_tests.txt. Of a test with `long(keep=n)`, the first n cases are not
    long."""
    cases: Counter[str] = Counter()
    lines = Path(__file__).with_name("long_tests.txt").read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if not line.startswith("#")}
    for item in items:
        if item.nodeid in listed or item.nodeid.partition("[")[0] in listed:
            item.add_marker(pytest.mark.long)
            continue
        mark = item.get_closest_marker("long")
        keep = mark.kwargs.get("keep", 0) if mark else 0
        test = item.nodeid.partition("[")[0]
        if cases[test] < keep:
            item.own_markers = [other for other in item.own_markers if other.name != "long"]
        cases[test] += 1


@pytest.fixture(scope="session")
def perfetto() -> Iterator[Importer]:
    """The real Perfetto importer; one engine for each worker."""
    if shutil.which("node") is None:
        pytest.fail("node is not installed; the Perfetto importer runs in it (apt install nodejs)")
    from support.perfetto_importer import Importer

    with Importer() as importer:
        yield importer
