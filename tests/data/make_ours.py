#!/usr/bin/env python3
"""Makes the golden trace of this project: `python make_ours.py` with the package installed."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.members import pack  # noqa: E402

PROGRAM = """
import os
from dftracer.python import dftracer
log = dftracer.initialize_log("t.pfw", "all", 3)
for index in range(40):
    start = log.get_time()
    with open("part-é.bin", "wb", buffering=0) as file:
        file.write(b"x" * index)
    name = "step \\\\ \\"quoted\\"" if index == 7 else "step"
    numbers = {"epoch": (0, 1), "step": (0, index)}
    log.log_event(name, "app", start, 5, numbers, {}, {"why": (0, "a\\nb")})
log.finalize()
"""


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        env = {**os.environ, "DFTRACER_ENABLE": "1"}
        subprocess.run([sys.executable, "-c", PROGRAM], env=env, cwd=directory, check=True)
        raw = (Path(directory) / "t.pfw.gz").read_bytes()
    text = gzip.decompress(raw).replace(directory.encode(), b"/data/demo")
    text = re.sub(
        rb'("name":"SH",[^{]*\{"hhash":"\w+","name":")(?:[^"\\]|\\.)*', rb"\1python demo.py", text
    )
    lines = text.replace(b'"name":"' + os.uname().nodename.encode(), b'"name":"node1').splitlines()
    # Several members, as a longer run has.
    (HERE / "ours.pfw.gz").write_bytes(b"".join(pack(lines[1:], 60)))
    print(len(lines), "lines")


if __name__ == "__main__":
    main()
