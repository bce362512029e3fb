"""Files that are no traces, and records whose fields are of any type: one line, no traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dftracer.commands._cli.main import main

Capture = pytest.CaptureFixture[str]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
EVENT: dict[str, Any] = {
    "id": 1,
    "name": "read",
    "cat": "POSIX",
    "pid": 5,
    "tid": 6,
    "ts": 1_790_000_000_000_000,
    "dur": 3,
    "ph": "X",
    "args": {"hhash": "h", "fhash": "f", "ret": 5, "epoch": 1, "step": 2, "level": 1, "p_idx": -1},
}
# A word for each verb that reads a trace: what stands before the trace, and behind it.
VERBS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "info": ((), ()),
    "stats": ((), ()),
    "validate": ((), ()),
    "query": (("from events, files, processes, hosts",), ("--json",)),
    "report": ((), ("-o", "OUT/page.html")),
    "export chrome": ((), ("--to", "chrome", "-o", "OUT/chrome.json")),
    "export perfetto": ((), ("--to", "perfetto", "-o", "OUT/p.pftrace")),
    "export speedscope": ((), ("--to", "speedscope", "-o", "OUT/s.json")),
    "export parquet": ((), ("--to", "parquet", "-o", "OUT/e.parquet")),
    "merge": ((), ("-o", "OUT/merged.pfw.gz")),
    "split": ((), ("-n", "2", "-o", "OUT/piece")),
    "split by process": ((), ("--by-process", "-o", "OUT/process")),
    "doctor": ((), ()),
    "compact": ((), ("--keep",)),
    "recover": ((), ()),
}
VIEW = {"view": ((), ("--no-browser", "--once"))}


def run(verb: str, path: Path, out: Path) -> int:
    before, after = (VERBS | VIEW)[verb]
    out.mkdir(exist_ok=True)
    words = [word.replace("OUT", str(out)) for word in after]
    return main([verb.split()[0], *before, str(path), *words])


def with_field(key: str, value: str) -> str:
    record = json.loads(json.dumps(EVENT))
    (record if key in record else record["args"])[key] = "@@"
    return json.dumps(record).replace('"@@"', value)


VALUES = ["[]", "{}", "null", "true", '""', '"x"', "-1", "1.5", "1e400", "18446744073709551615"]
VALUES += ["99999999999999999999999", "[1,[2]]", '{"a":{}}', '"\\ud800"', '"\\u0000"']
ODD = [with_field(key, value) for key in (*EVENT, *EVENT["args"]) for value in VALUES]
OWN = [
    json.dumps(
        {
            **{"id": 1, "name": name, "cat": "dftracer", "pid": 5, "tid": 6, "ts": 5},
            **{"ph": "M" if name.isupper() else "X", "args": {"name": "rank", key: "@@"}},
        }
    ).replace('"@@"', value)
    for name in ("FH", "SH", "HH", "PR", "CM", "start", "end", "lost", "process_name")
    for key in ("name", "value", "num_events", "run", "proc", "cmd_hash", "lost", "events", "ppid")
    for value in ("[]", "{}", "null", "1.5", "-1")
]
DEEP = [
    json.dumps({**EVENT, "args": "@@"}).replace('"@@"', '{"a":' + text + "}")
    for depth in (60, 1_000, 100_000)
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth)
]
CASES = {
    "fields of any type": ODD,
    "records of the tracer of any type": OWN,
    "a thousand levels": DEEP,
    "levels without a record": ["[" * 1_000 + "]" * 1_000, '{"a":' * 1_000 + "1" + "}" * 1_000],
    "a number of 5,000 digits": [with_field("ret", "9" * 5_000)],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("case", CASES)
def test_no_record_makes_a_traceback(tmp_path: Path, case: str, verb: str, capsys: Capture) -> None:
    path = tmp_path / "t.pfw"
    good = json.dumps(EVENT)
    path.write_text("\n".join(["[", good, *CASES[case], good, ""]))
    assert run(verb, path, tmp_path / "out") in (0, 1, 3)
    seen = capsys.readouterr()
    assert "Traceback" not in seen.err
    assert len(seen.err.splitlines()) <= 6
    assert "came out" not in seen.err  # what went in


def test_a_process_that_has_no_number_stays_json_when_merged(tmp_path: Path) -> None:
    """The object in the place of a pid went between quotes as it was."""
    path = tmp_path / "t.pfw"
    path.write_text("[\n" + with_field("pid", '{"a":"b"}') + "\n" + json.dumps(EVENT) + "\n")
    out = tmp_path / "o.pfw"
    assert main(["merge", str(path), "-o", str(out), "--quiet"]) == 0
    records = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    assert [r["args"].get("pid") for r in records if r["name"] == "read"] == ['{"a":"b"}', None]
    assert main(["merge", str(out), "-o", str(tmp_path / "again.pfw"), "--quiet"]) == 0


@pytest.mark.parametrize("verb", [*(verb for verb in VERBS if verb != "recover"), *VIEW])
@pytest.mark.parametrize(
    ("name", "data"), [("notes.txt", b"no trace at all\n"), ("p.png", PNG), ("c.json", b'{"a":1}')]
)
def test_what_is_no_trace_is_an_error_that_names_it(
    tmp_path: Path, verb: str, name: str, data: bytes, capsys: Capture
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    out = tmp_path / "out"
    assert run(verb, path, out) != 0
    seen = capsys.readouterr()
    assert name in seen.out + seen.err
    assert "cut short" not in seen.out + seen.err
    assert not list(out.iterdir())
    assert path.read_bytes() == data


@pytest.mark.parametrize("verb", ["report", "merge", "split", "export chrome", "query", "view"])
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(
    tmp_path: Path, verb: str, capsys: Capture
) -> None:
    """The tests may run as root, who may read every file: but no pipe as one."""
    path = tmp_path / "t.pfw"
    os.mkfifo(path)
    assert run(verb, path, tmp_path / "out") == 1
    assert "t.pfw: " in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_a_stranger_among_traces_of_a_directory_is_told_with_the_damage(
    tmp_path: Path, capsys: Capture
) -> None:
    place = tmp_path / "traces"
    place.mkdir()
    (place / "a.pfw").write_bytes(PNG)
    assert run("export chrome", place, tmp_path / "out") == 1
    assert "a.pfw: not a trace" in capsys.readouterr().err
    good = place / "b.pfw"
    good.write_text("[\n" + json.dumps(EVENT) + "\n")
    assert run("export chrome", place, tmp_path / "out") == 3
    assert "a.pfw" in capsys.readouterr().err
    (tmp_path / "picture.png").write_bytes(PNG)
    words = ["merge", str(good), str(tmp_path / "picture.png"), "-o", str(tmp_path / "o.pfw")]
    assert main(words) == 1
    assert "picture.png: not a trace" in capsys.readouterr().err
    assert not (tmp_path / "o.pfw").exists()


def test_doctor_says_that_a_picture_is_no_trace(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "picture.png").write_bytes(PNG)
    assert main(["doctor", str(tmp_path / "picture.png")]) == 1
    assert "picture.png: not a trace: it contains no record" in capsys.readouterr().out


def test_doctor_reads_one_json_document(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "torch.json"
    path.write_text(json.dumps({"traceEvents": [EVENT, EVENT]}, indent=1))
    assert main(["doctor", str(path)]) == 0
    assert "2 events" in capsys.readouterr().out


def test_a_link_in_a_circle_does_not_hide_a_directory(tmp_path: Path, capsys: Capture) -> None:
    os.symlink("loop.pfw", tmp_path / "loop.pfw")
    os.symlink("nowhere", tmp_path / "dangling.pfw")
    (tmp_path / "t.pfw").write_text("[\n" + json.dumps(EVENT) + "\n")
    assert main(["stats", str(tmp_path)]) == 0
    seen = capsys.readouterr()
    assert "1 file, 1 process, 1 event" in seen.out
    assert seen.err.count("\n") == 1
    assert "loop.pfw: " in seen.err
    assert main(["stats", str(tmp_path / "loop.pfw")]) == 2
    assert "a broken symbolic link" in capsys.readouterr().err
