"""Programs that start others. They exec the emulator itself, so no binfmt_misc is needed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support import intercept
from support.machines import AARCH64, EMULATED, PROGRAMS


@pytest.mark.parametrize("how", ["fork", "vfork", "posix_spawn"])
def test_started_program(tmp_path: Path, how: str) -> None:
    out = tmp_path / "traces"
    starter = AARCH64.program(PROGRAMS / "starter.c")
    writer = AARCH64.program(PROGRAMS / "writer.c")
    words = (*EMULATED, writer, tmp_path / "data", 100)
    AARCH64.traced(out, starter, how, *words)
    every = [process.counts() for process in intercept.read(out, ended=False, open_parents=True)]
    # Either image of the child may have the file: qemu hides that they are one process.
    calls = sum(every, Counter())
    assert calls[how] == 1
    assert calls["waitpid"] == 1
    assert calls["pwrite"] + calls["pwrite64"] == 100


def test_exit_status_of_a_vforked_child(tmp_path: Path) -> None:
    starter = AARCH64.program(PROGRAMS / "starter.c")
    AARCH64.traced(tmp_path / "traces", starter, "vfork", "/no/such/program", expect=102)
