"""The section of the page with a comparison."""

from __future__ import annotations

from collections.abc import Callable

from dftracer.reports.compare import Comparison
from dftracer.reports.render.compare_text import gate, verdict
from dftracer.reports.render.figures import Figure
from dftracer.reports.render.markup import escaped, table_html

NOISE = (
    "Noise is estimated from repeated steps: the variation of the means of batches of consecutive "
    "steps in both runs, without the first step of each epoch. Effects that differ between runs "
    "but not between steps (another node, a warm cache) do not show in one run of each."
)


def section(
    comparison: Comparison,
    found: dict[str, Figure],
    draw: Callable[[Figure, int], str],
    shrink: int,
) -> str:
    kind, sentence = verdict(comparison)
    if gate(comparison):
        sentence += f" It is {gate(comparison)}."
    parts = [
        f'<p class="verdict {kind}">{escaped(sentence)}</p>',
        f'<p class="note">{escaped(NOISE)}</p>',
    ]
    drawn = [
        draw(found[name], shrink)
        for name in ("changes", "step_distribution", "call_changes")
        if name in found
    ]
    parts += drawn
    tables = [("finding_changes", "Findings, before and now")]
    if "changes" not in found:
        tables.insert(0, ("changes", "What changed"))
    for name, title in tables:
        table = comparison.tables[name]
        if len(table):
            shown = table_html(table, f"table-{name}", table.schema.meaning, shrink=shrink)
            parts.append(f'<div class="block"><h3>{escaped(title)}</h3>{shown}</div>')
    return "\n".join(parts)
