"""A report's page says what the ledger has, whatever tables and people call things."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import given, settings

from lockstep.assets.run_page import page_path, render_page, rows_over_time, waterfall
from lockstep.pipeline.model.batch import Batch, BatchState, CapturedRows
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import StoppedTable, TableEvent, TableEventKind
from lockstep.pipeline.proof.proven import ComparisonRecord
from lockstep.pipeline.run.status.span_report import SpanReport, StructureChange
from lockstep.pipeline.run.status.version_sets import MissingVersion, ShownVersions
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.intent import Intent, SettledWrite, VersionSetEntry
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName

BEGIN = datetime(2026, 11, 1, 6, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=30
) | st.sampled_from(
    ["</td><script>alert(1)</script>", "{{ 1 + 1 }}", '" onload="x', "a\n<b>", "&lt;"]
)


def position(offset: int) -> Position:
    return Position(Coordinates(LogFile("binlog", 1), offset), GtidSet(), "uuid", BEGIN)


def batch(number: int) -> Batch:
    begin = BEGIN + 60 * number * SECOND
    return Batch(
        id=number,
        source="shop",
        state=BatchState.ACKNOWLEDGED,
        start=position(100 * number),
        continued_batch=None,
        start_decision=1,
        sequence_before=0,
        token=number,
        run_id=f"run-{number}",
        created_at=begin,
        end=position(100 * number + 100),
        transactions=2,
        captured_at=begin + 2 * SECOND,
        merged_at=begin + 9 * SECOND,
        acknowledged_at=begin + 10 * SECOND,
    )


def made(table: TableName, text: str) -> SpanReport:
    """A run after another, of one table, in which everything happened that a page tells of."""
    before, own = batch(1), batch(2)
    intent = Intent(1, table, "app", 1, 2, 2, "merge")
    begun = own.created_at + 3 * SECOND
    place = position(250).at
    return SpanReport(
        source="shop",
        title=f"run {text}",
        created_at=BEGIN,
        batches=(own,),
        earlier_batches=(before,),
        captured_rows=(
            CapturedRows(1, table, RowCounts(9, 0, 0), 9, 10, 0),
            CapturedRows(2, table, RowCounts(1, 2, 3), 8, 5000, 4),
        ),
        writes=(SettledWrite(intent, 7, begun, begun + 5 * SECOND, text),),
        structure_changes=(
            StructureChange(
                TableEvent(table, TableEventKind.CHANGED, 1, 2, place, text), BEGIN, text, (text,)
            ),
        ),
        version_set=ShownVersions(
            "shop",
            own,
            position(300),
            (VersionSetEntry(table, f"shop/{text}", 7),),
            (MissingVersion(table, text, text),),
            (Gap(1, 2, BEGIN, text, text, (str(table),), text, text),),
        ),
        stopped_tables=(StoppedTable(table, text, text, text),),
        proofs=(),
    )


class Reader(HTMLParser):
    """The elements of a page with the names of their attributes, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


PLAIN = Reader(render_page(made(TableName("shop", "orders"), "text"), Path("/lake")))


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=60, deadline=None)
def test_a_page_has_the_same_elements_whatever_things_are_called(
    database: str, name: str, text: str
) -> None:
    """Names and reasons are text and nothing else; each is on the page as it is. Its file has a
    name that every system takes."""
    table = TableName(database, name)
    report = made(table, text)
    found = Reader(render_page(report, Path("/lake")))
    assert found.elements == PLAIN.elements
    assert found.text.count(str(table)) >= PLAIN.text.count("shop.orders") - 1
    assert text in found.text
    kept = page_path(Path("/state"), "shop", report.title)
    assert kept.parent == Path("/state/pages/shop")


def test_a_table_is_not_equal_while_a_sample_of_it_differs() -> None:
    """An open difference is shown rather than a newer or wider comparison that does not end it."""
    table = TableName("shop", "orders")
    whole = ComparisonRecord(table, True, BEGIN, 0, None, BEGIN)
    sample = ComparisonRecord(table, False, BEGIN + SECOND, 3, None, None)
    report = made(table, "text")
    for records, proof in (
        ((whole, sample), sample),
        ((whole, replace(sample, differing_count=0)), replace(sample, differing_count=0)),
        ((replace(whole, differing_count=5), replace(sample, differing_count=0)), None),
    ):
        (total,) = replace(report, proofs=records).totals
        assert total.proof == (proof or records[0])


def test_one_row_is_not_rows() -> None:
    """Of a table that differed, and of the highest column."""
    table = TableName("shop", "orders")
    report = replace(
        made(table, "text"),
        captured_rows=(CapturedRows(2, table, RowCounts(1, 0, 0), 1, 10, 0),),
        proofs=(ComparisonRecord(table, True, BEGIN, 1, None, None),),
    )
    text = " ".join(Reader(render_page(report, Path("/lake"))).text.split())
    assert "1 row differed," in text
    assert "The highest column has 1 row." in text


def test_a_run_is_told_without_the_runs_before_it() -> None:
    """Its rows alone are counted; those before are in the plot. Needs nothing beside itself."""
    report = made(TableName("shop", "orders"), "text")
    assert report.counts == RowCounts(1, 2, 3)
    columns, highest = rows_over_time(
        (*report.earlier_batches, *report.batches), report.captured_rows, frozenset({2})
    )
    assert (highest, [column.is_own for column in columns]) == (10, [False, True])
    assert [bar.step for bar in waterfall(report.batches, report.writes)] == [
        "read",
        "publish",
        "merge",
        "acknowledge",
    ]
    tags = {element[0] for element in PLAIN.elements}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "base"})
    assert "http" not in render_page(report, Path("/lake")).replace("http-equiv", "")


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), min_size=1, max_size=300),
    st.lists(st.floats(0, 1e6), max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_figures_stay_inside_their_frames(
    rows: list[tuple[int, int]], seconds: list[float]
) -> None:
    """Of any number of batches and writes; and no row of them is left out."""
    batches = [batch(number) for number in range(1, len(rows) + 1)]
    table = TableName("shop", "orders")
    captured = [
        CapturedRows(number, table, RowCounts(inserted, 0, 0), 1, 1, read)
        for number, (inserted, read) in enumerate(rows, 1)
    ]
    columns, highest = rows_over_time(batches, captured, frozenset())
    shown = sum((one.inserted + one.read) * highest / 100 for one in columns)
    assert abs(shown - sum(map(sum, rows))) <= 1e-6 * max(shown, 1)
    assert all(one.inserted + one.read <= 100.001 for one in columns)
    assert len(columns) <= 80
    intents = [Intent(n, table, "app", n, 1, 1, "merge") for n in range(len(seconds))]
    writes = [
        SettledWrite(intent, intent.id, BEGIN, BEGIN + taken * SECOND)
        for intent, taken in zip(intents, seconds, strict=True)
    ]
    bars = waterfall([replace(batches[0], merged_at=None, acknowledged_at=None)], writes)
    assert all(bar.left >= 0 and bar.left + bar.width <= 100.02 for bar in bars)
    assert {bar.seconds for bar in bars if bar.step == "merge"} <= set(map(rounded, seconds))


def rounded(seconds: float) -> float:
    return (seconds * SECOND).total_seconds()


def test_long_spans_have_pages_of_their_own(tmp_path: Path) -> None:
    """Sets of GTIDs may begin alike; a name fits a file system."""
    begin = f"from gtid:{'3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9,' * 5} to gtid:"
    paths = {page_path(tmp_path, "shop", f"{begin}{end}") for end in ("a", "b")}
    assert len(paths) == 2
    assert all(len(path.name) < 200 for path in paths)
