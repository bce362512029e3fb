"""Run by dftracer.pth when Python starts and DFTRACER_OTEL is set.

Adds a span processor (dftracer.python.otel) to each TracerProvider of OpenTelemetry that the
program makes. A program that never imports OpenTelemetry pays for one entry in sys.meta_path.
"""

from __future__ import annotations

import os
import sys

from dftracer._stores import find_imports_of, forget_imports_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from types import ModuleType

__all__ = ["MODULES", "arm", "forget", "watch"]

MODULES = frozenset(("opentelemetry.sdk.trace",))
_OFF = ("", "0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def _wanted() -> bool:
    # A configuration file may turn tracing on; the library decides.
    return _is_on("DFTRACER_OTEL") and (
        _is_on("DFTRACER_ENABLE")
        or ("DFTRACER_ENABLE" not in os.environ and bool(os.environ.get("DFTRACER_CONFIGURATION")))
    )


def _imported(module: ModuleType, name: str) -> None:
    try:
        from dftracer.python import otel

        otel.instrument(module)
    except Exception as error:  # the program's import must not fail because of us
        reason = f"{type(error).__name__}: {error}"
        print(f"dftracer: {name} is not instrumented: {reason}", file=sys.stderr)


def arm() -> None:
    """Record spans once OpenTelemetry is imported, if the environment enables that."""
    if _wanted():
        watch()


def watch() -> None:
    find_imports_of(MODULES, _imported)


def forget() -> None:
    """Stop watching imports."""
    forget_imports_of(MODULES)
