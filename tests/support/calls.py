"""The table of calls, as tools/calls_table.py reads it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from calls_table import Row, columns, read_table, symbols

__all__ = ["Row", "columns", "read_table", "symbols"]
