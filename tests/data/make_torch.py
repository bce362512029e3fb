#!/usr/bin/env python3
"""Makes the golden traces of torch.profiler: run it where torch==2.13.0 is installed."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

HERE = Path(__file__).resolve().parent


def main() -> None:
    model = torch.nn.Linear(8, 4)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for _ in range(3):
            with record_function("training_step"):
                model(torch.ones(2, 8)).sum().backward()
    path = HERE / "torch-2.13.trace.json"
    prof.export_chrome_trace(str(path))
    text = path.read_text(encoding="utf-8").replace(os.uname().nodename, "node1")
    text = re.sub(r'("traceName": ")[^"]*', r"\1torch.trace.json", text)
    path.write_text(text, encoding="utf-8")
    (HERE / "torch-2.13.trace.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(path.name, len(text), "bytes")


if __name__ == "__main__":
    main()
