#!/usr/bin/env python3
"""Makes the golden traces of other tracers, by running them.

    python make_dftracer.py NAME VENV_PYTHON

runs this file again under the Python of a venv in which one release is installed (from PyPI):

| name | packages |
| --- | --- |
| dftracer-2.2.0 | dftracer==2.2.0 |
| dftracer-2.0.3 | dftracer==2.0.3 pydftracer==2.0.3 |
| dftracer-2.0.0 | dftracer==2.0.0 pydftracer==2.0.2, both with --no-deps |
| pydftracer-1.0.11 | pydftracer==1.0.11, with --no-deps |
| pydftracer-1.0.5 | pydftracer==1.0.5 |

The paths, the host and the numbers of the machine that ran it are replaced in what is kept.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def workload(directory: str) -> None:
    """What is traced: a few regions with arguments, and I/O on two files."""
    try:
        from dftracer.python import dft_fn, dftracer
    except ImportError:
        from dftracer.logger import dft_fn, dftracer  # type: ignore[no-redef]
    data = os.path.join(directory, "data")
    log = dftracer.initialize_log(os.path.join(directory, "t.pfw"), data, 0)
    region = dft_fn("app", name="load")

    @region.log
    def step(index: int) -> int:
        path = os.path.join(data, f"part-{index % 2}.bin")
        with open(path, "wb", buffering=0) as file:
            file.write(b"x" * (100 + index))
        with open(path, "rb", buffering=0) as file:
            return len(file.read(4096))

    for index in range(6):
        with dft_fn("app", name="step", epoch=1, step=index):
            step(index)
    log.finalize()


def anonymous(text: bytes, directory: str) -> bytes:
    host = os.uname().nodename.encode()
    text = text.replace(directory.encode(), b"/data/demo")
    text = text.replace(b'"name":"' + host + b'"', b'"name":"node1"')
    text = text.replace(b'"hostname":"' + host + b'"', b'"hostname":"node1"')
    text = re.sub(rb'("cmd":")[^"]*', rb"\1python;demo.py", text)
    # The command line and the program.
    return re.sub(rb'("name":"SH".*?"args":\{[^}]*"name":")[^"]*', rb"\1python demo.py", text)


def main() -> int:
    if sys.argv[1] == "--run":
        workload(sys.argv[2])
        return 0
    name, python = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, "data"))
        env = {**os.environ, "DFTRACER_ENABLE": "1", "DFTRACER_INC_METADATA": "1"}
        env["DFTRACER_DATA_DIR"] = os.path.join(directory, "data")
        subprocess.run(
            [python, __file__, "--run", directory], env=env, cwd=directory, check=True, timeout=120
        )
        found = sorted(Path(directory).glob("t*.pfw*"))
        assert len(found) == 1, found
        raw = found[0].read_bytes()
        packed = raw.startswith(b"\x1f\x8b")
        text = anonymous(gzip.decompress(raw) if packed else raw, directory)
        out = HERE / f"{name}.pfw{'.gz' if packed else ''}"
        # One member without a name or a time, as these tracers write it.
        out.write_bytes(gzip.compress(text, mtime=0) if packed else text)
        shutil.copystat(__file__, out)
        print(out.name, len(text.splitlines()), "lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
