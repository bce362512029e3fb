"""Arguments and switches in threads, in tasks and in child processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from context_programs import Events, events_of
from support import traces
from support.python_face import own, run_python

# ---- Threads -------------------------------------------------------------------------------------


def test_threads_see_the_main_threads_arguments_as_they_change(tmp_path: Path) -> None:
    found = events_of(
        """
        go, done = threading.Semaphore(0), threading.Semaphore(0)

        def work():
            for n in range(3):
                go.acquire()
                mark(item)
                done.release()

        one = threading.Thread(target=work)
        one.start()
        for n in range(3):
            ai.update(epoch=n)
            go.release()
            done.acquire()
        one.join()
        """,
        tmp_path,
        by_time=True,
    )
    assert found == [("item", {"epoch": n}) for n in range(3)]


def test_a_thread_that_updates_speaks_for_itself(tmp_path: Path) -> None:
    found = events_of(
        """
        ai.update(epoch=1, step=0)
        go, done = threading.Semaphore(0), threading.Semaphore(0)

        def work():
            ai.update(step=5)
            mark(item)
            done.release()
            go.acquire()
            mark(item)

        one = threading.Thread(target=work)
        one.start()
        done.acquire()
        mark()
        ai.update(epoch=2, step=9)
        go.release()
        one.join()
        mark()
        thread(mark)
        """,
        tmp_path,
        by_time=True,
    )
    assert found == [
        ("item", {"epoch": 1, "step": 5}),
        ("forward", {"epoch": 1, "step": 0}),
        ("item", {"epoch": 2, "step": 5}),
        ("forward", {"epoch": 2, "step": 9}),
        ("forward", {"epoch": 2, "step": 9}),
    ]


def test_many_threads_do_not_mix(tmp_path: Path) -> None:
    found = events_of(
        """
        ai.update(epoch=1)
        ready = threading.Barrier(8)

        @forward
        def call(n): ...

        def work(who):
            ready.wait()
            for n in range(200):
                ai.update(step=n)
                ai.compute.update(args={"who": who})
                with item(args={"who": who, "n": n}):
                    pass
                with backward(args={"n": n, "mine": who}):
                    call(n)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for one in threads: one.start()
        for one in threads: one.join()
        mark()
        """,
        tmp_path,
        by_time=True,
    )
    assert found.pop() == ("forward", {"epoch": 1})
    assert len(found) == 8 * 200 * 3
    for name, args in found:
        assert args["epoch"] == 1
        if name != "forward":
            assert args["step"] == args["n"]
        if name == "backward":
            assert args["who"] == args["mine"]


def test_the_first_that_updates_speaks_for_all_until_it_is_gone(tmp_path: Path) -> None:
    found = events_of(
        """
        thread(lambda: ai.update(step=1))
        mark()
        ai.update(step=2)
        mark()
        thread(lambda: (ai.update(step=3), mark(item)))
        mark()
        """,
        tmp_path,
        by_time=True,
    )
    assert found == [
        ("forward", {"step": 1}),
        ("forward", {"step": 2}),
        ("item", {"step": 3}),
        ("forward", {"step": 2}),
    ]


def test_a_thread_that_takes_over_the_word(tmp_path: Path) -> None:
    """It spoke for itself while another spoke for all; that one is gone now."""
    found = events_of(
        """
        go, done = threading.Semaphore(0), threading.Semaphore(0)

        def first():
            ai.update(epoch=1, step=1)
            done.release()
            go.acquire()

        one = threading.Thread(target=first)
        one.start()
        done.acquire()
        ai.update(step=2)
        mark()
        go.release()
        one.join()
        ai.update(step=3)
        mark()
        ai.compute.update(step=4)
        mark()
        """,
        tmp_path,
    )
    assert found == [("forward", {"epoch": 1, "step": n}) for n in (2, 3, 4)]


def test_what_a_thread_set_is_gone_with_it(tmp_path: Path) -> None:
    """Also where another one's arguments come to lie at the same address."""
    found = events_of(
        """
        ai.update(epoch=0)

        def work(n):
            ai.update(step=n)
            mark(item, n=n)

        def silent():
            ai.update()
            ai.update(step=None)
            mark(backward)

        for n in range(20):
            thread(work, n)
            thread(silent)
            mark()
        """,
        tmp_path,
        by_time=True,
    )
    assert found == [
        event
        for n in range(20)
        for event in (
            ("item", {"n": n, "epoch": 0, "step": n}),
            ("backward", {"epoch": 0}),
            ("forward", {"epoch": 0}),
        )
    ]


# ---- Tasks ---------------------------------------------------------------------------------------


def test_tasks_have_arguments_of_their_own(tmp_path: Path) -> None:
    found = events_of(
        """
        @forward
        async def call(n):
            await asyncio.sleep(0)
            with item(args={"n": n}):
                await asyncio.sleep(0)

        async def work(n):
            ai.update(step=n)
            await asyncio.sleep(0)
            await call(n)
            # Started by it: begins with what it has, and changes nothing of it.
            await asyncio.gather(child(n), child(n))
            with backward(args={"n": n}):
                pass

        async def child(n):
            with backward(args={"n": n}):
                await asyncio.sleep(0)
            ai.update(step=-n)
            await asyncio.sleep(0)

        async def main():
            ai.update(epoch=1)
            await asyncio.gather(*(work(n) for n in range(1, 40)))
            mark(ai.pipeline.test)

        asyncio.run(main())
        mark(ai.pipeline.test)
        """,
        tmp_path,
    )
    last = [args for name, args in found if name == "test"]
    assert last == [{"epoch": 1}, {"epoch": 1}]
    steps = [args for name, args in found if name in ("item", "backward")]
    assert len(steps) == 39 * 4
    assert all(args == {"n": args["n"], "epoch": 1, "step": args["n"]} for args in steps)
    calls = sorted(args["step"] for name, args in found if name == "forward")
    assert calls == list(range(1, 40))


