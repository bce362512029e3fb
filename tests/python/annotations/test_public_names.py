"""Names that programs written for other releases import, by every path that leads to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.python_face import own, run_python, trace_of

CLASSES = "AI Compute Data DataLoader Communication Device Checkpoint Pipeline Other IO DFTracerAI"
NODES = "comm compute data dataloader device checkpoint pipeline"
CONSTANTS = {
    "INIT_NAME": "init",
    "ITER_COUNT_NAME": "count",
    "BLOCK_NAME": "block",
    "ITER_NAME": "iter",
    "CTX_SEPARATOR": ".",
    "ROOT_NAME": "ai_root",
    "ROOT_CAT": "ai_root",
    "START_METADATA_NAME": "start",
    "STOP_METADATA_NAME": "end",
    "DFTRACER_ENABLE_ENV": "DFTRACER_ENABLE",
    "DFTRACER_INIT_ENV": "DFTRACER_INIT",
    "DFTRACER_LOG_LEVEL_ENV": "DFTRACER_LOG_LEVEL",
}
ENUMS = {
    "ProfileCategory": "compute data dataloader comm device checkpoint pipeline",
    "ComputeEvent": "forward backward step",
    "DataEvent": "preprocess item",
    "DataLoaderEvent": "fetch",
    "CommunicationEvent": (
        "send receive barrier bcast reduce all_reduce gather all_gather scatter reduce_scatter "
        "all_to_all"
    ),
    "DeviceEvent": "transfer",
    "CheckpointEvent": "capture restart",
    "PipelineEvent": "epoch train evaluate test",
    "OtherEvent": "log",
    "IOEvent": "open read write close",
}
OTHERS = (
    "dftracer ai dft_fn get_iter_block_name get_iter_handle_name get_time_scale get_default_args "
    "setup_logger setup_stream_logger capture_signal TagValue TagType TagDType EntityStore "
    "EntityRole EntityRelation EntityID NoOpProfiler ProfilerProtocol DFTRACER_ENABLE "
    "DFTRACER_INIT_PRELOAD DFTRACER_LOG_LEVEL"
)
NAMES = [*CLASSES.split(), *NODES.split(), *CONSTANTS, *ENUMS, *OTHERS.split()]
MODULES = ["dftracer.python", "dftracer.logger", "dftracer.python.dbg"]

PROGRAM = """\
import importlib, json, sys
names, enums, nodes = json.loads(sys.argv[1])
out = {}
base = importlib.import_module("dftracer.python")
for module_name in ("dftracer.python", "dftracer.logger", "dftracer.python.dbg"):
    module = importlib.import_module(module_name)
    scope = {}
    exec(f"from {module_name} import " + ", ".join(names), scope)
    out[module_name] = {
        "foreign": [n for n in names if scope[n] is not getattr(base, n)],
        "undeclared": [n for n in names if n not in module.__all__ and n not in dir(module)],
    }
    try:
        module.no_such_name
    except AttributeError:
        out[module_name]["unknown"] = "AttributeError"
ai = base.ai
out["nodes"] = [n for n in nodes if getattr(base, n) is not getattr(ai, n)]
out["constants"] = {n: getattr(base, n) for n in names if isinstance(getattr(base, n), (str, bool))}
out["enums"] = {
    n: [[m.name, m.value, m == m.value, isinstance(m, str), str(m)] for m in getattr(base, n)]
    for n in enums
}
out["classes"] = {n: type(getattr(ai, n)).__name__ for n in nodes}
out["not_a_node"] = [n for n in nodes if not isinstance(getattr(ai, n), base.DFTracerAI)]
out["suffixes"] = [
    base.get_iter_block_name("a"), base.get_iter_block_name("a.block"),
    base.get_iter_handle_name("a"), base.get_iter_handle_name("a.iter"),
]
out["scale"] = base.get_time_scale()
def defaults(a, b=2, *, c=None): ...
out["defaults"] = base.get_default_args(defaults)
import logging
out["logger"] = isinstance(base.setup_stream_logger("dft"), logging.Logger)
from dftracer.python import TagValue, TagDType, TagType
out["tags"] = [
    TagValue(3).value(), TagValue("3", TagDType.INT, TagType.VALUE).value(),
    TagValue(3, TagDType.FLOAT, TagType.IGNORE).value(),
]
out["tag_numbers"] = [[m.name, int(m)] for e in (TagDType, TagType) for m in e]
import dftracer.python.dbg.logger, dftracer.python.dbg.ai
out["dbg"] = [
    sys.modules["dftracer.python.dbg.logger"].dftracer is base.dftracer,
    sys.modules["dftracer.python.dbg.ai"].ai is ai,
]
import dftracer.dftracer as native
out["native"] = [callable(getattr(native, n, None)) for n in (
    "initialize get_time get_config enter_event exit_event log_event log_metadata_event "
    "set_app_metadata_int set_app_metadata_string mark_used finalize").split()]
import dftracer
out["version"] = dftracer.__version__
from dftracer.logger import dftracer, dft_fn, DFTRACER_ENABLE
out["dlio"] = [isinstance(DFTRACER_ENABLE, bool), DFTRACER_ENABLE]
log = dftracer.get_instance()
out["attributes"] = [hasattr(log, n) for n in ("logger", "dbg_logging", "start_time")]
out["singleton"] = log is dftracer.get_instance()
noop = base.NoOpProfiler()
noop.enter_event(), noop.log_event("a", "b", 1, 2), noop.exit_event(), noop.finalize()
try:
    base.capture_signal(15, None)
except SystemExit as end:
    out["signal"] = end.code
