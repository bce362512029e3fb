"""Switched off, or without its extension, the package costs nothing and does nothing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.python_face import run_python, shapes
from support.traces import files, read_one

STATE = """\
import os, sys
def state():
    with open("/proc/self/maps") as maps: text = maps.read()
    status = {l.split(":")[0]: l.split()[1] for l in open("/proc/self/status") if l[:3] == "Sig"}
    return {
        "libraries": sorted({l.split("/")[-1] for l in text.splitlines() if "dftracer" in l}),
        "threads": len(os.listdir("/proc/self/task")),
        "caught": status["SigCgt"], "ignored": status["SigIgn"],
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "environment": dict(os.environ),
        "hooks": [sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile(),
                  len(sys.meta_path), len(sys.path_hooks)],
        "files": sorted(os.listdir()),
    }
"""
IMPORT = (
    STATE
    + """
before, known = state(), set(sys.modules)
import dftracer.python, dftracer.logger, dftracer.python.dbg
new = sorted(set(sys.modules) - known)
after = state()
import json
print(json.dumps([before, after, [m for m in new if m.split(".")[0] != "dftracer"]]))
"""
)


@pytest.mark.parametrize("enable", [False, True])
def test_import_has_no_effect(enable: bool, tmp_path: Path) -> None:
    done = run_python(IMPORT, cwd=tmp_path, enable=enable)
    before, after, new = json.loads(done.stdout)
    libraries = after.pop("libraries")
    assert before.pop("libraries") == []
    assert after == before
    # Not even typing, which takes longer than all the rest, and which few programs import.
    assert new == ["__future__"]
    if not enable:
        assert libraries == []
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


OFF = (
    STATE
    + """
import functools
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer
before = state()
x = dft_fn("app", name="x", epoch=1)
custom = DFTracerAI(cat="c", name="n", epoch=1, step=2)
node = ai.compute.forward
decorators = [
    ai, ai.compute, node, node(), node(args={"a": 1}), node(enable=True), node(enable=False),
    node(epoch=1, step=2, image_idx=3, image_size=4), node.init, node.init(), node.derive("d"),
    node.derive(name="d"), custom, custom(), x, x.log, x.log(), x.log(name="n"), x.log_init,
    x.log_init(name="n"), x.log_static, x.log_static(),
]
async def coroutine(): pass
def generator(): yield 1
class Class:
    def __init__(self): pass
    @property
    def prop(self): return 1
    cached = functools.cached_property(len)
targets = [
    len, coroutine, generator, lambda: 1, Class, Class.__init__, Class().__init__, Class.prop,
    vars(Class)["cached"], staticmethod(len), classmethod(len), functools.partial(len, "a"),
    functools.lru_cache(len), functools.partialmethod(len),
]
own_init = Class.__init__
for decorate in decorators:
    for target in targets:
        assert decorate(target) is target, (decorate, target)
assert Class.__init__ is own_init

for item in (ai, node, node(), node.init, node.derive("d"), custom, x):
    with item as entered: assert entered is item
    with item, item: pass
    assert item.update(epoch=1, step=2, image_idx=3, image_size=4, args={"a": object()}) is item
    assert item.update(1, 2, 3, 4.5, {"a": 1}) is item
    assert item.enable() is item and item.disable() is item
    assert item.start() is item.stop() is item.start(metadata=True) is item.stop(True) is None
    assert item.flush() is item.reset() is item
    given = [1, 2, 3]
    assert list(item.iter(given)) == given
    source = iter(given)
    assert next(iter(item.iter(source))) == 1 and list(source) == [2, 3]
    try:
        with item: raise KeyError("own")
    except KeyError: pass
    assert isinstance(item.cat, str) and isinstance(item.name, str) and repr(item)
assert (custom.cat, custom.name, node.cat, node.name) == ("c", "n", "compute", "forward")
assert (node.init.name, ai.data.preprocess.derive("collate").name) == (
    "forward.init", "preprocess.collate")
assert node.get_time() == 0
x.log_metadata("k", "v")

