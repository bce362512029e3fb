"""DLIO, from the package index, on a small workload: it runs as without tracing, and its own events
and its workers' reads are in the trace.

DLIO takes whatever it finds as `dftracer.logger`, and stand-ins of its own if that import fails.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import traces
from support.foreign import execute
from support.run import environment

from dftracer import reports

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / "build" / "dlio-venv"
STANDINS = Path(__file__).parent / "standins"

FILES = 8
BATCH = 2
EPOCHS = 2
WORKERS = 2
STEPS = FILES // BATCH * EPOCHS
RECORD = 65536
WORKLOAD = {
    "workflow.generate_data": True,
    "workflow.train": True,
    "workflow.checkpoint": True,
    "dataset.data_folder": "data",
    "dataset.num_files_train": FILES,
    "dataset.record_length": RECORD,
    "dataset.record_length_stdev": 0,
    "dataset.record_length_resize": 4096,
    "reader.read_threads": WORKERS,
    "reader.batch_size": BATCH,
    "train.epochs": EPOCHS,
    "train.computation_time": 0.01,
    "checkpoint.checkpoint_folder": "checkpoints",
    "checkpoint.checkpoint_after_epoch": 1,
    "checkpoint.epochs_between_checkpoints": 1,
    "checkpoint.model_size": 10000,
    "output.folder": "out",
}
# Of the process that trains: how often each of DLIO's own functions runs in such a workload.
TRAINED = {
    ("dlio_benchmark", "DLIOBenchmark.__init__"): 1,
    ("dlio_benchmark", "DLIOBenchmark.initialize"): 1,
    ("dlio_benchmark", "DLIOBenchmark.run"): 1,
    ("dlio_benchmark", "DLIOBenchmark._train"): EPOCHS,
    ("dlio_benchmark", "loop.iter"): STEPS,
    ("dlio_benchmark", "loop.yield"): STEPS,
    ("ai_framework", "TorchFramework.compute"): STEPS,
    ("data_loader", "TorchDataset.__init__"): 1,
    ("data_loader", "TorchDataLoader.next"): EPOCHS,
    ("generator", "NPZGenerator.generate"): 1,
    ("generator", "loop.iter"): FILES,
    ("checkpoint", "PyTorchCheckpointing.checkpoint"): EPOCHS,
}
# Of all workers together.
READ = {
    ("data_loader", "TorchDataset.worker_init"): WORKERS,
    ("data_loader", "TorchDataset.__getitem__"): FILES * EPOCHS,
    ("reader", "NPZReader.__init__"): WORKERS,
    ("reader", "NPZReader.open"): FILES * EPOCHS,
    ("reader", "NPZReader.get_sample"): FILES * EPOCHS,
    ("reader", "NPZReader.read_index"): FILES * EPOCHS,
    ("POSIX", "open64"): FILES * EPOCHS,
}


@dataclass(frozen=True)
class Outcome:
    rc: int
    text: str
    work: Path

    @property
    def data(self) -> list[Path]:
        return sorted((self.work / "data" / "train").iterdir())

    @property
    def epochs(self) -> Any:
        return json.loads((self.work / "out" / "per_epoch_stats.json").read_text())

    @property
    def traces(self) -> list[traces.Trace]:
        """The trainer's first. It closes its file inside a function that is recorded."""
        found = traces.read_directory(self.work / "out", open_parents=True)
        return sorted(found, key=lambda trace: len(trace.path.name))


@pytest.fixture(scope="session", autouse=True)
def _prepared() -> None:
    if not (VENV / "bin" / "python").exists():
        pytest.skip("DLIO is not installed: tools/bootstrap.sh dlio")
    pytest.importorskip("torch")


def dlio_environment(enable: bool) -> dict[str, str]:
    env = environment({"PYTHONPATH": str(STANDINS), "OMP_NUM_THREADS": "1"}, enable=enable)
    del env["DFTRACER_DISABLE_IO"]
    return env


def run_dlio(work: Path, context: str, enable: bool, ranks: int = 1) -> Outcome:
    work.mkdir(exist_ok=True)
    settings = {**WORKLOAD, "reader.multiprocessing_context": context}
    words = [f"++workload.{key}={value}" for key, value in settings.items()]
    program = [str(VENV / "bin" / "python"), "-m", "dlio_benchmark.main", "workload=unet3d_v100"]
    if ranks > 1:
        program = [str(VENV / "bin" / "mpiexec"), "-n", str(ranks), *program]
    rc, stdout, stderr = execute(
        *program, *words, f"hydra.run.dir={work / 'hydra'}",
        cwd=work, env=dlio_environment(enable), output=work / "terminal",
    )  # fmt: skip
    text = (stdout + stderr).decode(errors="replace")
    assert rc == 0, text
    return Outcome(rc, text, work)


