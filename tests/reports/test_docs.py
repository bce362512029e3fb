"""docs/report.md explains every column as the schema does."""

from __future__ import annotations

from pathlib import Path

from dftracer.reports.model import SCHEMAS

DOCS = Path(__file__).parents[2] / "docs" / "report.md"


def test_every_column_is_explained() -> None:
    sections = DOCS.read_text(encoding="utf-8").split("\n### ")[1:]
    text = {section.split("\n")[0]: section for section in sections}
    for name, schema in SCHEMAS.items():
        for column in schema.columns:
            row = f"| `{column.name}` | {column.kind} | {column.meaning} |"
            assert row in text[name], (name, column.name)
