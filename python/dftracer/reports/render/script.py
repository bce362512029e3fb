"""The scripts of a page: data, escaped so that it cannot end a script, and plotly."""

from __future__ import annotations

import base64
import importlib.util
import json
import zlib
from pathlib import Path

from dftracer.errors import DFTracerError
from dftracer.reports.render.figures import NO_PLOTLY


def json_text(value: object) -> str:
    """JSON for a <script> element: no name can end the script or start another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    # Names that are not UTF-8 contain surrogates, which cannot be encoded.
    return text.encode("utf-8", "replace").decode()


def plotly_file() -> Path:
    # Located without importing it, which takes longer than making a page.
    spec = importlib.util.find_spec("plotly")
    for place in spec.submodule_search_locations or () if spec else ():
        file = Path(place, "package_data", "plotly.min.js")
        if file.is_file():
            return file
    raise DFTracerError(NO_PLOTLY)


def plotly_script() -> str:
    """Plotly's library, compressed: 2 MB of base64 instead of 5 MB of text."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = packer.compress(plotly_file().read_bytes()) + packer.flush()
    return base64.b64encode(packed).decode()
