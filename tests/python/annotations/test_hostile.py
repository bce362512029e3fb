"""The extension's types, used as nobody should: wrong values, wrong order, code that runs in the
middle of everything. Whatever is raised is an exception; the interpreter lives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import traces
from support.python_face import run_python
from support.run import run

PROGRAM = Path(__file__).parent / "programs" / "hostile.py"
ROUNDS = 10_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_anything_with_anything(tmp_path: Path, seed: int) -> None:
    # -X dev: freed memory is overwritten, and what is written beyond its end is found.
    done = run(sys.executable, "-X", "dev", PROGRAM, seed, ROUNDS, cwd=tmp_path, stderr=None)
    assert done.stdout.split()[-1] == str(ROUNDS)
    assert len(traces.read_one(tmp_path, open_parents=True).recorded) > 100


TENSOR = """
from dftracer.python import ai, dftracer

dftracer.initialize_log("t.pfw")

class Tensor:
    __module__ = "torch"
    ndim = 0
    def __init__(self, act):
        self.act = act
    @property
    def is_cpu(self):
        self.act()
        return True
    def item(self):
        return 5
"""


@pytest.mark.parametrize(
    "program",
    [
        # The dictionary is emptied, or refilled, while it is read.
        "d = {}\nd.update({f'k{i}': Tensor(d.clear) for i in range(9)})\nai.compute.update(args=d)",
        "d = {}\ndef act():\n    d.clear(); d.update({f'n{i}': i for i in range(1000)})\n"
        "d.update({f'k{i}': Tensor(act) for i in range(20)})\nai.compute.update(args={'d': d})",
        # So is the list.
        "l = []\nl.extend(Tensor(l.clear) for i in range(1000))\nai.compute.update(args={'l': l})",
        # The node gets other arguments while one is being written.
        "act = lambda: ai.compute.update(**{f'k{i}': i for i in range(100)})\n"
        "ai.compute.update(args={'a': 1, 't': Tensor(act), 'b': 2})",
        # An event ends in the middle of it.
        "def act():\n    with ai.compute(args={'x': [1]}):\n        pass\n"
        "ai.compute.update(args={'a': 1, 't': Tensor(act), 'b': [Tensor(act)]})",
        # The node itself goes away.
        "class Holder: pass\nh = Holder()\nh.n = ai.compute(args={'x': 1})\n"
        "h.n.update(args={'t': Tensor(lambda: h.__dict__.clear())})",
    ],
)
def test_values_that_run_code(tmp_path: Path, program: str) -> None:
    end = "\nwith ai.compute:\n    pass\n"
    env = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
    run_python(TENSOR + program + end, cwd=tmp_path, env=env)
    assert traces.read_one(tmp_path).recorded[-1]["name"] == "compute"
