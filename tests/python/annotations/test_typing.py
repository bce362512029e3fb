"""mypy --strict on a user's program that uses every form of annotation."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from support.run import run

USER = Path(__file__).parent / "typing_user.py"
REPORT = re.compile(r"typing_user\.py:(\d+): (note|error): (.*)")


def test_users_of_annotations_keep_their_types(tmp_path: Path) -> None:
    shutil.copy(USER, tmp_path)
    # What torch says of itself is not what is tested, and takes long to read.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\n"
    )
    words = ["--no-error-summary", "--cache-dir", tmp_path / "cache"]
    done = run(
        sys.executable, "-m", "mypy", *words, "typing_user.py", cwd=tmp_path, expect=None, stderr=""
    )
    expected, found = {}, {}
    for number, line in enumerate(USER.read_text().splitlines(), 1):
        note = re.search(r"# (R|E): (.+)$", line)
        if note:
            expected[number] = note[2]
    for line in done.stdout.splitlines():
        place = REPORT.match(line)
        assert place, line
        revealed = re.fullmatch(r'Revealed type is "(.*)"', place[3])
        kind = re.search(r"\[([a-z-]+)\]$", place[3])
        if place[2] == "error" or revealed:
            text = revealed[1] if revealed else kind[1] if kind else place[3]
            found[int(place[1])] = text.replace("builtins.", "")  # which older mypys write
    assert found == expected
    assert len(expected) > 40
