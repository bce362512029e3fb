"""The cases: what each program does, and the finding that must come first, or that none is high."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "diagnosis"


@dataclass(frozen=True)
class Case:
    """A program with one cause of slowness, or without."""

    name: str
    cause: str  # in words, for the table
    program: str  # training.py, files.py, processes.py, or a command of the shell
    rule: str = ""  # of the finding that must be first; empty: the program is healthy
    texts: tuple[str, ...] = ()  # each in the title or the evidence of that finding
    bound: tuple[str, ...] = ()  # what the report may say that it is bound by
    prepare: bool = False  # makes data first
    throttle: tuple[str, str, float] | None = None  # fill or empty, path, seconds per piece
    ranks: int = 0

    @property
    def trains(self) -> bool:
        return self.program == "training.py"

    @property
    def healthy(self) -> bool:
        return not self.rule

    def command(self) -> list[str]:
        if not self.program.endswith(".py"):
            return ["sh", "-c", self.program]
        words = [sys.executable, str(PROGRAMS / self.program), self.name]
        starter = [sys.executable, str(PROGRAMS / "ranks.py"), str(self.ranks)]
        return [*starter, *words] if self.ranks else words

    def preparation(self) -> list[str]:
        """Not by the program that trains: importing PyTorch takes seconds."""
        name = "parts" if self.trains else self.name
        return [sys.executable, str(PROGRAMS / "files.py"), name, "--prepare"]


def _train(name: str, cause: str, rule: str, *texts: str, **more: object) -> Case:
    return Case(name, cause, "training.py", rule, texts, **more)  # type: ignore[arg-type]


def _files(name: str, cause: str, rule: str, *texts: str, **more: object) -> Case:
    return Case(name, cause, "files.py", rule, texts, **more)  # type: ignore[arg-type]


def _several(name: str, cause: str, rule: str, *texts: str, **more: object) -> Case:
    return Case(name, cause, "processes.py", rule, texts, **more)  # type: ignore[arg-type]


FILL = ("fill", "pipe.bin")
WAIT = "waiting-for-data"

CASES = (
    _train("slow-file", "one slow file", WAIT, "reading", "pipe.bin", prepare=True,
           throttle=(*FILL, 0.1)),
    _train("throttled-reads", "slow storage", WAIT, "reading", "pipe.bin",
           throttle=(*FILL, 0.040), bound=("reading",)),
    _train("slow-worker", "one slow worker", "slow-worker", "worker 1"),
    _train("decoding", "decoding, no workers", WAIT, "decoding", bound=("decoding",)),
    _train("too-few-workers", "too few workers", WAIT, "too few workers", bound=("decoding",)),
    _train("worker-start", "starting workers", "worker-start", "3 starts of 2 workers"),
    _train("first-batches", "first batch of each epoch", WAIT, "first batch"),
    _train("slow-sample", "one slow sample", WAIT, "decoding", "batch 19"),
    _train("collation", "collation", WAIT, "collating", bound=("collating",)),
    _train("queue-transfer", "transfer from workers", WAIT, "transfer from the worker"),
    _train("checkpoints", "checkpoints", "checkpoint-stalls", "checkpoint-"),
    _train("garbage", "garbage collection", "garbage-collection"),
    _train("evaluation", "evaluation in the loop", "evaluation", bound=("evaluation",)),
    _train("log-every-step", "logging every step", "small-writes", "metrics.log",
           bound=("writing",)),
    _train("log-through-a-slow-file", "log on slow storage", "slow-storage", "pipe.log",
           throttle=("empty", "pipe.log", 0.040), bound=("writing",)),
    _train("uneven", "some slow steps", "uneven-steps", "compute"),
    _train("untraced-work", "work that is not traced", "unattributed"),
    _train("slow-rank", "one slow rank", "unbalanced-rank", "Rank 2", ranks=3),
    _train("unbalanced-shards", "unbalanced shards", "unbalanced-rank", "Rank 1", "fetch",
           prepare=True, ranks=3),
    _train("communication", "communication", "communication", ranks=2,
           bound=("communication",)),
    _files("tiny-reads", "tiny reads", "small-reads", "table.bin", prepare=True),
    _files("random-reads", "random reads", "random-access", "records.bin", prepare=True,
           bound=("reading",)),
    _files("slow-reads", "slow storage, not in training", "slow-storage", "pipe.bin",
           throttle=(*FILL, 0.040), bound=("reading",)),
    _files("reopened-file", "opening the same file", "reopened-files", "settings.json",
           prepare=True),
    _files("metadata-storm", "metadata", "metadata-storm", "images-", prepare=True),
    _files("missing-files", "looking for missing files", "failed-calls", "cache/"),
    _files("reread-file", "reading the same file", "rereads", "weights.bin", prepare=True,
           bound=("reading",)),
    _files("small-writes", "small writes", "small-writes", "results.csv"),
    _files("fsync-per-write", "fsync per write", "syncs", "journal.bin", bound=("writing",)),
    _several("slow-consumer", "a pipe that is read slowly", "pipe-waits", "_consume",
             bound=("waiting for another process", "idle")),
    _several("slow-producer", "a pipe that is filled slowly", "pipe-waits", "_produce",
             bound=("waiting for another process", "idle")),
    _several("locked-file", "a lock on a shared file", "lock-waits", "counter",
             bound=("waiting for another process",)),
    _several("waits-for-child", "waiting for a child", "child-waits", "_convert",
             bound=("waiting for another process", "idle")),
    # Healthy.
    _train("balanced", "balanced training", "", bound=("compute",)),
    _train("workers-that-keep-up", "workers that keep up", "", prepare=True, bound=("compute",)),
    _files("copies-a-file", "copying with large reads", "", prepare=True,
           bound=("writing", "reading")),
    _files("buffered-writer", "buffered writer", "", bound=("compute",)),
    _files("computes", "compute only", "", bound=("compute",)),
    _several("serves", "a server that sleeps", "", bound=("waiting for another process", "idle")),
    Case("compiles", "a compile job", "make -s -j2", prepare=True, bound=("compute",)),
    Case("pipeline", "a shell pipeline", "seq 300000 | sed s/1/7/ | sort -n | uniq -c | tail -1",
         bound=("compute",)),
)  # fmt: skip
