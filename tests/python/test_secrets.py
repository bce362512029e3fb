"""dftracer._secrets: what of a command line is shown as ***, and what is not touched."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from support.command import dftracer

from dftracer._secrets import mask, shown

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "secrets.json").read_text())

# What the rules look at, so that random texts come near to every one of them.
PIECES = (
    *"=:;@?&#'\"\\-_.a \0",
    *("://", "***", "--password", "token", "authorization", "cookie", "Bearer"),
    *("AKIAIOSFODNN7EXAMPLE", "ghp_0123456789abcdefghij"),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["text"])
def test_secrets_are_masked_and_ordinary_words_are_not(vector: dict[str, str]) -> None:
    assert mask(vector["text"]) == vector["masked"]


def test_a_masked_text_stays_as_it_is() -> None:
    chance = random.Random(7)
    texts = [vector["masked"] for vector in VECTORS]
    texts += [
        mask("".join(chance.choice(PIECES) for _ in range(chance.randint(1, 14))))
        for _ in range(5000)
    ]
    for text in texts:
        assert mask(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0", "--token=x"), ("off", "--token=x"), ("1", "--token=***"), ("", "--token=x")],
)
def test_a_variable_shows_secrets_as_they_were_recorded(value: str, expected: str) -> None:
    assert shown("--token=x", {"DFTRACER_MASK_SECRETS": value}) == expected


def _trace(place: Path, command: str) -> Path:
    """A trace of another release, which recorded its command line as it was."""
    own = {"cat": "dftracer", "pid": 5, "tid": 5}
    records = [
        {"name": "SH", "ph": "M", **own, "args": {"name": command, "value": "c0"}},
        {"id": 1, "name": "start", "ph": "X", "ts": 1, "dur": 0, **own, "args": {"cmd_hash": "c0"}},
        {
            **{"id": 2, "name": "system", "cat": "POSIX", "pid": 5, "tid": 5, "ph": "X"},
            **{"ts": 2, "dur": 3, "args": {"command": "mysql --password=hunter2 db"}},
        },
    ]
    trace = place / "old.pfw"
    trace.write_text("[\n" + "".join(json.dumps(record) + "\n" for record in records))
    return trace


@pytest.mark.parametrize(
    "words",
    [
        ("info",),
        ("info", "--json", "--lines", "0"),
        ("stats", "--json"),
        ("report", "--no-page"),
        ("report", "--json"),
        ("report", "-o", "page.html"),
    ],
    ids=" ".join,
)
def test_commands_show_no_password_of_a_recorded_command_line(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    trace = _trace(tmp_path, "python;train.py;--db-password;hunter2 hunter3;--epochs=3")
    verb, *options = words
    done = dftracer(verb, trace, *options, cwd=tmp_path)
    page = tmp_path / "page.html"
    shown_text = done.stdout + (page.read_text() if page.exists() else "")
    assert "hunter" not in shown_text
    if words == ("info",):
        assert "mysql --password=*** db" in shown_text
    as_recorded = dftracer("info", trace, cwd=tmp_path, env={"DFTRACER_MASK_SECRETS": "0"}).stdout
    assert "--db-password hunter2 hunter3" in as_recorded
