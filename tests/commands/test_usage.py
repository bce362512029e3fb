"""A mistake of usage gives one line that names it, and exit status 2: all verbs, all options."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from dftracer.commands._cli.main import SUMMARIES, load_verb, main, make_parser

PARSERS = {verb: make_parser(verb, load_verb(verb)) for verb in SUMMARIES}
OPTIONS = [
    pytest.param(verb, action, id=f"{verb} {action.option_strings[-1]}")
    for verb, parser in PARSERS.items()
    for action in parser._actions
    if action.option_strings and action.option_strings[-1] != "--help" and action.nargs != "?"
]
# What argparse's own types are, and ours that take numbers and times.
TEXT = "!"


def mistake(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that the command complains with."""
    assert main(list(words)) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.startswith("dftracer: "), seen.err
    assert seen.err.count("\n") == 1, seen.err
    return seen.err


def enough(verb: str) -> list[str]:
    """Words with which the verb's parser is content: what it requires, and two names."""
    words = []
    for action in PARSERS[verb]._actions:
        if action.required and action.option_strings:
            words += [action.option_strings[0], str(next(iter(action.choices or ["x"])))]
        elif not action.option_strings and verb != "run":
            words.append(str(next(iter(action.choices or ["x"]))))
    return words


@pytest.mark.parametrize("verb", SUMMARIES)
def test_an_unknown_option_is_what_the_line_is_about(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--bogus"], [*enough(verb), "--bogus"], ["--bogus=3", *enough(verb)], ["-Z"]):
        option = next(word for word in words if word.startswith(("--bogus", "-Z")))
        name = option.partition("=")[0]
        line = mistake(capsys, verb, *words)
        assert line.startswith(f"dftracer: unknown option '{name}'"), line
        assert line.endswith(f"; see dftracer {verb} --help\n")


# What the verbs cannot do without; `top` and `doctor` need nothing.
MISSING = {
    "run": "missing PROGRAM",
    "info": "missing TRACE",
    "report": "missing TRACE",
    "whatif": "missing TRACE",
    "stats": "missing TRACE",
    "query": "missing SQL, TRACE",
    "view": "missing TRACE",
    "merge": "missing -o/--output",
    "split": "specify one of -n, -s",
    "compact": "missing TRACE",
    "export": "missing --to, -o/--output",
    "validate": "missing TRACE",
    "recover": "missing PATH",
    "completion": "missing SHELL",
}
COMPLETE = ("env", "top", "doctor")  # without any argument


@pytest.mark.parametrize("verb", [verb for verb in SUMMARIES if verb not in COMPLETE])
def test_a_missing_argument_is_named(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert mistake(capsys, verb).startswith(f"dftracer: {MISSING[verb]}")


def test_missing_traces_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ("merge", "-o", "x.pfw"),
        ("split", "-n", "2"),
        ("query", "from events"),
        ("export", "--to", "chrome", "-o", "x"),
    ):
        assert "missing TRACE" in mistake(capsys, *words)


@pytest.mark.parametrize(("verb", "action"), OPTIONS)
def test_an_option_without_its_value_or_with_one_too_many(
    verb: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = action.option_strings[-1]
    names = "/".join(action.option_strings)
    if action.nargs == 0:
        words = [*enough(verb), f"{flag}=3"]
        assert f"dftracer: {names} takes no value; " in mistake(capsys, verb, *words)
    else:
        words = [*enough(verb), flag]
        assert f"dftracer: {names} needs a value; " in mistake(capsys, verb, *words)


@pytest.mark.parametrize(
    ("verb", "action"),
    [case for case in OPTIONS if case.values[1].choices or case.values[1].type is not None],
)
def test_a_value_of_the_wrong_kind(
    verb: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = action.option_strings[-1]
    names = "/".join(action.option_strings)
    line = mistake(capsys, verb, *enough(verb), flag, TEXT)
    assert line.startswith(f"dftracer: {names}: "), line
    assert repr(TEXT) in line


@pytest.mark.parametrize("verb", ["info", "merge", "split", "compact", "recover", "report"])
def test_a_negative_number_of_threads(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = mistake(capsys, verb, *enough(verb), "--threads", "-1")
    assert line.startswith("dftracer: --threads: '-1' is not a whole number from 0 to "), line


def exclusive() -> Iterator[tuple[str, argparse.Action, argparse.Action]]:
    for verb, parser in PARSERS.items():
        for group in parser._mutually_exclusive_groups:
            for one, other in itertools.combinations(group._group_actions, 2):
                yield verb, one, other


def value_for(action: argparse.Action) -> list[str]:
    return [] if action.nargs == 0 else ["2"]


@pytest.mark.parametrize(
    ("verb", "one", "other"),
    [pytest.param(*case, id=f"{case[0]} {case[1].dest} {case[2].dest}") for case in exclusive()],
)
def test_options_that_exclude_each_other(
    verb: str, one: argparse.Action, other: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [one.option_strings[0], *value_for(one), other.option_strings[0], *value_for(other)]
    line = mistake(capsys, verb, *enough(verb), *words)
    names = ["/".join(action.option_strings) for action in (other, one)]
    assert line.startswith(f"dftracer: {names[0]} and {names[1]} cannot be combined; ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("report", "x", "-o", "y", "--no-page"), "-o and --no-page cannot be combined"),
        (("report", "x", "--fail-if-slower", "5"), "--fail-if-slower needs"),
        (
            ("report", "x", "--against", "y", "--fail-if-slower", "much"),
            "--fail-if-slower: invalid percentage",
        ),
        (("query", "from events", "x", "--json", "--format", "csv"), "--json and --format csv"),
        (("query", "from events", "x", "--format", "parquet"), "--format parquet needs a file"),
        (("split", "x"), "specify one of -n, -s, --by-process, --every, --from, --to"),
        (("split", "x", "--from", "3s", "--to", "2s"), "--to must be later than --from"),
        (("split", "x", "--every", "0s"), "--every must be greater than 0"),
        (("split", "x", "--every", "soon"), "invalid duration 'soon' (for example 500ms, 10s, 2m)"),
        (("split", "x", "-n", "0"), "-n/--parts: must be at least 1"),
        (("split", "x", "-s", "nan"), "-s/--size: 'nan' is not a number above 0"),
        (("export", "x", "--to", "chrome", "-o", "y", "--partition"), "--partition needs --to"),
        (("whatif", "x", "--reads", "0x"), "--reads: '0x' is not a factor above 0"),
        (("whatif", "x", "--local-disk", "2GB"), "--local-disk: '2GB' is not a rate"),
        (("whatif", "x", "--local-disk", "0B/s"), "--local-disk: '0B/s' is not a rate"),
        (("whatif", "x", "--workers", "2000"), "--workers: '2000' is not a whole number from 0"),
        (("whatif", "x", "--prefetch", "0"), "--prefetch: must be at least 1"),
        (("whatif", "x", "--workers", "0", "--persistent"), "--workers 0 cannot be combined with"),
        (
            ("whatif", "x", "--reads", "2x", "--local-disk", "fastest"),
            "--reads and --local-disk cannot be combined",
        ),
        (("completion", "bash", "zsh"), "unexpected argument 'zsh'"),
        (("help", "info", "stats"), "unexpected argument 'stats'"),
        (("inof",), "unknown verb 'inof'; did you mean 'info'?"),
        (("",), "unknown verb ''"),
        (("--bogus",), "unknown option '--bogus'"),
        (("info", "x", "--tpo", "3"), "unknown option '--tpo' (did you mean --top?)"),
        (("run", "--bogus", "true"), "unknown option '--bogus'"),
        (("run", "--data-dir"), "--data-dir needs a value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_contradictions_and_other_mistakes(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text in mistake(capsys, *words)


def test_a_name_with_a_line_break_is_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = mistake(capsys, "info", str(tmp_path / "a\nb\033[31m"))
    assert "\033" not in line


def test_sql_that_begins_with_a_comment_is_no_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.pfw").write_text(
        '[\n{"id":1,"name":"n","cat":"c","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X"}\n'
    )
    words = ["query", "-- all of them\nselect name from events", str(tmp_path), "--format", "csv"]
    assert main(words) == 0
    assert capsys.readouterr().out == "name\nn\n"
