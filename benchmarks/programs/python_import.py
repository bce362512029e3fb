"""How long an import takes, and how many shared libraries it loads: python_import.py MODULE."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module


def libraries() -> set[str]:
    with open("/proc/self/maps") as lines:
        return {line.split()[-1] for line in lines if ".so" in line}


before = libraries()
began = time.perf_counter_ns()
import_module(sys.argv[1])
spent = time.perf_counter_ns() - began
print(json.dumps({"import_ns": spent, "libraries": len(libraries() - before)}))
