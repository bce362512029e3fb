"""The reference pages cover what the code offers: every rule, name, option, macro and column."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import c_api
import command_line
import pytest
import python_api
import report_tables

from dftracer.reports.findings import RULES
from dftracer.reports.model import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = (ROOT / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
MODULES = ("dftracer.python", "dftracer.python.torch", "dftracer.trace", "dftracer.reports")


def percent(share: float) -> str:
    if share == 0:
        return "always"
    return "never" if share > 1 else f"{100 * share:g} %"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_finding_has_an_entry(rule: object) -> None:
    name, shares = rule.name, rule.shares  # type: ignore[attr-defined]
    row = " | ".join(percent(share) for share in shares)
    assert f"| [`{name}`](#{name}) | {row} |" in FINDINGS
    section = FINDINGS.split(f"\n### {name}\n", 1)[1].split("\n## ")[0].split("\n### ")[0]
    for part in ("**When.**", "**What it means.**", "**What to do.**"):
        assert part in section, part


def test_no_finding_has_an_entry_without_a_rule() -> None:
    assert set(re.findall(r"^### (.*)$", FINDINGS, re.MULTILINE)) == {rule.name for rule in RULES}


def test_every_python_name_has_a_signature_and_a_sentence() -> None:
    shown: dict[str, set[str]] = {}
    for _, module, entries in python_api.chapters():
        for entry in entries:
            shown.setdefault(module, set()).add(entry.name)
            for one in (entry, *entry.members):
                assert one.signature, f"{module}.{entry.name}.{one.name}"
                assert len(one.text) > 10, f"{module}.{entry.name}.{one.name} has no sentence"
    for name in MODULES:
        missing = set(importlib.import_module(name).__all__) - shown[name]
        assert not missing, name


def test_signatures_are_those_of_the_sources() -> None:
    page = python_api.make_page()
    assert "iter(func: Iterable[T], name: str = 'loop', iter_name: str = 'step')" in page
    assert "initialize_log(" in page
    assert "\ndef " not in page  # a signature, not a body


def test_every_verb_and_option_is_shown() -> None:
    page = command_line.make_page()
    for verb, parser in command_line.parsers().items():
        section = page.split(f"\n## {verb}\n", 1)[1].split("\n## ")[0]
        for action in parser._actions:
            for option in action.option_strings:
                if option not in ("-h", "--help") and action.help != "==SUPPRESS==":
                    assert option in section, (verb, option)


def test_every_macro_and_function_is_shown() -> None:
    page = c_api.make_page()
    for header in ("dftracer.h", "dftracer.hpp"):
        text = (ROOT / "include" / "dftracer" / header).read_text(encoding="utf-8")
        text = text.split("#ifndef DFTRACER_NO_OLD_NAMES")[0]
        names = re.findall(r"^#define (DFTRACER_C(?:PP)?_\w*[A-Z])\(", text, re.MULTILINE)
        names += re.findall(
            r"^[a-z][\w \*]*?(dftracer_[a-z_]*[a-z])\([^;{]*\);", text, re.MULTILINE
        )
        assert names
        assert not [name for name in names if name not in page]


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_column_is_shown(table: str) -> None:
    section = report_tables.make_page().split(f"\n## {table}\n", 1)[1].split("\n## ")[0]
    for column in SCHEMAS[table].columns:
        assert f"| `{column.name}` | {column.kind} |" in section


def test_the_vocabulary_is_whole() -> None:
    from dftracer.python import ai

    table = (ROOT / "docs" / "ai.md").read_text(encoding="utf-8").split("## The vocabulary")[1]
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]*)`", table.split("\n## ")[0]))))
    for category, node in ai._children.items():
        assert category in words, category
        assert set(node._children) <= words, category
