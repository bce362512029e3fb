"""Figures in notebooks."""

from __future__ import annotations

import html
import itertools

from dftracer.reports.render.figures import Figure
from dftracer.reports.render.script import json_text, plotly_script

_numbers = itertools.count(1)
_shown: set[str] = set()

# The first figure that this process shows includes the library; the others wait for it.
_LOAD = """
window.dftracerPlotly = window.dftracerPlotly || (async () => {
  const text = document.getElementById(%s).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const module = { exports: {} };
  new Function("module", "exports", await new Response(plain).text())(module, module.exports);
  return module.exports;
})();
"""

_DRAW = """
(async () => {
  const pause = () => new Promise((done) => setTimeout(done, 50));
  for (let n = 0; n < 600 && !window.dftracerPlotly; ++n) await pause();
  const plotly = await window.dftracerPlotly;
  const figure = JSON.parse(document.getElementById(%s).textContent);
  plotly.newPlot(document.getElementById(%s), figure.data, figure.layout,
                 { responsive: true, displaylogo: false });
})();
"""


def figure_html(figure: Figure) -> str:
    """A piece of a page that draws the figure, without a network."""
    name = f"dftracer-{id(_shown):x}-{next(_numbers)}"
    parts = []
    if "library" not in _shown:
        _shown.add("library")
        library = plotly_script()
        parts.append(f'<script type="text/plain" id="{name}-library">{library}</script>')
        parts.append(f"<script>{_LOAD % json_text(f'{name}-library')}</script>")
    spec = json_text({"data": figure.views[0].data, "layout": figure.layout()})
    title, meaning = html.escape(figure.title), html.escape(figure.meaning)
    parts += [
        f"<p><strong>{title}</strong><br>{meaning}</p>",
        f'<div id="{name}" role="img" aria-label="{title}"></div>',
        f'<script type="application/json" id="{name}-data">{spec}</script>',
        f"<script>{_DRAW % (json_text(f'{name}-data'), json_text(name))}</script>",
    ]
    return "\n".join(parts)