out["defaulted"] = isinstance(base.setup_stream_logger(), logging.Logger)
from dftracer.python import logger
out["stream"] = [callable(logger.info), logger.dft_fn is base.dft_fn]
made = [base.AI(), base.Compute(1, 2), base.IO(cat="data", parent_name="data")]
out["made"] = [[node.cat, node.name] for node in made]
out["grown"] = [made[0].compute.forward.cat, made[1].step.name, made[2].open.name]
made[1].create_children({"extra": "extra.name"})
out["child"] = [made[1].extra.name, made[1].extra.cat]
print(json.dumps(out))
"""


@pytest.fixture(scope="module", params=["on", "off"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict:
    where: Path = tmp_path_factory.mktemp(request.param)
    given = json.dumps([NAMES, list(ENUMS), NODES.split()])
    done = run_python(PROGRAM, given, cwd=where, enable=request.param == "on")
    assert [path.name for path in where.iterdir()] == ["program.py"]  # importing leaves nothing
    return {"state": request.param, **json.loads(done.stdout)}


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_there_and_is_the_same_object(found: dict, module: str) -> None:
    assert found[module] == {"foreign": [], "undeclared": [], "unknown": "AttributeError"}


def test_ready_made_nodes(found: dict) -> None:
    assert found["nodes"] == found["not_a_node"] == []
    classes = ["Communication", "Compute", "Data", "DataLoader", "Device", "Checkpoint", "Pipeline"]
    assert found["classes"] == dict(zip(NODES.split(), classes))


def test_constants(found: dict) -> None:
    had = found["constants"]
    assert {name: had[name] for name in CONSTANTS} == CONSTANTS
    assert had["DFTRACER_ENABLE"] is (found["state"] == "on")
    assert had["DFTRACER_INIT_PRELOAD"] is True  # DFTRACER_INIT is not set
    assert found["suffixes"] == ["a.block", "a.block", "a.iter", "a.iter"]
    assert found["scale"] == 1_000_000
    assert found["defaults"] == {"b": 2, "c": None}
    assert found["logger"] is True


@pytest.mark.parametrize("name", ENUMS)
def test_enum_members_are_the_words_of_the_trace(found: dict, name: str) -> None:
    members = found["enums"][name]
    words = ENUMS[name].split()
    assert {word.upper(): word for word in words}.items() <= {m[0]: m[1] for m in members}.items()
    for member, value, equal, is_str, shown in members:
        assert (member.lower(), equal, is_str, shown) == (value, True, True, value)


def test_tags(found: dict) -> None:
    assert found["tags"] == [[0, "3"], [1, 3], [2, 3.0]]
    assert found["tag_numbers"] == [
        *[["INT", 0], ["FLOAT", 1], ["STRING", 2]],
        *[["KEY", 0], ["VALUE", 1], ["IGNORE", 2]],
    ]


def test_older_and_newer_paths(found: dict) -> None:
    assert found["dlio"] == [True, found["state"] == "on"]
    assert found["dbg"] == [True, True]
    assert all(found["native"])
    assert found["attributes"] == [True] * 3
    assert found["singleton"] is True
    assert found["signal"] == 15
    assert found["defaulted"] is True
    assert found["stream"] == [True, True]
    assert found["version"][0].isdigit()


def test_categories_are_made_without_arguments(found: dict) -> None:
    assert found["made"] == [["ai_root", "ai_root"], ["compute", "compute"], ["data", "data.io"]]
    assert found["grown"] == ["compute", "step", "data.io.open"]
    assert found["child"] == ["extra.name", "compute"]


LOOKED = """
from dftracer.python import ai, compute, dft_fn, dftracer

log = dftracer.initialize_log("t.pfw")
assert compute.profiler is ai.compute.profiler
compute.update(epoch=5, step=100, image_idx=42, image_size=224, args={"rate": 0.5, "by": "adam"})
looked = compute.profiler
assert looked._arguments_int == {"epoch": (0, 5), "step": (0, 100), "image_idx": (0, 42)}
assert looked._arguments_float == {"image_size": (0, 224.0), "rate": (0, 0.5)}
assert looked._arguments_string == {"by": (0, "adam")}
assert (looked._cat, looked._name) == ("compute", "compute")
assert (looked._enable, looked._flush) == (True, False)
compute.profiler.update(epoch=6)
with compute: pass

@compute.profiler.log(name="logged")
def function(): pass

function()
ai.disable()
function()
assert looked._enable is False
ai.enable()

mine = dft_fn("mine")
class Thing:
    @mine.log_init
    def __init__(self, epoch, step): self.epoch, self.step = epoch, step
    @mine.log
    def method(self, image_size): pass

thing = Thing(1, step=2)
assert mine._arguments_int == {"epoch": (0, 1), "step": (0, 2)}
Thing(3, 4).method(7)
assert mine._arguments_int == {"epoch": (0, 3), "step": (0, 4)}
assert mine._arguments_float == {"image_size": (0, 7.0)}
assert mine.reset() is mine and mine.flush() is mine
"""


def test_what_programs_look_at(tmp_path: Path) -> None:
    """The profiler of a node, and the arguments of the latest call."""
    trace = trace_of(LOOKED, tmp_path)
    had = [(event["name"], event["cat"]) for event in trace.recorded]
    assert had == [
        ("compute", "compute"),
        ("logged", "compute"),
        ("Thing.__init__", "mine"),
        ("Thing.__init__", "mine"),
        ("Thing.method", "mine"),
        ("<module>", "mine"),
    ]
    assert [own(event).get("epoch") for event in trace.recorded] == [6, 6, 1, 3, 3, None]