log = dftracer.initialize_log("d/t.pfw", "data", 3)
assert log is dftracer.get_instance() is dftracer.initialize_log(logfile=3, process_id="x")
log.enter_event(); log.log_event("a", "b", 1, 2); log.exit_event(); log.exit_event()
log.log_metadata_event("k", object()); log.flush(); log.finalize(); log.finalize()
assert log.get_time() == 0
assert state() == before
"""
)


@pytest.mark.parametrize("env", [{}, {"DFTRACER_ENABLE": "0"}])
def test_off_everything_is_what_it_was(env: dict[str, str], tmp_path: Path) -> None:
    run_python(OFF, cwd=tmp_path, env=env, enable=False)
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_on_and_off_have_the_same_face(tmp_path: Path) -> None:
    program = """\
        import json
        from dftracer.python import DFTracerAI, ai, dft_fn, dftracer
        things = (ai, ai.compute, ai.compute.forward, DFTracerAI(cat="c"), dft_fn("c"), dftracer)
        print(json.dumps([[n for n in dir(thing) if n[0] != "_"] for thing in things]))
    """
    on, off = (run_python(program, cwd=tmp_path, enable=enable) for enable in (True, False))
    assert json.loads(on.stdout) == json.loads(off.stdout)


# ---- The switch ---------------------------------------------------------------------------------

USE = """\
from dftracer.python import DFTRACER_ENABLE, ai, dftracer
@ai.compute.forward
def forward(): return 1
log = dftracer.initialize_log("t.pfw")
assert forward() == 1
log.finalize()
print(DFTRACER_ENABLE)
"""


@pytest.mark.parametrize(
    ("word", "on"),
    [
        *[(word, True) for word in ("true", "YES", "On")],
        *[(word, False) for word in ("0", "False", "no", "OFF", "")],
    ],
)
def test_words_of_the_switch(word: str, on: bool, tmp_path: Path) -> None:
    done = run_python(USE, cwd=tmp_path, env={"DFTRACER_ENABLE": word}, enable=False)
    assert done.stdout == f"{on}\n"
    assert [path.name for path in files(tmp_path)] == (["t.pfw.gz"] if on else [])


def test_a_word_that_is_none_is_named_and_means_off(tmp_path: Path) -> None:
    line = re.compile(r"dftracer: [^\n]*DFTRACER_ENABLE[^\n]*maybe[^\n]*\n")
    run_python(USE, cwd=tmp_path, env={"DFTRACER_ENABLE": "maybe"}, enable=False, stderr=line)
    assert files(tmp_path) == []


def test_a_configuration_file_switches_on_and_the_variable_off(tmp_path: Path) -> None:
    (tmp_path / "on.yaml").write_text("enable: true\n")
    env = {"DFTRACER_CONFIGURATION": "on.yaml"}
    run_python(USE, cwd=tmp_path, env={**env, "DFTRACER_ENABLE": "0"}, enable=False)
    assert files(tmp_path) == []
    run_python(USE, cwd=tmp_path, env=env, enable=False)
    assert shapes(read_one(tmp_path)) == [("compute", "forward", {})]


def test_switched_on_by_the_program_itself(tmp_path: Path) -> None:
    early = "import os; os.environ['DFTRACER_ENABLE'] = '1'\n"
    run_python(early + USE, cwd=tmp_path, enable=False)
    assert shapes(read_one(tmp_path)) == [("compute", "forward", {})]
    late = tmp_path / "late"
    late.mkdir()
    line = re.compile(r"dftracer: DFTRACER_ENABLE was set after [^\n]*: nothing [^\n]*\n")
    run_python("import dftracer.python\n" + early + USE, cwd=late, enable=False, stderr=line)
    assert files(late) == []


# ---- Without the extension ----------------------------------------------------------------------

BLOCKED = """\
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "dftracer._core": raise ImportError("no extension for this Python")
sys.meta_path.insert(0, Blocker())
"""
ONE_LINE = re.compile(r"dftracer: nothing will be recorded: [^\n]+\n")


def without_extension(where: Path, *left_out: str) -> dict[str, str]:
    """A copy of the installed package that lacks files, and the way to it."""
    import dftracer

    source = Path(next(iter(dftracer.__path__)))
    ignored = shutil.ignore_patterns(*left_out, "__pycache__")
    shutil.copytree(source, where / "copy" / "dftracer", ignore=ignored)
    return {"PYTHONPATH": str(where / "copy")}


@pytest.mark.parametrize("how", ["blocked", "missing", "library"])
def test_without_the_extension_it_works_as_off(how: str, tmp_path: Path) -> None:
    env: dict[str, str] = {}
    head = ""
    if how == "blocked":
        head = BLOCKED
    else:
        env = without_extension(tmp_path, "_core*" if how == "missing" else "libdftracer*")
    where = tmp_path / "run"
    where.mkdir()
    # Wanted: one line says why there is nothing. Not wanted: not a word.
    for enable in (True, False):
        done = run_python(
            head + USE, cwd=where, env=env, enable=enable, stderr=ONE_LINE if enable else ""
        )
        assert done.stdout == "False\n"
        run_python(head + OFF, cwd=where, env=env, enable=enable, stderr=ONE_LINE if enable else "")
    assert [path.name for path in where.iterdir()] == ["program.py"]
