"""Makes the pictures of docs/tutorial.md again, from the page's own blocks.

python tools/make_tutorial_images.py DIRECTORY [--pictures-only]

Runs the page's blocks in DIRECTORY, which keeps the traces and what each command printed
(block-N.txt), then takes the pictures with Chromium. Needs PyTorch, pillow and dftracer's extras.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from PIL import Image  # noqa: E402
from support.chromium import Chromium  # noqa: E402

PAGE = ROOT / "docs" / "tutorial.md"
IMAGES = ROOT / "docs" / "images"
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LARGEST = 150_000

DRAWN = "document.documentElement && document.documentElement.dataset.drawn"
LOADED = "!!(window.app && app.trace && app.trace.engine && !app.isLoadingTrace)"
# Two steps in the middle of an epoch, from edge to edge, with every row open.
POSE = """
(async () => {
  const found = await app.trace.engine.query(`
    select ts, ts + dur as ends from slice where name = 'fetch' order by ts limit 3 offset 10`);
  const it = found.iter({ ts: 0n, ends: 0n });
  const begin = it.ts;
  it.next(); it.next();
  if (app.sidebar.visible) app.sidebar.toggleVisibility();
  for (const node of app.trace.workspace.flatTracks) {
    for (let up = node; up && up.expand; up = up.parent) up.expand();
  }
  app.trace.timeline.setViewportTime(begin - (it.ts - begin) / 40n, it.ts + (it.ts - begin) / 40n);
})()
"""


def run_blocks(where: Path) -> None:
    """Each block as a reader would paste it; a block that is a file is saved."""
    where.mkdir(parents=True)
    for number, (mark, language, text) in enumerate(BLOCK.findall(PAGE.read_text())):
        if mark.startswith("file: "):
            (where / mark[len("file: ") :]).write_text(text)
        elif language == "bash" and not mark.startswith("not run"):
            print(text.strip().splitlines()[0], flush=True)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=where,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            (where / f"block-{number}.txt").write_text(done.stdout)
            if done.returncode:
                sys.exit(f"block {number} failed:\n{done.stdout}")


def save(name: str, picture: bytes) -> None:
    """With a palette: flat colours lose nothing by it, and take a third of the bytes."""
    path = IMAGES / name
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(256).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    assert size < LARGEST, f"{name} is too large for the repository"


def resize(page: Chromium, width: int, height: int) -> None:
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=False,
    )


def report_picture(where: Path, profile: Path) -> None:
    with Chromium(profile) as page:
        resize(page, 1100, 1100)
        page.go((where / "slow-report.html").resolve().as_uri())
        page.wait_for(DRAWN)
        page.evaluate("new Promise((done) => setTimeout(done, 1000))")
        save("tutorial-report.png", page.screenshot())


def timeline_picture(where: Path, profile: Path, trace: str, height: int) -> None:
    server = subprocess.Popen(
        ["dftracer", "view", trace, "--to", "5", "--no-browser", "--once"],
        cwd=where,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().split()[-1]
        with Chromium(profile) as page:
            resize(page, 1280, height)
            page.go(address)
            page.wait_for(LOADED, seconds=600)
            page.evaluate("waitForPerfettoIdle(1000)")
            page.evaluate(POSE)
            page.evaluate("waitForPerfettoIdle(2000)")
            save(f"tutorial-{trace}.png", page.screenshot())
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pictures-only", action="store_true", help="of traces that are there")
    options = parser.parse_args()
    where: Path = options.directory
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    os.environ["COLUMNS"] = "100"
    if not options.pictures_only:
        run_blocks(where)
    report_picture(where, where / "profile-report")
    timeline_picture(where, where / "profile-slow", "slow", 500)
    timeline_picture(where, where / "profile-workers", "workers", 1040)


if __name__ == "__main__":
    main()
