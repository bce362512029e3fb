"""A figure that is quoted wrongly is found."""

from __future__ import annotations

import check_figures
import pytest

FIGURES, PROBLEMS = check_figures.read_figures(check_figures.SOURCE.read_text(encoding="utf-8"))


def problems(text: str) -> list[str]:
    return list(check_figures.check(text, "page.md", FIGURES))


def test_every_figure_is_in_the_tables() -> None:
    assert not PROBLEMS
    assert set(FIGURES) == set(check_figures.FIGURES)


def test_a_row_that_is_gone_is_found() -> None:
    assert len(check_figures.read_figures("")[1]) == len(check_figures.FIGURES)


@pytest.mark.parametrize("key", check_figures.FIGURES)
def test_quotes_with_a_key_are_compared(key: str) -> None:
    assert not problems(f"about {FIGURES[key]} ns<!-- figure: {key} -->")
    assert problems(f"about 1{FIGURES[key]} ns<!-- figure: {key} -->")


def test_unknown_keys_are_found() -> None:
    assert problems("7<!-- figure: nothing -->")


@pytest.mark.parametrize(
    "sentence",
    [
        "An event with two arguments takes about {} instructions on the calling thread",
        "No lock, no heap, no system call: about {} instructions from begin to end",
        "{} instructions per\nevent",
    ],
)
def test_known_sentences_are_compared_without_a_key(sentence: str) -> None:
    assert not problems(sentence.format(FIGURES["event-instructions"]))
    assert problems(sentence.format("99"))
