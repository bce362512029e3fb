"""The one exception that ends a run of the benchmarks with a line instead of a traceback."""

from __future__ import annotations


class BenchError(Exception):
    """Something that a benchmark needs is missing or does not work."""