def counts(trace: traces.Trace) -> Counter[tuple[str, str]]:
    return Counter((event["cat"], event["name"]) for event in trace.recorded)


def bytes_read(trace: traces.Trace) -> int:
    return sum(event["args"]["ret"] for event in trace.named("read"))


def test_dlio_takes_this_package(tmp_path: Path) -> None:
    code = (
        "from dlio_benchmark.utils.utility import DFTRACER_ENABLE, PerfTrace, Profile\n"
        "import dftracer.python\n"
        "assert DFTRACER_ENABLE is True\n"
        "assert PerfTrace is dftracer.python.dftracer and Profile is dftracer.python.dft_fn\n"
        "import dlio_benchmark.main"
    )
    rc, stdout, stderr = execute(
        str(VENV / "bin" / "python"), "-c", code,
        cwd=tmp_path, env=dlio_environment(True), output=tmp_path / "terminal",
    )  # fmt: skip
    assert (rc, stdout, stderr) == (0, b"", b"")


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_training(tmp_path: Path, context: str, perfetto: Importer) -> None:
    bare = run_dlio(tmp_path / "bare", context, enable=False)
    traced = run_dlio(tmp_path / "traced", context, enable=True)

    assert list((bare.work / "out").glob("*.pfw*")) == []
    assert [path.name for path in traced.data] == [path.name for path in bare.data]
    assert [p.stat().st_size for p in traced.data] == [p.stat().st_size for p in bare.data]
    assert traced.epochs.keys() == bare.epochs.keys() == {"1", "2"}
    assert traced.text.count("Ending epoch") == bare.text.count("Ending epoch") == EPOCHS

    assert traces.spools(traced.work / "out") == []
    trainer, *workers = traced.traces
    assert trainer.path.name == "trace-0-of-1.pfw.gz"
    assert len(workers) == WORKERS
    of_trainer = counts(trainer)
    assert {key: of_trainer[key] for key in TRAINED} == TRAINED
    of_workers = sum((counts(worker) for worker in workers), Counter[tuple[str, str]]())
    assert {key: of_workers[key] for key in READ} == READ
    # What the files hold, once for each epoch; a member of an archive is read more than once.
    held = sum(path.stat().st_size for path in traced.data)
    assert sum(map(bytes_read, workers)) >= EPOCHS * held
    assert all(worker.named("read") for worker in workers)

    for trace in (trainer, *workers):
        assert traces.crossings(trace.events) == []
        loaded = perfetto.load(trace.path)
        assert (loaded.errors, loaded.problems) == ([], {})
        assert loaded.slices == len(trace.events)


def test_steps_and_epochs(tmp_path: Path) -> None:
    """What DLIO says of its steps while it runs is with the events that it says it of."""
    trainer, *workers = run_dlio(tmp_path / "work", "fork", enable=True).traces
    steps = [event["args"].get("step") for event in trainer.named("TorchDataLoader.next")]
    assert steps == [STEPS // EPOCHS] * EPOCHS
    sizes = {
        event["args"]["image_size"] for w in workers for event in w.named("NPZReader.get_sample")
    }
    assert len(sizes) == 1
    asked = sorted(
        event["args"]["image_idx"] for w in workers for event in w.named("TorchDataset.__getitem__")
    )
    assert asked == sorted([*range(FILES)] * EPOCHS)


def test_the_report_of_a_run(tmp_path: Path) -> None:
    """Steps, epochs and waits are those of DLIO's loop."""
    outcome = run_dlio(tmp_path / "work", "fork", enable=True)
    report = reports.load(outcome.work / "out")
    found = [(epoch["epoch"], epoch["steps"]) for epoch in report.epochs]
    assert found == [(epoch + 1, STEPS // EPOCHS) for epoch in range(EPOCHS)]
    trainer = outcome.traces[0]
    for name, column in (("loop.iter", "fetch_ns"), ("TorchFramework.compute", "compute_ns")):
        spent = sum(e["dur"] for e in trainer.named(name) if e["cat"] != "generator")
        assert sum(report.steps.column(column)) == 1000 * spent


def test_ranks(tmp_path: Path) -> None:
    """Two ranks under MPI: a trace for each, and for the workers of each."""
    if not os.access(VENV / "bin" / "mpiexec", os.X_OK):
        pytest.skip("no mpiexec")
    traced = run_dlio(tmp_path / "work", "fork", enable=True, ranks=2)
    found = {trace.path.name: trace for trace in traced.traces}
    ranks = [found.pop(f"trace-{rank}-of-2.pfw.gz") for rank in range(2)]
    assert len(found) == 2 * WORKERS
    for rank in ranks:
        assert counts(rank)["dlio_benchmark", "DLIOBenchmark._train"] == EPOCHS
    opened = sum(len(worker.named("NPZReader.open")) for worker in found.values())
    assert opened == FILES * EPOCHS
