"""`dftracer env`: prints shell commands that set the variables of `dftracer run`, or unset them."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping

from dftracer import _libcore
from dftracer.commands._cli.recording import (
    INJECTED,
    OWN_FAILURE,
    add_options,
    require_library,
    settings,
)
from dftracer.errors import DFTracerError

EXAMPLES = """\
  eval "$(dftracer env -o traces)"                    bash, zsh, sh
  eval "`dftracer env --shell csh -o traces`"         csh, tcsh
  dftracer env --shell fish -o traces | source        fish
  eval "$(dftracer env --unset)"                      the reverse

From then on, every program that the shell starts is traced; see docs/howto/clusters.md.
"""

# The shells that --shell accepts, and the one whose syntax they have.
SHELLS = {"bash": "bash", "csh": "csh", "fish": "fish", "sh": "bash", "tcsh": "csh", "zsh": "bash"}
# File names begin as without a prefix of the user's: the programs are not known here.
NAME = "trace"
# What settings() can set.
VARIABLES = (
    "DFTRACER_ENABLE",
    "DFTRACER_INIT",
    "DFTRACER_LOG_FILE",
    "DFTRACER_DATA_DIR",
    "DFTRACER_DISABLE_IO",
    "DFTRACER_INC_METADATA",
    "DFTRACER_STORES",
    "DFTRACER_OTEL",
    "DFTRACER_FUNCTIONS",
    "DFTRACER_TORCH",
    "DFTRACER_SUMMARY",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shell",
        choices=tuple(SHELLS),
        metavar="SHELL",
        help=f"the syntax to print: {', '.join(SHELLS)} (default: that of $SHELL, or bash)",
    )
    parser.add_argument("--unset", action="store_true", help="print commands that undo the others")
    add_options(parser, name=f"prefix of the file names (default: {NAME})")


def run(args: argparse.Namespace) -> int:
    shell = SHELLS[args.shell] if args.shell else default_shell(os.environ)
    try:
        changes = _unset() if args.unset else _set(args)
    except DFTracerError as error:
        code = 1 if error.exit_code == OWN_FAILURE else error.exit_code
        raise DFTracerError(str(error), code) from None
    text = "".join(_line(shell, name, value) for name, value in changes.items())
    # Paths are bytes; the error handler of stdout would change those that are not UTF-8.
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(text))
    return 0


def default_shell(environment: Mapping[str, str]) -> str:
    return SHELLS.get(os.path.basename(environment.get("SHELL", "")), "bash")


def _set(args: argparse.Namespace) -> dict[str, str | None]:
    require_library()
    return dict(settings(args, [NAME], create=False))


def _unset() -> dict[str, str | None]:
    """Unset for None. LD_PRELOAD keeps the libraries of others, and so do NVTX and ITT."""
    changes: dict[str, str | None] = dict.fromkeys(VARIABLES)
    for variable in INJECTED.values():
        if os.path.basename(os.environ.get(variable, "")) == _libcore.INJECT.name:
            changes[variable] = None
    words = os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":")
    others = [word for word in words if word and os.path.basename(word) != _libcore.PRELOAD.name]
    changes["LD_PRELOAD"] = ":".join(others) or None
    return changes


def _line(shell: str, name: str, value: str | None) -> str:
    if shell == "csh":
        # `eval` of several lines joins them: each ends with a semicolon.
        return f"unsetenv {name};\n" if value is None else f"setenv {name} {_csh(name, value)};\n"
    if shell == "fish":
        return f"set -e {name};\n" if value is None else f"set -gx {name} {_fish(value)};\n"
    return f"unset {name}\n" if value is None else f"export {name}={shlex.quote(value)}\n"


def _csh(name: str, value: str) -> str:
    if "\n" in value:
        raise DFTracerError(f"{name}: csh cannot read a line break in {value!r} from `eval`", 1)
    # History is expanded inside single quotes as well.
    return "'" + value.replace("'", "'\\''").replace("!", "\\!") + "'"


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
