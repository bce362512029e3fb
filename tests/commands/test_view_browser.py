"""`dftracer view` in a real browser: the slices of a recorded program are on the screen.

DFTRACER_VIEW_IMAGE=docs/images/view.png pytest tests/commands/test_view_browser.py
makes the picture of the documents again.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import chromium, traces
from support.chromium import Chromium
from support.command import COMMAND, dftracer, environment
from support.limits import HANG

TRAIN = '''
"""Two workers read, the parent computes and writes checkpoints."""
import multiprocessing, os, time
from dftracer.python import dftracer

def load(n, queue):
    log = dftracer.initialize_log()
    for batch in range(6):
        start = log.get_time()
        with open(f"shard-{n}", "rb") as file:
            data = file.read(1 << 19)
        log.log_event("item", "data", start, log.get_time() - start, {"batch": batch})
        time.sleep(0.002)
        queue.put(len(data))

if __name__ == "__main__":
    for n in range(2):
        with open(f"shard-{n}", "wb") as file:
            file.write(os.urandom(1 << 19))
    log = dftracer.initialize_log()
    queue = multiprocessing.Queue(4)
    workers = [multiprocessing.Process(target=load, args=(n, queue)) for n in range(2)]
    for worker in workers:
        worker.start()
    for epoch in range(2):
        began = log.get_time()
        for step in range(6):
            start = log.get_time()
            queue.get()
            fetched = log.get_time()
            log.log_event("fetch", "data", start, fetched - start, {"step": step})
            sum(i * i for i in range(60000))
            done = log.get_time()
            log.log_event("compute", "train", fetched, done - fetched, {"step": step})
            log.log_event("step", "train", start, done - start, {"step": step, "epoch": epoch})
        with open(f"checkpoint-{epoch}", "wb") as file:
            for _ in range(40):
                file.write(b"x" * (1 << 16))
            os.fsync(file.fileno())
        log.log_event("epoch", "train", began, log.get_time() - began, {"epoch": epoch})
    for worker in workers:
        worker.join()
'''

QUERY = "app.trace.engine.query(%r).then(r => Number(r.firstRow({n: 0n}).n))"
# Pixels of the timeline that are neither white nor grey.
COLOURED = """
[...document.querySelectorAll("canvas")].reduce((most, canvas) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, a] = data.slice(i, i + 4);
    n += a > 0 && Math.max(r, g, b) - Math.min(r, g, b) > 60;
  }
  return Math.max(most, n);
}, 0)
"""

# For the picture: the epochs from edge to edge.
POSE = """
(async () => {
  const found = await app.trace.engine.query(
    "select min(ts) as a, max(ts + dur) as b from slice where name = 'epoch'");
  const { a, b } = found.firstRow({ a: 0n, b: 0n });
  if (app.sidebar.visible) app.sidebar.toggleVisibility();
  app.trace.timeline.setViewportTime(a - (b - a) / 20n, b + (b - a) / 20n);
})()
"""


@pytest.mark.skipif(chromium.find() is None, reason="chromium is not installed (apt)")
def test_the_slices_are_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    dftracer("run", "-o", "d", "--", "python", "train.py", cwd=tmp_path)
    on_disk = [trace.records for trace in traces.read_directory(tmp_path / "d")]
    spans = sum(record["ph"] in ("X", "i") for records in on_disk for record in records)
    server = subprocess.Popen(
        [COMMAND, "view", "d", "--no-browser", "--once"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().split()[-1]
        with Chromium(tmp_path / "profile") as page:
            page.go(address)
            page.wait_for("!!(window.app && app.trace && app.trace.engine && !app.isLoadingTrace)")
            page.evaluate("waitForPerfettoIdle(500)")
            assert page.evaluate(QUERY % "select count(*) as n from slice") == spans
            steps = "select count(*) as n from slice where name = 'step'"
            assert page.evaluate(QUERY % steps) == 12
            problems = "select count(*) as n from stats where severity = 'error' and value > 0"
            assert page.evaluate(QUERY % problems) == 0
            text = page.wait_for(
                "document.body.innerText.includes('train.py') && document.body.innerText"
            )
            # The program above its workers, whichever has the most slices.
            places = [text.index(row) for row in ("main: python train.py", "worker 0", "worker 1")]
            assert places == sorted(places)
            paths = (
                "select count(*) as n from slice join args using (arg_set_id)"
                " where key = 'args.fname' and string_value like '%/shard-_'"
            )
            assert page.evaluate(QUERY % paths) >= 12
            assert page.wait_for(COLOURED) > 1000
            outside = [
                url
                for url in page.requests
                if not url.startswith(("http://127.0.0.1:", "blob:", "data:"))
            ]
            # The page asks for one script of its makers'; the server's policy keeps it here.
            assert all(url in page.blocked for url in outside), outside
            image = os.environ.get("DFTRACER_VIEW_IMAGE")
            if image:
                page.evaluate(POSE)
                page.evaluate("waitForPerfettoIdle(1000)")
                Path(image).write_bytes(page.screenshot())
        assert server.wait(timeout=HANG) == 0
    finally:
        server.kill()
        server.wait()
