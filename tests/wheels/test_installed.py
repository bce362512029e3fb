"""What a user does first with an installed wheel."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from conftest import Installed

# PyTorch has builds for the Pythons between these.
WITHOUT_TORCH = ("3.9", "3.15")

ANNOTATED = """
import multiprocessing, sys
from dftracer.python import ai, dft_fn, dftracer

log = dftracer.initialize_log(sys.argv[1], data_dir="all", process_id=-1)
function = dft_fn("app")

@function.log
def work(n):
    with open(f"data-{n}", "wb") as file:
        file.write(b"x" * 4096)
    with open(f"data-{n}", "rb") as file:
        return len(file.read())

@ai.compute.forward
def forward():
    return 1

if __name__ == "__main__":
    for context in ("fork", "spawn"):
        with multiprocessing.get_context(context).Pool(2) as pool:
            assert pool.map(work, range(6)) == [4096] * 6
            pool.close()
            pool.join()
    for _ in range(10):
        forward()
    log.finalize()
"""

TRAINING = """
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self):
        for n in range(16):
            with open(f"sample-{n}", "wb") as file:
                file.write(bytes([n]) * 8192)
    def __len__(self):
        return 16
    def __getitem__(self, n):
        with open(f"sample-{n}", "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).float()

if __name__ == "__main__":
    model = torch.nn.Linear(8192, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for batch in DataLoader(Files(), batch_size=4, num_workers=2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def events(directory: Path) -> list[dict]:
    found = []
    for path in directory.rglob("*.pfw*"):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in text.decode().splitlines():
            line = line.strip().rstrip(",")
            if line.startswith("{"):
                found.append(json.loads(line))
    return found


def test_no_compiler_is_there(installed: Installed, tmp_path: Path) -> None:
    names = "'cc gcc c++ g++ clang cmake ninja'.split()"
    ask = f"import shutil; print([n for n in {names} if shutil.which(n)])"
    assert installed.run(installed.python, "-c", ask, cwd=tmp_path).stdout.strip() == "[]"


def test_a_foreign_program(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"y" * 100_000)
    output = installed.dftracer(
        "run", "-o", "trace", "--", "dd", "if=input", "of=copy", "bs=1000", cwd=tmp_path
    )
    assert "1 process" in output
    assert (tmp_path / "copy").read_bytes() == b"y" * 100_000
    calls = Counter(event["name"] for event in events(tmp_path / "trace"))
    assert calls["read"] >= 100
    assert calls["write"] >= 100


def test_annotations_in_forked_and_spawned_workers(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "annotated.py").write_text(ANNOTATED)
    installed.run(
        *(installed.python, "annotated.py", tmp_path / "trace" / "t"),
        cwd=tmp_path,
        DFTRACER_ENABLE="1",
        DFTRACER_INC_METADATA="1",
    )
    found = events(tmp_path / "trace")
    calls = Counter(event["name"] for event in found)
    assert calls["work"] == 12
    assert calls["forward"] == 10
    assert len({event["pid"] for event in found if event["name"] == "work"}) >= 2
    written = [event for event in found if event["name"] == "write"]
    assert sum(event["args"].get("ret", 0) == 4096 for event in written) == 12


def test_workers_of_a_dataloader(
    installed: Installed, tmp_path: Path, missing: Callable[[str], NoReturn]
) -> None:
    torch = os.environ.get("DFTRACER_WHEELS_TORCH", "torch==2.13.0")
    keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    pip = (installed.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", torch)
    done = installed.run(*pip, cwd=tmp_path, check=False, **keep)
    if done.returncode != 0:
        assert "No matching distribution" in done.stderr, done.stderr
        without = pytest.skip if installed.version in WITHOUT_TORCH else missing
        without(f"{torch} has no build for Python {installed.version}")
    (tmp_path / "training.py").write_text(TRAINING)
    installed.dftracer("run", "--torch", "-o", "trace", "--", "python", "training.py", cwd=tmp_path)
    found = events(tmp_path / "trace")
    items = [event for event in found if (event["cat"], event["name"]) == ("data", "item")]
    assert len(items) == 16
    assert len({event["pid"] for event in items}) == 2
    assert Counter(event["name"] for event in found)["forward"] == 4
    assert "data" in installed.dftracer("report", "trace", "-o", "page.html", cwd=tmp_path)


def test_report_and_doctor(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"z" * 50_000)
    installed.dftracer("run", "-o", "trace", "--", "cat", "input", cwd=tmp_path)
    assert "input" in installed.dftracer("report", "trace", "-o", "page.html", cwd=tmp_path)
    assert (tmp_path / "page.html").stat().st_size > 10_000
    doctor = installed.dftracer("doctor", cwd=tmp_path)
    assert "traced " in doctor
    assert "FAIL" not in doctor.upper()


@pytest.mark.parametrize(("writer", "reader"), [("3.9", "3.13"), ("3.13", "3.9")])
def test_one_python_reads_what_another_wrote(
    install: Callable[[str], Installed], writer: str, reader: str, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"w" * 10_000)
    install(writer).dftracer(
        "run", "-o", "trace", "--", "dd", "if=input", "of=copy", "bs=100", cwd=tmp_path
    )
    there = [install(v).dftracer("stats", "trace", cwd=tmp_path) for v in (writer, reader)]
    assert there[0] == there[1]
    assert "read" in there[0]
