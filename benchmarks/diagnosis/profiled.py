"""A case of training.py under torch.profiler: python profiled.py CASE. Prints the top entries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import training

TOP = 2


def main() -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        training.main()
    if os.environ.get("RANK", "0") != "0":
        return 0
    rows = sorted(profile.key_averages(), key=lambda row: -row.self_cpu_time_total)
    whole = sum(row.self_cpu_time_total for row in rows) or 1
    shown = [f"{row.key} {row.self_cpu_time_total / whole:.0%}" for row in rows[:TOP]]
    Path("profile.txt").write_text(", ".join(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
