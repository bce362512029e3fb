"""The page as text: whole, harmless, bounded, and readable without the plots."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support import report_tables

from dftracer.errors import DFTracerError
from dftracer.reports.model import SCHEMAS, Report, Table
from dftracer.reports.programs import program_name
from dftracer.reports.render import script
from dftracer.reports.render.figures import ROLES, process_names
from dftracer.reports.render.page import LIMIT, page, write_page

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Outline(HTMLParser):
    """Every element with its attributes and text; complains about tags that do not match."""

    def __init__(self, made: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        # Places where a long word may be broken are no part of what is read.
        self.feed(made.replace("<wbr>", ""))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self) -> str:
        told = " ".join(data for tag, data in self.texts if tag not in ("script", "style"))
        return told.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def training() -> str:
    return page(report_tables.training())


def test_every_plot_has_its_numbers_in_a_table_under_it(training: str) -> None:
    outline = Outline(training)
    plots = [box for box in outline.all("div") if "data-figure" in box]
    assert len(plots) >= 11
    tables = {table["id"] for table in outline.all("table")}
    for plot in plots:
        assert plot["role"] == "img"
        assert plot["aria-label"]
        assert f"data-{plot['data-figure']}" in tables
    assert len(outline.all("caption")) == len(outline.all("table"))
    assert all(head["scope"] in ("col", "row") for head in outline.all("th"))
    boxes = [box for box in outline.all("div") if box.get("class") == "scroll"]
    assert len(boxes) == len(outline.all("table"))
    assert all(box["tabindex"] == "0" and box["aria-labelledby"] for box in boxes)


def test_the_tables_hold_the_numbers_in_units_of_people(training: str) -> None:
    told = Outline(training).text()
    for shown in ("52,000", "4.68 s", "openat", "rank 0", "31 %", "/data/train/class-0"):
        assert shown in told


def test_nothing_is_asked_of_a_network(training: str) -> None:
    outline = Outline(training)
    for tag, attributes in outline.elements:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:,")) or value == "", (tag, value)
    (policy,) = [m for m in outline.all("meta") if m.get("http-equiv")]
    assert "default-src 'none'" in str(policy["content"])
    style = training[training.index("<style>") : training.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_ids_are_unique_and_every_link_leads_somewhere(training: str) -> None:
    outline = Outline(training)
    ids = [attributes["id"] for _, attributes in outline.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for link in outline.all("a"):
        assert str(link["href"])[1:] in ids


def test_findings_come_first_with_their_numbers(training: str) -> None:
    outline = Outline(training)
    sections = [section["id"] for section in outline.all("section")]
    assert sections[:2] == ["findings", "overview"]
    told = outline.text()
    assert "Fetch takes 24.1 ms of 80 ms a step" in told
    assert "More DataLoader workers" in told


def test_no_findings_are_said_to_be_none() -> None:
    told = Outline(page(report_tables.training(findings=False))).text()
    assert "No findings: nothing in this trace takes enough time to matter." in told


def test_an_empty_trace_gets_a_page() -> None:
    outline = Outline(page(report_tables.empty()))
    assert "The trace contains no events." in outline.text()
    assert [box for box in outline.all("div") if "data-figure" in box] == []
    bare = page(Report(_no_rows()))
    assert "The trace contains no events." in bare


def _no_rows() -> dict[str, Table]:
    return {name: Table(schema) for name, schema in SCHEMAS.items()}


def test_names_stay_names() -> None:
    made = page(report_tables.training(names=report_tables.HOSTILE))
    outline = Outline(made)  # tags match: no name closed one or opened another
    assert outline.all("img") == []
    assert outline.all("svg") == []
    assert len(outline.all("script")) == 3
    assert len(outline.all("style")) == 1
    assert all("onerror" not in a and "onload" not in a for _, a in outline.elements)
    told = outline.text()
    assert "</script><script>document.title='owned'</script>" in told
    assert "<a href='http://example.invalid/'>a link</a>" in told
    assert "\u05e9\u05dc\u05d5\u05dd" in told
    # Direction overrides, control characters and halves of characters are not passed on.
    assert not re.search("[\u202a-\u202e\u2028\u2029\x00-\x08\x1b\ud800-\udfff]", made)
    assert "/deep" * 60 not in made
    figures = made[made.index('id="figures">') : made.index('id="plotly"')]
    assert "<a href" not in figures


@pytest.mark.long
def test_a_hundred_thousand_files_are_a_small_page(tmp_path: Path) -> None:
    report = report_tables.training(files=100_000)
    size = write_page(str(tmp_path / "report.html"), report)
    assert size < 10_000_000
    told = Outline((tmp_path / "report.html").read_text("utf-8")).text()
    assert "The first 1,000 of 100,000 rows" in told


def test_a_page_of_the_worst_names_stays_below_the_limit() -> None:
    """Every row of every table as long as it can be: rows give way."""
    report = report_tables.training(files=3000, ranks=600, workers=3, epochs=1, steps=8)
    for table in report.tables.values():
        kinds = [column.kind for column in table.schema.columns]
        table.rows = [
            tuple("&\U0001f600" * 500 if kind == "text" and value is not None else value
                  for kind, value in zip(kinds, row))
            for row in table.rows
        ]  # fmt: skip
    assert len(page(report).encode()) < LIMIT


def test_columns_of_nothing_are_left_out() -> None:
    made = page(report_tables.training())
    steps = made[made.index('id="data-steps"') :]
    heads = re.findall(r"<button[^>]*>([^<]*)</button>", steps[: steps.index("</thead>")])
    assert "fetch" in heads
    assert "checkpoint" not in heads  # all zero
    errors = made[made.index('id="data-calls"') :]
    assert ">errors</button>" in errors[: errors.index("</thead>")]


def test_a_title_holds_no_arguments() -> None:
    report = report_tables.training()
    table = report.tables["processes"]
    at = table.columns.index("command")
    secret = "/usr/bin/env A=b /opt/bin/python3.11 -W ignore -u /home/me/train.py --token s3cr3t"
    table.rows = [(*row[:at], secret, *row[at + 1 :]) for row in table.rows]
    made = page(report)
    heads = re.findall(r"<title>(.*?)</title>|<h1>(.*?)</h1>|<p>(.*?)</p>", made)[:3]
    assert heads[0][0] == "train.py · traces – dftracer report"
    assert "train.py" in heads[1][1]
    assert "s3cr3t" not in str(heads)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./a.out --key x", "a.out"),
        ("python -m torch.distributed.run train.py", "torch.distributed.run"),
        ("python3 -c import-os;secret()", "python3"),
        ("bash run.sh --password x", "run.sh"),
        ("nice -n 10 gzip -k secret", "gzip"),
        ("MPI=1 /usr/bin/python", "python"),
        ("7z a secret", "7z"),
        ("-bash", "bash"),
        ("timeout 10", ""),
        ("", ""),
    ],
)
def test_what_a_program_is_called(command: str, name: str) -> None:
    assert program_name(command) == name


def test_a_colour_means_one_thing_in_every_plot() -> None:
    """Only what is the same thing under two names may have one colour."""
    same = (
        {"io", "unhidden", "read"},
        {"compute", "forward"},
        {"before", "even"},  # what others are held against
    )
    for ground in (0, 1):
        users: dict[str, set[str]] = {}
        for role, pair in ROLES.items():
            users.setdefault(pair[ground], set()).add(role)
        for roles in users.values():
            assert len(roles) == 1 or roles in same, roles


def test_a_category_has_the_hue_of_its_class() -> None:
    found = report_tables.training().figures
    classes = {row["cat"]: row["class"] for row in report_tables.training().tables["layers"]}
    for view in found["timeline"].views[1:]:
        for trace in view.data:
            klass = classes.get(trace["name"]) or "other"
            assert trace["meta"]["role"].partition("-")[0] == klass
    calls = found["calls"].views[0].data
    assert {trace["meta"]["role"] for trace in calls} <= {*classes.values(), "other"}


def test_time_begins_at_zero() -> None:
    """Pieces of time begin at multiples of their length, the first one before the first event."""
    report = report_tables.training()
    first = report.tables["overview"].dicts()[0]["first_ns"]
    for name in ("timeline", "heat"):
        table = report.tables[name]
        at = table.columns.index("start_ns")
        table.rows = [(*row[:at], row[at] - 99_800_000, *row[at + 1 :]) for row in table.rows]
    timeline, heat = report.figures["timeline"], report.figures["heat"]
    rows = timeline.table.dicts()
    assert rows[0]["start_ns"] == first
    assert all(row["start_ns"] + row["dur_ns"] == after["start_ns"]
               for row, after in zip(rows, rows[1:]))  # fmt: skip
    assert min(timeline.views[0].data[0]["x"]) == 0
    assert heat.views[0].layout["xaxis"]["range"][0] == 0
    assert all(row["busiest_ns"] is None or row["busiest_ns"] >= first for row in heat.table)
    assert "-99.8 ms" not in page(report)


def test_nothing_is_not_a_nanosecond() -> None:
    report = report_tables.training()
    table = report.tables["calls"]
    at = table.columns.index("p50_ns")
    table.rows = [(*row[:at], 0, *row[at + 1 :]) for row in table.rows]
    view = report.figures["latencies"].views[0]
    axis = view.layout["xaxis"]
    (half,) = (trace for trace in view.data if trace.get("name") == "median")
    (place,) = set(half["x"])
    assert axis["ticktext"][axis["tickvals"].index(place)] == "0"
    others = [x for trace in view.data if trace.get("name") not in (None, "median")
              for x in trace["x"]]  # fmt: skip
    assert place < min(others)
    assert all(text.endswith("<br>0 s") for text in half["customdata"])


def test_names_that_differ_at_their_start_are_told_apart() -> None:
    tail = "/a-directory-that-all-of-them-have/part-00000-of-00001.parquet"
    names = [f"/data/run-{n}{tail}" for n in range(10)]
    figure = report_tables.training(names=names).figures["files"]
    for at, view in enumerate(figure.views):
        shown = figure.layout(at)["yaxis"]["ticktext"]
        assert len(set(shown)) == len(shown) == len(set(view.rows))


def test_processes_of_several_programs_are_called_by_them() -> None:
    report = report_tables.training(ranks=1, workers=3)
    table = report.tables["processes"]
    at = table.columns.index("command")
    commands = ("bash run.sh", "/usr/bin/ls -l", "grep -c x", "grep -c y")
    table.rows = [(*row[:at], command, *row[at + 1 :])
                  for row, command in zip(table.rows, commands)]  # fmt: skip
    assert list(process_names(report).values()) == [
        "rank 0 run.sh 4100",
        "worker ls 4101",
        "worker grep 4102",
        "worker grep 4103",
    ]


def test_a_wide_table_says_in_a_line_what_every_row_has() -> None:
    report = report_tables.training(ranks=4, workers=0)
    told = Outline(page(report)).text()
    assert "The same in every row: role main; command python train.py --epochs 3;" in told


def test_plotly_takes_every_figure() -> None:
    """It refuses what it does not know, the browser's half would say nothing."""
    found = report_tables.training(names=report_tables.HOSTILE).figures
    assert len(found) >= 11
    for figure in found.values():
        for at in range(len(figure.views)):
            figure.plotly(at).to_json()


def test_many_processes_are_grouped() -> None:
    heat = report_tables.training(ranks=150, workers=1, epochs=1, steps=2).figures["heat"]
    view = heat.views[0]
    assert len(view.data[0]["z"]) == 201
    assert heat.notes == ["100 less busy processes share one row"]
    assert len(heat.table) == 300


def test_thousands_of_steps_are_drawn_in_groups() -> None:
    report = report_tables.training(ranks=1, epochs=2, steps=1000)
    steps = report.figures["steps"]
    assert len(steps.views[0].data[0]["x"]) == 400
    assert steps.notes == ["each bar is the mean of 5 consecutive steps of 2,000"]


def test_without_plotly_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DFTracerError, match=r"pip install 'pydftracer\[report\]'"):
        page(report_tables.training())
