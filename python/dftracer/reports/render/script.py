"""What a page carries in its scripts: data that cannot end one, and plotly's JavaScript."""

from __future__ import annotations

import base64
import importlib.util
import json
import zlib
from pathlib import Path

from dftracer.errors import DFTracerError
from dftracer.reports.render.figures import NO_PLOTLY


def json_text(value: object) -> str:
    """JSON for inside a <script>: no name in it can end the script or begin another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    # Half a character, of bytes that are no UTF-8, has no place in a file.
    return text.encode("utf-8", "replace").decode()


def plotly_file() -> Path:
    # Found and not imported: importing it takes longer than making a page.
    spec = importlib.util.find_spec("plotly")
    for place in spec.submodule_search_locations or () if spec else ():
        file = Path(place, "package_data", "plotly.min.js")
        if file.is_file():
            return file
    raise DFTracerError(NO_PLOTLY)


def plotly_script() -> str:
    """Plotly's library, compressed: 2 MB of base64 in the place of 5 MB of text."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = packer.compress(plotly_file().read_bytes()) + packer.flush()
    return base64.b64encode(packed).decode()
