"""Recognizes a directory in which DFTracer's own package was installed over this one, or under it.

Both install into `dftracer/`. pip overwrites files of equal names, and deletes them when either is
uninstalled. Imported only when something is wrong, by the commands, and by `dftracer doctor`.
"""

from __future__ import annotations

import os
import sys

DIRECTORY = os.path.dirname(os.path.abspath(__file__))
# Files of DFTracer's distributions `dftracer` and `pydftracer`, of all 2.x releases, that this
# package must never have. dftracer/__init__.py looks for the same two.
THEIRS = ("_version.py", os.path.join("python", "_version.py"))
# Files of this package that theirs overwrites, and removes when it is uninstalled.
OURS = (
    "__init__.py",
    os.path.join("lib64", "libdftracer_core.so"),
    os.path.join("lib64", "libdftracer_preload.so"),
)
REPAIR = "python -m pip uninstall -y dftracer pydftracer && python -m pip install 'pydftracer>=3'"


def replaced() -> bool:
    """Whether `import dftracer` ran another __init__.py than ours, or found none."""
    return not hasattr(sys.modules["dftracer"], "_OURS")


def explain() -> str | None:
    """One line: what is mixed, and the commands that repair it. None for a healthy package."""
    theirs = [name for name in THEIRS if os.path.exists(os.path.join(DIRECTORY, name))]
    missing = [name for name in OURS if not os.path.exists(os.path.join(DIRECTORY, name))]
    if not theirs and not (missing and replaced()):
        return None
    if theirs:
        what = f"contains files of two packages, this one and DFTracer's own ({', '.join(theirs)})"
    else:
        what = f"lacks {', '.join(missing)}, as after uninstalling DFTracer's own package"
    return f"{DIRECTORY} {what}; to repair it: {REPAIR}"


_warned = False


def warned() -> bool:
    return _warned


def warn() -> None:
    """Prints the line once per process."""
    global _warned
    text = None if _warned else explain()
    if text is not None and sys.stderr is not None:
        _warned = True
        print(f"dftracer: {text}", file=sys.stderr)
