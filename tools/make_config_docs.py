#!/usr/bin/env python3
"""Writes docs/configuration.md from src/session/config_table.def.

With --check, writes nothing and exits 1 if the page is not what the table says.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "session" / "config_table.def"
PAGE = ROOT / "docs" / "configuration.md"

INTRO = """\
<!-- Made by tools/make_config_docs.py from src/session/config_table.def; change it there. -->

# Configuration

Settings come from environment variables and, if `DFTRACER_CONFIGURATION` names one, from a YAML
file. A process reads them once, when it starts; its children inherit the variables.

- **A variable takes precedence over the file**, in both directions: `DFTRACER_ENABLE=0` switches
  off what the file switches on. Only the data directories of both are combined.
- **A switch is on** for `1`, `true`, `yes` and `on`, and **off** for `0`, `false`, `no`, `off` and
  the empty value, in upper or lower case. For every other setting, an empty value means the
  default.
- **Invalid settings are reported and ignored**, in one line on stderr (or in the file of
  `DFTRACER_LOG_PATH`); the program and its trace continue. This includes unknown names: a misspelt
  variable is reported with the one that was probably meant. While tracing is off, only an invalid
  value of `DFTRACER_ENABLE` itself and an unusable YAML file are reported.
- A program that runs with the privileges of another user (such as set-user-ID) ignores all settings
  and is not traced.
- [Interception](interception.md#file-filter) explains `DFTRACER_DATA_DIR` and the switches for I/O
  calls. In a preloaded program, relative paths in these variables are made absolute for its
  children; those in the YAML file stay as they are.

## The YAML file

```yaml
enable: true
profiler:                # or `tracer:`
  log_file: /scratch/run7/trace
  data_dirs:             # or one text: /data/train:/data/valid
    - /data/train
    - /data/valid
  compression: true
features:
  metadata: true
  io:
    enable: true         # the opposite of DFTRACER_DISABLE_IO
    stdio: false
internal:
  write_buffer_size: 524288
```

All keys are optional, including `enable`. Each item of a list is one directory, even if its name
contains a `:`. A file larger than 1 MiB is not read. Anchors, aliases and further documents in it
are ignored, with a line that says so.
"""

NO_EFFECT = """\
These are settings of other releases or builds, accepted so that existing job scripts work. If one
of them requests something, one line says that nothing happens, and why.
"""


@dataclass
class Setting:
    """One row of the table, as written there."""

    status: str
    field: str
    type: str
    variable: str
    yaml: str
    default: str
    allowed: str
    text: str


def columns(row: str) -> list[str]:
    """The arguments of a macro call; adjacent string literals become one text, without quotes."""
    parts: list[str] = []
    depth = 0
    part = ""
    for token in re.findall(r'"[^"]*"|[(),]|[^"(),]+', row):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += token
    parts.append(part)
    return [
        "".join(re.findall(r'"([^"]*)"', part)) if part.lstrip().startswith('"') else part.strip()
        for part in parts
    ]


def read_table(text: str) -> list[tuple[str, list[Setting]]]:
    """The groups of the table with their settings, in its order."""
    text = re.sub(r"^\s*(//|#).*\n", "", text, flags=re.MULTILINE)
    groups: list[tuple[str, list[Setting]]] = []
    for macro, row in re.findall(r"^DFT_(GROUP|SETTING)\((.*?)\)\n(?=DFT_|\n)", text, re.S | re.M):
        cells = columns(row)
        if macro == "GROUP":
            groups.append((cells[0], []))
        elif len(cells) == 8:
            groups[-1][1].append(Setting(*cells))
        else:
            raise SystemExit(f"make_config_docs: {len(cells)} columns, not 8: {row}")
    return groups


def key_cell(setting: Setting) -> str:
    if not setting.yaml:
        return ""
    if setting.yaml.startswith("!"):
        return f"`{setting.yaml[1:]}` (opposite)"
    return f"`{setting.yaml}`"


def default_cell(setting: Setting) -> str:
    if setting.type == "Switch":
        return "on" if setting.default == "true" else "off"
    if setting.type == "Number":
        return setting.default
    if "::k" in setting.default:
        return f"`{setting.default.split('::k')[1].upper()}`"
    return f"`{setting.default}`" if setting.default not in ("", "List{}") else ""


def meaning_cell(setting: Setting) -> str:
    names = re.findall(r'"([^"]*)"', setting.allowed) if "one_of" in setting.allowed else []
    limits = re.match(r"range\((\d+), (\d+)\)", setting.allowed)
    if names:
        return f"{setting.text} One of {', '.join(f'`{name}`' for name in names)}."
    octal = re.match(r"octal\((\d+)\)", setting.allowed)
    if octal:
        return f"{setting.text} Up to {octal[1]}."
    if limits:
        return f"{setting.text} From {limits[1]} to {limits[2]}."
    return setting.text


def make_page(groups: list[tuple[str, list[Setting]]]) -> str:
    page = [INTRO]
    for title, settings in groups:
        effective = {setting.status == "Effective" for setting in settings}
        if len(effective) != 1:
            raise SystemExit(f"make_config_docs: group {title!r} mixes effective and other rows")
        page.append(f"\n## {title}\n\n")
        if effective == {True}:
            page.append("| variable | YAML key | default | meaning |\n| --- | --- | --- | --- |\n")
            for s in settings:
                cells = (f"`{s.variable}`", key_cell(s), default_cell(s), meaning_cell(s))
                page.append(f"| {' | '.join(cells)} |\n")
        else:
            page.append(NO_EFFECT)
            page.append("\n| variable | YAML key | why |\n| --- | --- | --- |\n")
            for s in settings:
                why = f"{s.text[0].upper()}{s.text[1:]}."
                cells = (f"`{s.variable}`", key_cell(s), why)
                page.append(f"| {' | '.join(cells)} |\n")
    return "".join(page)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: make_config_docs.py [--check]", file=sys.stderr)
        return 2
    text = TABLE.read_text(encoding="utf-8")
    groups = read_table(text)
    # A row that the pattern passes over must not vanish from the page.
    if sum(len(rows) for _, rows in groups) != len(re.findall(r"^DFT_SETTING\(", text, re.M)):
        print("make_config_docs: some rows of the table cannot be read", file=sys.stderr)
        return 1
    page = make_page(groups)
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
            return 0
        name = PAGE.relative_to(ROOT)
        print(f"{name} is not up to date: run tools/make_config_docs.py", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
