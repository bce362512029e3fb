"""Unannotated training scripts: calls of torch become events of the ai vocabulary.

Enabled by DFTRACER_TORCH=1; the callbacks for Lightning and Hugging Face use it as well.
docs/torch_profiler.md lists the calls and their events, and how steps and epochs are counted.

While torch.compile traces a program, every replaced function is exactly the one that it replaces,
so that graphs, their breaks and their guards stay what they were.
"""

from __future__ import annotations

from typing import Any

from dftracer.python._switch import ON

__all__ = ["install", "progress", "remove", "start_session"]

_patches: Any = None
_progress: Any = None
_users = 0


def progress() -> Any:
    """The counters of epochs and steps, while torch is instrumented."""
    return _progress


def install() -> bool:
    """Instrument torch; False if nothing can be recorded. Each call needs a remove()."""
    global _patches, _progress, _users
    if not ON:
        return False
    if _patches is not None:
        _users += 1
        return True
    from dftracer.python.torch import _calls
    from dftracer.python.torch._patch import Patches

    _patches = Patches()
    _users = 1
    try:
        _progress = _calls.install(_patches)
    except BaseException:
        remove()
        raise
    return True


def start_session() -> None:
    """Start the trace, unless the program or the preloaded library has started it."""
    if _patches is not None:
        from dftracer.python.torch import _calls

        _calls.start_once()


def remove(all_users: bool = True) -> None:
    """Restore the functions of torch."""
    global _patches, _progress, _users
    _users = 0 if all_users else max(_users - 1, 0)
    if _patches is not None and _users == 0:
        _patches.undo()
        _patches = None
        if _progress is not None:
            _progress.close()
            _progress = None
