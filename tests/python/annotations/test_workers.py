"""Worker processes: all that they do is recorded, annotations and I/O, with no word about tracing
in the worker, however they are started and however they end."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from support import traces
from support.python_face import own, run_python
from support.run import Result, run
from support.traces import Record, Trace

PROGRAM = Path(__file__).parent / "programs" / "workers.py"
TASKS, READS = 6, 20
# How a worker ends, and the function that it runs, are not the same in all ways.
OTHERS = ("_exit", "send", "fork", "execve", "execv", "wait4", "waitpid", "kill")
METHODS = ("fork", "spawn", "forkserver")


def read_all(directory: Path) -> list[Trace]:
    """Every trace of a run, which has left nothing unfinished and no empty file."""
    assert traces.spools(directory) == []
    assert [path.name for path in directory.iterdir() if path.stat().st_size == 0] == []
    found = traces.read_directory(directory)
    runs = {start["args"]["run"] for trace in found for start in trace.named("start")}
    assert len(runs) == 1
    return found


def names_up(event: Record, ids: dict[int, Record]) -> str:
    names = [event["name"]]
    while event["args"]["p_idx"] != -1:
        event = ids[event["args"]["p_idx"]]
        names.append(event["name"])
    return "/".join(reversed(names))


def paths_of(trace: Trace) -> Counter[str]:
    ids = trace.by_id()
    return Counter(names_up(event, ids) for event in trace.recorded)


def in_all(found: list[Trace]) -> Counter[str]:
    total: Counter[str] = Counter()
    for trace in found:
        total += paths_of(trace)
    return total


def tasks_of(found: list[Trace], pids: list[int]) -> None:
    """Each task's events, in the process that it ran in, and nothing else there."""
    if sys.version_info < (3, 10):  # forks, and then executes the interpreter: two files
        found = [trace for trace in found if any(e["cat"] != "POSIX" for e in trace.recorded)]
    by_pid = {trace.records[0]["pid"]: trace for trace in found}
    assert len(by_pid) == len(found)
    for pid, tasks in Counter(pids).items():
        events = by_pid[pid].recorded
        names = Counter(event["name"] for event in events if event["name"] not in OTHERS)
        opens = sum(names.pop(name, 0) for name in ("open", "open64", "openat", "openat64"))
        assert opens == tasks
        reads = sum(names.pop(name, 0) for name in ("pread", "pread64"))
        assert reads == tasks * READS
        assert names == dict.fromkeys(("work", "forward", "fetch", "item", "close"), tasks)
        ids = by_pid[pid].by_id()
        for event in events:
            if event["name"] in ("close", "pread64", "pread"):
                assert names_up(event, ids).split("/")[-3:-1] == ["fetch", "item"]
    numbers = [
        own(event)["number"]
        for trace in found
        for event in trace.recorded
        if event["name"] == "forward"
    ]
    assert sorted(numbers) == list(range(TASKS))


def workers(cwd: Path, how: str, method: str, **env: str) -> tuple[Result, list[Trace]]:
    env = {"DFTRACER_DISABLE_IO": "0", "DFTRACER_SUMMARY": "0", **env}
    done = run_python(PROGRAM, how, method, cwd=cwd, env=env)
    return done, read_all(cwd / "traces")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["pool", "executor", "processes", "decorated_targets"])
def test_workers(tmp_path: Path, how: str, method: str) -> None:
    done, found = workers(tmp_path, how, method)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == TASKS
    tasks_of(found, pids)
    if how == "pool":
        assert len(set(pids)) == 2
    if how == "decorated_targets":
        sends = [event for trace in found for event in trace.recorded if event["name"] == "send"]
        assert len(sends) == 6
        assert [own(event) for event in sends if own(event)] == [{"x": 1}]


@pytest.mark.parametrize(
    ("how", "method"), [("closed_pool", "fork"), ("nested", "fork"), ("nested", "spawn")]
)
def test_more_workers(tmp_path: Path, how: str, method: str) -> None:
    done, found = workers(tmp_path, how, method)
    tasks_of(found, [int(pid) for pid in done.stdout.split()])


@pytest.mark.parametrize("method", METHODS)
def test_without_io(tmp_path: Path, method: str) -> None:
    """Annotations only: nothing is intercepted, and nothing is missing."""
    done, found = workers(tmp_path, "pool", method, DFTRACER_DISABLE_IO="1")
    names = Counter(event["name"] for trace in found for event in trace.recorded)
    assert names == dict.fromkeys(("work", "forward", "fetch", "item"), TASKS)
    assert {trace.records[0]["pid"] for trace in found} >= {int(pid) for pid in done.stdout.split()}


@pytest.mark.parametrize("method", METHODS)
def test_switched_off(tmp_path: Path, method: str) -> None:
    run_python(PROGRAM, "pool", method, cwd=tmp_path, enable=False)
    assert not (tmp_path / "traces").exists()


def test_fork_in_the_middle_of_everything(tmp_path: Path) -> None:
    """The child's events are its own; what was open in the parent is the parent's."""
    run_python(
        """
        import os
        from dftracer.python import ai, dftracer

        dftracer.initialize_log("t.pfw")

        @ai.data.item
        def item(): ...

        @ai.dataloader.fetch
        def items():
            for n in range(3):
                item()
                yield n

        @ai.compute.forward
        def fork():
            return os.fork()

        one = items()
        loop = ai.comm.send.iter(range(3))
        ai.pipeline.epoch.start()
        with ai.pipeline.train:
            next(one)
            next(loop)
            pid = fork()
            item()
            next(one)
            next(loop)
        ai.pipeline.epoch.stop()
        list(one), list(loop)
        with ai.pipeline.test:
            item()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        """,
        cwd=tmp_path,
    )
    parent, child = sorted(read_all(tmp_path), key=lambda trace: len(trace.recorded), reverse=True)
    assert paths_of(parent) == {
        "epoch": 1,
        "epoch/train": 1,
        "epoch/train/forward": 1,
        "epoch/train/item": 1,
        "epoch/train/fetch": 1,
        "epoch/train/fetch/item": 3,
        "test": 1,
        "test/item": 1,
        **{path: n for path, n in paths_of(parent).items() if "send" in path},
    }
    assert Counter(event["name"] for event in parent.recorded)["send.block"] == 3
    names = Counter(event["name"] for event in child.recorded)
    # A loop's item that began before the fork is the parent's.
    assert names == {"item": 4, "test": 1, "send.iter": 2, "send.block": 2}
    assert all(event["args"]["level"] == 1 or event["name"] == "item" for event in child.recorded)