def test_awaited_functions_share_the_context_of_their_caller(tmp_path: Path) -> None:
    found = events_of(
        """
        ai.update(epoch=1)

        async def deeper(n):
            ai.update(step=n)

        async def task():
            await deeper(5)
            mark()
            await asyncio.get_running_loop().run_in_executor(None, mark, item)
            await asyncio.get_running_loop().run_in_executor(
                None, contextvars.copy_context().run, mark, backward)

        async def main():
            await asyncio.create_task(task())
            mark()

        asyncio.run(main())
        """,
        tmp_path,
        by_time=True,
    )
    assert found == [
        ("forward", {"epoch": 1, "step": 5}),
        ("item", {"epoch": 1}),
        ("backward", {"epoch": 1, "step": 5}),
        ("forward", {"epoch": 1}),
    ]


def test_a_copied_context_keeps_its_updates(tmp_path: Path) -> None:
    found = events_of(
        """
        ai.update(epoch=1)
        context = contextvars.copy_context()
        context.run(lambda: (ai.update(step=2), mark()))
        mark()
        context.run(mark)
        ai.update(epoch=3)
        context.run(mark)
        """,
        tmp_path,
    )
    assert found == [
        ("forward", {"epoch": 1, "step": 2}),
        ("forward", {"epoch": 1}),
        ("forward", {"epoch": 1, "step": 2}),
        ("forward", {"epoch": 3, "step": 2}),
    ]


# ---- Children ------------------------------------------------------------------------------------


def test_forked_children_inherit_and_speak_for_themselves(tmp_path: Path) -> None:
    found = events_of(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a program with threads
        ai.update(epoch=1, step=1)
        ai.device.disable()

        def fork(work):
            pid = os.fork()
            if pid == 0:
                work()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0

        def child():
            mark(item)
            ai.update(step=2)
            mark(item)
            mark(ai.device.transfer)
            thread(mark, item)

        def from_thread():
            ai.update(step=7)
            fork(child)

        fork(child)
        mark()
        thread(from_thread)
        mark()
        """,
        tmp_path,
        by_time=True,
    )
    assert found == [
        ("item", {"epoch": 1, "step": 1}),
        ("item", {"epoch": 1, "step": 2}),
        ("item", {"epoch": 1, "step": 2}),
        ("forward", {"epoch": 1, "step": 1}),
        ("item", {"epoch": 1, "step": 7}),
        ("item", {"epoch": 1, "step": 2}),
        # It had spoken for itself alone, and goes on so.
        ("item", {"epoch": 1, "step": 1}),
        ("forward", {"epoch": 1, "step": 1}),
    ]


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_take_the_context_along(tmp_path: Path, way: str) -> None:
    (tmp_path / "work.py").write_text(
        "from dftracer.python import ai\n"
        "@ai.data.item\n"
        "def item(): ...\n"
        "def work(n):\n"
        "    item()\n"
        "    ai.update(step=n)\n"
        "    item()\n"
        "    for node in (ai.device.transfer, ai.comm, ai.comm.send, ai.data.item.derive('x')):\n"
        "        with node:\n"
        "            pass\n"
    )
    (tmp_path / "main.py").write_text(
        "import multiprocessing, sys\n"
        "from dftracer.python import ai, dftracer\n"
        "from work import item, work\n"
        "if __name__ == '__main__':\n"
        "    dftracer.initialize_log('t.pfw')\n"
        "    context = multiprocessing.get_context(sys.argv[1])\n"
        "    ai.update(epoch=1, step=1, args={'text': 'é\"\\n', 'l': [1, {'a': None}], 'f': .5})\n"
        "    ai.device.disable()\n"
        "    ai.comm.disable()\n"
        "    ai.comm.send.enable()\n"
        "    ai.data.item.derive('x').update(args={'own': 'y'})\n"
        "    for n in (2, 3):\n"
        "        child = context.Process(target=work, args=(n,))\n"
        "        child.start()\n"
        "        child.join()\n"
        "        assert child.exitcode == 0\n"
        "        item()\n"
        "        ai.update(epoch=2)\n"
    )
    run_python(tmp_path / "main.py", way, cwd=tmp_path)
    found = [event for trace in traces.read_directory(tmp_path) for event in trace.recorded]
    found.sort(key=lambda event: (event["ts"], event["id"]))
    given = {"text": 'é"\n', "l": [1, {"a": None}], "f": 0.5}

    def of(epoch: int, n: int) -> Events:
        return [
            ("item", {"epoch": epoch, "step": 1, **given}),
            ("item", {"epoch": epoch, "step": n, **given}),
            ("send", {"epoch": epoch, "step": n, **given}),
            ("item.x", {"own": "y", "epoch": epoch, "step": n, **given}),
            ("item", {"epoch": epoch, "step": 1, **given}),
        ]

    assert [(event["name"], own(event)) for event in found] == of(1, 2) + of(2, 3)
    assert len({event["pid"] for event in found}) == 3
