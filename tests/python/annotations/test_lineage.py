"""The types behind batch lineage, without PyTorch: a dataset, a stream, the queues of a worker."""

from __future__ import annotations

from pathlib import Path

from support.python_face import own, trace_of


def test_items_and_streams_name_their_batch(tmp_path: Path) -> None:
    trace = trace_of(
        """
        from dftracer._core import Items, Lineage, Stream
        from dftracer.python import ai, dftracer

        log = dftracer.initialize_log("t.pfw")

        class Data:
            size = 3
            def __getitem__(self, index):
                if index == "missing":
                    raise KeyError(index)
                return [index]

        item = ai.data.item
        lineage = Lineage({"loader": 4, "pass": 2}, 1)
        items = Items(Data(), item, lineage)
        assert items.size == 3 and not hasattr(items, "other")
        assert items[1] == [1]  # no batch yet
        lineage.begin(7)
        assert items[2] == [2] and lineage.items == 1
        try:
            items["missing"]
        except KeyError as error:
            assert error.args == ("missing",)
        assert Items(Data(), item, None)[3] == [3]

        def stream():
            yield {"__key__": "a", "__url__": "a.tar"}
            yield {"__key__": ["b", "c"], "__url__": 5}
            yield "text"

        lineage.begin(8)
        found = list(Stream(stream(), item, lineage))
        assert len(found) == 3 and lineage.items == 3

        def broken():
            yield 1
            raise ValueError("broken")

        try:
            list(Stream(broken(), item, None))
        except ValueError as error:
            assert error.args == ("broken",)
        item.disable()
        assert items[5] == [5] and list(Stream(iter([1]), item, lineage)) == [1]
        for wrong in (lambda: Stream([], item, None), lambda: Items([], 5, None),
                      lambda: Items([], item, 5)):
            try:
                wrong()
            except TypeError:
                continue
            raise AssertionError
        log.finalize()
        """,
        tmp_path,
    )
    assert [own(event) for event in trace.recorded] == [
        {"index": 1},
        {"index": 2, "batch": 7},
        {"index": "missing", "batch": 7},
        {"index": 3},
        {"batch": 8, "key": "a", "url": "a.tar"},
        {"batch": 8, "key": ["b", "c"]},
        {"batch": 8},
        {},
        {},
    ]


def test_a_batch_is_from_taking_a_task_to_giving_its_data(tmp_path: Path) -> None:
    trace = trace_of(
        """
        from dftracer._core import Builder, Lineage, Results, Tasks
        from dftracer.python import ai, dftracer

        log = dftracer.initialize_log("t.pfw")

        class Last:
            pass

        class Queue:
            def __init__(self, *content):
                self.content = list(content)
            def get(self, timeout=None):
                return self.content.pop(0)
            def put(self, result):
                self.content.append(result)

        resumed = []
        builder = Builder(lambda index: [index])
        tasks = Tasks(
            Queue((0, [4, 5]), (1, 6), (2, [None, None]), (3, [None]), (4, [7]), (5, [2**70]),
                  "resume", (6, list(range(70))), None),
            builder,
            resumed.append,
        )
        out = Queue()
        results = Results(out, builder, Last)
        lineage = Lineage({"loader": 0, "pass": 0, "worker": 1, "parent": 99}, 2**64 - 2)
        builder.set(ai.dataloader.batch, lineage)
        assert tasks.content[0] == (0, [4, 5])

        for data in ("a", "b", "c", Last()):
            number, index = tasks.get(timeout=5)
            assert lineage.batch == number
            if number == 2:
                lineage.items = 2
            results.put((number, data))
        tasks.get()  # skipped
        number, index = tasks.get()
        results.put((number, "f"))
        assert tasks.get() == "resume" and resumed == ["resume"]
        builder.set(ai.dataloader.batch, Lineage({"pass": 1}, 0))
        results.put((tasks.get()[0], "g"))
        assert tasks.get() is None
        assert [result[0] for result in out.content] == [0, 1, 2, 3, 5, 6]
        log.finalize()
        """,
        tmp_path,
    )
    first = {"loader": 0, "pass": 0, "worker": 1, "parent": 99}
    assert [own(event) for event in trace.recorded] == [
        {**first, "batch": 0, "index": [4, 5]},
        {**first, "batch": 1, "index": [6]},
        {**first, "batch": 2, "count": 2},
        {**first, "batch": 5, "index": [str(2**70)]},
        {"pass": 1, "batch": 6, "index": list(range(64)), "count": 70},
    ]
    ids = ["0xfffffffffffffffe", "0xffffffffffffffff", "0x" + "0" * 16, "0x" + "0" * 15 + "3"]
    assert [event["bind_id"] for event in trace.recorded[:4]] == ids
    assert all(event["flow_out"] is True for event in trace.recorded)


def test_what_arrives_is_handed_over_once(tmp_path: Path) -> None:
    trace = trace_of(
        """
        from dftracer._core import Lineage, Region
        from dftracer.python import ai, dftracer

        log = dftracer.initialize_log("t.pfw")
        arrive, fetch = ai.dataloader.arrive, ai.dataloader.fetch
        lineage = Lineage({"pass": 0}, 0)
        tasks = {1: (3,), 2: (4, "data")}

        class Last:
            pass

        for result in (("resume", None), (1, Last()), (9, "of another pass"), None, (1, 2, 3)):
            assert lineage.arrive(arrive, result, tasks, Last, True) is False
        assert lineage.arrive(arrive, (1, "x"), None, Last, True) is False
        assert lineage.arrive(arrive, (1, "x"), tasks, Last, True) is True
        assert lineage.arrive(None, (2, "y"), tasks, Last, True) is True  # recorded elsewhere
        lineage.handed(Region(fetch), 1)
        lineage.handed(Region(fetch), 1)  # already handed over
        lineage.handed(Region(fetch), -1)  # the last that arrived
        lineage.handed(Region(fetch), -1)
        lineage.begin(5)
        assert lineage.call(ai.dataloader.pin, divmod, 7, 2) == (3, 1)
        log.finalize()
        """,
        tmp_path,
    )
    assert [(event["name"], own(event)) for event in trace.recorded] == [
        ("arrive", {"pass": 0, "batch": 1, "worker": 3}),
        ("fetch", {"pass": 0, "batch": 1, "worker": 3}),
        ("fetch", {}),
        ("fetch", {"pass": 0, "batch": 2, "worker": 4}),
        ("fetch", {}),
        ("pin", {"batch": 5}),
    ]
