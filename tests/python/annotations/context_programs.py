"""For the tests of contexts: programs whose events say what arguments held where they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from support import traces
from support.python_face import own, run_python

HEAD = """
import asyncio, contextvars, gc, os, sys, threading
from concurrent.futures import ThreadPoolExecutor
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer

dftracer.initialize_log("t.pfw")
forward, backward, item = ai.compute.forward, ai.compute.backward, ai.data.item

def mark(node=forward, **given):
    '''An event whose name says who asks; what it carries is the answer.'''
    with node(args=given) if given else node:
        pass

def thread(function, *args):
    one = threading.Thread(target=function, args=args)
    one.start()
    one.join()
"""

Events = list[tuple[str, dict[str, Any]]]


def events_of(program: str, cwd: Path, *, by_time: bool = False, **how: Any) -> Events:
    """Names and arguments, in the order of the ends, which is that of the file for one thread."""
    run_python(HEAD + re.sub(r"^ {8}", "", program, flags=re.MULTILINE), cwd=cwd, **how)
    found = [event for trace in traces.read_directory(cwd) for event in trace.recorded]
    if by_time:
        found.sort(key=lambda event: (event["ts"] + event["dur"], event["id"]))
    return [(event["name"], own(event)) for event in found]
