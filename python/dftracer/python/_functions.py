"""Python functions that are chosen by name, without annotations, as events of the category FUNC.

From Python 3.12 on by sys.monitoring, where functions that are not chosen cost nothing after their
first call; by the interpreter's profile hook before. docs/howto/functions.md says what is recorded.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

from dftracer import _core

__all__ = ["Chooser", "remove", "watch"]

# Of the ids of tools, those that no kind of tool has been given.
_TOOL_IDS = (4, 3)
_NAME = "dftracer"
_OPTIMIZED = 1  # co_flags: a function, and not a module or the body of a class
_tool: int | None = None
_watching = False


def _matcher(pattern: str) -> Callable[[str], Any]:
    text = "".join(
        ".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern
    )
    return re.compile(text, re.DOTALL).fullmatch


class Chooser:
    """Which functions are recorded, and their names: `module.qualname`.

    A pattern names functions, or modules and with them all their functions.
    """

    def __init__(self, patterns: str) -> None:
        words = [word.strip() for word in patterns.split(",")]
        self._wanted = [_matcher(word) for word in words if word and word[0] != "!"]
        self._unwanted = [_matcher(word[1:]) for word in words if len(word) > 1 and word[0] == "!"]

    def name(self, module: str, code: CodeType) -> str | None:
        if not code.co_flags & _OPTIMIZED or module.partition(".")[0] == _NAME:
            return None
        qualified: str = getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on
        if code.co_name[0] == "<" and code.co_name != "<lambda>":  # a comprehension
            return None
        for known in (module, _script()) if module == "__main__" else (module,):
            if known and self._chooses(known, f"{known}.{qualified}"):
                return f"{module}.{qualified}"
        return None

    def _chooses(self, module: str, function: str) -> bool:
        if any(match(function) or match(module) for match in self._unwanted):
            return False
        return any(match(function) or match(module) for match in self._wanted)


def _script() -> str:
    """What people call the module `__main__`: the script or the module that Python runs."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        name: str = spec.name
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    file: str = getattr(main, "__file__", None) or ""
    return os.path.splitext(os.path.basename(file))[0]


def _module_of_caller() -> str:
    # The frame below that of _decide: the function that is called.
    name = sys._getframe(2).f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def _say(reason: str) -> None:
    print(f"dftracer: Python functions are not recorded: {reason}", file=sys.stderr)


def watch(patterns: str) -> bool:
    """Record the calls of these functions from now on; False, with a line on stderr, if another
    tool is in the way."""
    global _watching
    if _watching:  # some interpreters read a .pth file twice
        return True
    chooser = Chooser(patterns)
    if hasattr(sys, "monitoring"):
        _watching = _watch_by_monitoring(chooser)
    else:
        _watching = _watch_by_profile_hook(chooser)
    return _watching


def _watch_by_monitoring(chooser: Chooser) -> bool:
    global _tool
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    events = monitoring.events
    for tool in _TOOL_IDS:
        if monitoring.get_tool(tool) is None:
            break
    else:
        _say("sys.monitoring has no free tool id")
        return False
    monitoring.use_tool_id(tool, _NAME)
    _tool = tool
    local = events.PY_START | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME

    def _decide(code: CodeType) -> str | None:
        name = chooser.name(_module_of_caller(), code)
        if name is not None:
            monitoring.set_local_events(tool, code, local)
        return name

    _core._choose_functions(_decide, monitoring.DISABLE)
    for event, callback in (
        (events.PY_START, _core._function_starts),
        (events.PY_RESUME, _core._function_resumes),
        (events.PY_THROW, _core._function_resumes),
        (events.PY_RETURN, _core._function_ends),
        (events.PY_YIELD, _core._function_ends),
        (events.PY_UNWIND, _core._function_ends),
    ):
        monitoring.register_callback(tool, event, callback)
    # Exceptions leave and enter functions only by events that cannot be local.
    monitoring.set_events(tool, events.PY_START | events.PY_THROW | events.PY_UNWIND)
    return True


def _watch_by_profile_hook(chooser: Chooser) -> bool:
    if sys.getprofile() is not None:
        _say("another profiler has the interpreter's hook")
        return False

    def _decide(code: CodeType) -> str | None:
        return chooser.name(_module_of_caller(), code)

    _core._choose_functions(_decide, None)
    threading.setprofile(_core._profile_thread)
    _core._profile_thread()
    return True


def remove() -> None:
    """Watch no functions any more."""
    global _tool, _watching
    if not _watching:
        return
    _watching = False
    if hasattr(sys, "monitoring"):
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        if _tool is not None:
            monitoring.set_events(_tool, 0)
            monitoring.free_tool_id(_tool)
            _tool = None
        return
    sys.setprofile(None)
    threading.setprofile(None)
