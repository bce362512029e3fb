"""reference/command-line.md: every verb, option, default and example, from the parsers."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from types import ModuleType
from typing import Any

INTRO = """\
# Command line

Generated from the parsers of the command itself; `dftracer VERB --help` prints the same.
[The `dftracer` command](../command.md) explains the verbs with sample output.

```text
dftracer VERB [OPTIONS] ...
python -m dftracer VERB [OPTIONS] ...
```
"""

EXIT_CODES = """\
## Exit codes

| code | meaning |
| --- | --- |
| 0 | success |
| 1 | a check failed: `doctor` found a problem, `--fail-if-slower` found the run slower, \
or an operation failed |
| 2 | usage error |
| 3 | a trace is damaged; the readable part was processed |
| 125 | `run` only: nothing could be recorded |
| 126 | `run` only: the program cannot be executed |
| 127 | `run` only: no such program |
| 130 | interrupted by Ctrl-C |

`dftracer run` otherwise exits as its program does, including death by a signal.
"""


class Missing(ModuleType):
    """Stands in for an extension that is not built: what a parser needs of it is empty."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: ()


def find_main() -> ModuleType:
    """The module with the table of verbs."""
    for name in ("dftracer._core", "dftracer._reader"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            sys.modules[name] = Missing(name)
            setattr(importlib.import_module("dftracer"), name.split(".")[1], sys.modules[name])
    for name in ("dftracer.commands._cli.main", "dftracer.commands.main"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "?"):
                raise
    raise SystemExit("docs: no module of dftracer.commands holds VERBS")


def parsers() -> dict[str, argparse.ArgumentParser]:
    main = find_main()
    names = [verb for verbs in main.VERBS.values() for verb in verbs]
    return {name: main.make_parser(name, main.load_verb(name)) for name in names}


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def code_words(text: str) -> str:
    """Options, variables and file names of a help text as code; what is code already stays."""
    word = r"(?<![\w`/-])(--?[a-z][\w-]*|DFTRACER_\w+|[\w-]*\.(?:pfw|gz|html|json)\b)"
    parts = text.split("`")
    parts[::2] = [re.sub(word, r"`\1`", part) for part in parts[::2]]
    return "`".join(parts)


def default_of(action: argparse.Action) -> str:
    value = action.default
    if value in (None, False, argparse.SUPPRESS, [], ""):
        return ""
    if action.nargs == 0 or "default" in (action.help or ""):
        return ""
    return f"`{value}`"


def option_names(action: argparse.Action) -> str:
    if not action.option_strings:
        metavar: Any = action.metavar or action.dest.upper()
        return f"`{metavar}{'...' if action.nargs in ('*', '+') else ''}`"
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or action.dest.upper())
        if action.choices:
            value = "|".join(str(choice) for choice in action.choices)
        value = f" {value}" if action.nargs != "?" else f" [{value}]"
    names = reversed(action.option_strings)
    return "<br>".join(f'<span class="nowrap">`{cell(name + value)}`</span>' for name in names)


def options_table(parser: argparse.ArgumentParser) -> list[str]:
    lines = ["| option | default | meaning |", "| --- | --- | --- |"]
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        text = (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
        text = text[:1].upper() + text[1:]
        lines.append(
            f"| {option_names(action)} | {default_of(action)} | {cell(code_words(text))} |"
        )
    return lines


def verb_section(name: str, parser: argparse.ArgumentParser) -> str:
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip()
    lines = [f"## {name}", "", f"{parser.description}", "", "```text", usage, "```", ""]
    lines += options_table(parser)
    if parser.epilog:
        lines += ["", "```text", parser.epilog.removeprefix("examples:\n").rstrip(), "```"]
    return "\n".join(lines)


def make_page() -> str:
    main = find_main()
    made = parsers()
    overview = []
    for group, verbs in main.VERBS.items():
        overview += [f"| **{group}** | |"]
        overview += [f"| [`{verb}`](#{verb}) | {cell(text)} |" for verb, text in verbs.items()]
    table = "\n".join(["| verb | |", "| --- | --- |", *overview])
    sections = [verb_section(name, parser) for name, parser in made.items()]
    return "\n\n".join([INTRO + "\n" + table, *sections, EXIT_CODES])
