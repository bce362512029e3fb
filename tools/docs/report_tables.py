"""reference/report-tables.md: every table of a report and its columns, from their schema."""

from __future__ import annotations

INTRO = """\
# Report tables

Generated from the schema that the report itself uses. `dftracer report --json`, `--csv` and
`--parquet` write these tables, and `dftracer.reports.load()` returns them as attributes.
[The report](../report.md#how-time-is-measured) explains how the numbers are computed.

Columns that end in `_ns` are nanoseconds; timestamps count from the Unix epoch. Columns that end in
`_bytes` are bytes. A value that cannot be known is null (`None` in Python).

The views of DFAnalyzer map to: layers (`layers`), time, operations, size and bandwidth (`calls`,
`sizes`, `layers`), overlap (`overlap_percent`), time ranges (`timeline`, `heat`), files (`files`,
`directories`), processes (`processes`), hosts (`hosts`), epochs and steps (`epochs`, `steps`).
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def make_page() -> str:
    from dftracer.reports.model import SCHEMAS

    names = ", ".join(f"[`{name}`](#{name})" for name in SCHEMAS)
    parts = [INTRO, f"{names}\n"]
    for name, schema in SCHEMAS.items():
        meaning = schema.meaning[:1].upper() + schema.meaning[1:]
        parts.append(f"## {name}\n\n{meaning.rstrip('.')}.\n")
        rows = [f"| `{c.name}` | {c.kind} | {cell(c.meaning)} |" for c in schema.columns]
        parts.append(
            "\n".join(["| column | type | meaning |", "| --- | --- | --- |", *rows]) + "\n"
        )
    return "\n".join(parts)