def test_children_that_are_not_traced(tmp_path: Path) -> None:
    """A program that is started, and starts no trace, leaves no file, and says what it missed."""
    run_python(
        """
        import subprocess, sys
        from dftracer.python import ai, dftracer

        dftracer.initialize_log("t.pfw")
        code = "from dftracer.python import ai\\nwith ai.compute: pass\\nprint('here')"
        for env in (None, {}):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env)
            assert (done.returncode, done.stdout) == (0, b"here\\n"), done
            told = b"1 annotated call was not recorded" in done.stderr
            assert told == (env is None) and done.stderr.count(b"\\n") == told, done
        with ai.compute:
            pass
        """,
        cwd=tmp_path,
    )
    assert [paths_of(trace) for trace in read_all(tmp_path)] == [{"compute": 1}]


def test_one_thread_where_it_forks(tmp_path: Path) -> None:
    """CPython 3.12 and later warn where a process with several threads forks: ours is not there."""
    done = run_python(
        """
        import os
        from dftracer.python import ai, dftracer
        dftracer.initialize_log("t.pfw")

        @ai.compute.forward
        def forward(): pass

        def threads():
            return len(os.listdir("/proc/self/task"))

        calls = 0

        def fill_until_it_writes():
            global calls
            while threads() < 2:
                for _ in range(100_000):
                    forward()
                calls += 100_000

        def seen_from_parent():
            print(threads(), end=" ")

        fill_until_it_writes()
        os.register_at_fork(after_in_parent=seen_from_parent)
        child = os.fork()
        if child == 0:
            forward()
            os._exit(0)
        os.waitpid(child, 0)
        fill_until_it_writes()
        print(calls + 1)
        """,
        cwd=tmp_path,
    )
    threads, calls = map(int, done.stdout.split())
    assert threads == 1
    assert sum(len(trace.named("forward")) for trace in read_all(tmp_path)) == calls


@pytest.mark.parametrize("library", ["joblib", "loky"])
def test_pools_of_others(tmp_path: Path, library: str) -> None:
    pytest.importorskip(library)
    program = {
        "joblib": "from joblib import Parallel, delayed\n"
        "found = Parallel(2)(delayed(work)(n) for n in range(6))",
        "loky": "from loky import get_reusable_executor\n"
        "found = list(get_reusable_executor(2).map(work, range(6)))",
    }[library]
    (tmp_path / "work.py").write_text(
        "from dftracer.python import ai\n@ai.data.item\ndef work(n):\n    return n\n"
    )
    run_python(
        "from dftracer.python import dftracer\nfrom work import work\n"
        f"dftracer.initialize_log('traces/t.pfw')\n{program}\nassert found == list(range(6))\n",
        cwd=tmp_path,
        stderr=None,
    )
    found = read_all(tmp_path / "traces")
    assert sum(len(trace.recorded) for trace in found) == 6


FLAGS = [
    ("-I",),
    ("-OO",),
    ("-I", "-S", "-E", "-O"),
    ("-X", "frozen_modules=off"),
    ("-X", "utf8=0", "-B", "-W", "error"),
]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_interpreter_flags(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Also in a worker that is started afresh with the same flags."""
    import dftracer

    (tmp_path / "app.py").write_text(
        "import sys\n"
        f"sys.path[:0] = [{str(Path(dftracer.__file__).parents[1])!r}, {str(tmp_path)!r}]\n"
        "import multiprocessing\n"
        "from dftracer.python import ai, dftracer\n"
        "@ai.data.item\n"
        "def work(n):\n"
        "    '''Doc.'''\n"
        "    return n\n"
        "if __name__ == '__main__':\n"
        "    dftracer.initialize_log('traces/t.pfw')\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work, args=(1,))\n"
        "    child.start()\n"
        "    child.join()\n"
        "    assert child.exitcode == 0\n"
        "    work(2)\n"
    )
    run(sys.executable, *flags, tmp_path / "app.py", cwd=tmp_path)
    found = read_all(tmp_path / "traces")
    assert [paths_of(trace) for trace in found] == [{"item": 1}, {"item": 1}]


def test_zip_application(tmp_path: Path) -> None:
    import zipapp

    source = tmp_path / "source"
    source.mkdir()
    (source / "work.py").write_text(
        "from dftracer.python import ai\n@ai.data.item\ndef work(n):\n    return n\n"
    )
    (source / "__main__.py").write_text(
        "import multiprocessing\n"
        "from dftracer.python import dftracer\n"
        "from work import work\n"
        "if __name__ == '__main__':\n"
        "    dftracer.initialize_log('traces/t.pfw')\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.map(work, range(3)) == [0, 1, 2]\n"
        "    work(3)\n"
    )
    zipapp.create_archive(source, tmp_path / "app.pyz")
    run(sys.executable, tmp_path / "app.pyz", cwd=tmp_path)
    found = read_all(tmp_path / "traces")
    assert in_all(found) == {"item": 4}
    assert len(found) == 2
