"""dftracer._names: names in the room that there is."""

from __future__ import annotations

import pytest

from dftracer._names import columns_of, printable, shorten, shorten_all

TAIL = "/a-tail-that-all-of-them-share/part-00000-of-00001.parquet"


def test_what_a_terminal_would_act_on_is_made_visible() -> None:
    assert printable("a\x1b[31m\u202eb\n") == "a\ufffd[31m\ufffdb\ufffd"


def test_the_end_of_a_path_and_the_start_of_a_command() -> None:
    assert shorten("/data/train/class/file.bin", 12) == "…ss/file.bin"
    assert shorten("python train.py --epochs", 12, keep_start=True) == "python trai…"
    assert shorten("short", 12) == "short"


def test_wide_characters_take_two_columns() -> None:
    assert columns_of("数据") == 4
    for room in range(1, 12):
        for keep in (True, False):
            assert columns_of(shorten("数据数据/数据.bin", room, keep_start=keep)) <= room


@pytest.mark.parametrize("room", [8, 12, 20, 44, 60])
def test_names_that_differ_look_different(room: int) -> None:
    names = [f"/data/train/run-2026-11-17-experiment-{n}{TAIL}" for n in range(12)]
    names += [f"/data/{'a' * 200}/{n}{TAIL}" for n in range(4)]
    names += [f"/other/{'a' * 200}/{n}{TAIL}" for n in range(4)]
    names += ["/short.bin", "region_" + "x" * 230 + "_1", "region_" + "x" * 230 + "_2"]
    shown = shorten_all(names, room)
    assert all(columns_of(one) <= room for one in shown)
    assert len(set(shown)) == len(names)


def test_where_they_differ_is_seen() -> None:
    shown = shorten_all([f"/data/run-{n}{TAIL}" for n in (1, 2)], 30)
    assert [one[:7] for one in shown] == ["…run-1/", "…run-2/"]
    assert all(one.endswith(".parquet") for one in shown)


def test_equal_names_stay_equal() -> None:
    name = "/data/" + "a" * 100
    assert len(set(shorten_all([name, name, "/b"], 20))) == 2


def test_long_names_of_wide_characters_take_no_time() -> None:
    names = [f"{n}" + "&\N{GRINNING FACE}" * 5000 for n in range(200)]
    assert len(set(shorten_all(names, 44))) == 200
