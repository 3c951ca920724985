"""What commands print for people: findings, tables that are not followed, consumers, rows that
differ. What they answer to programs is in tests/cases/answers."""

from __future__ import annotations

import io
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lockstep import exits
from lockstep.assets import run_page
from lockstep.commands import report as report_command
from lockstep.commands import verify
from lockstep.commands.check import finding_lines
from lockstep.commands.read import (
    generation_refusals,
    refusal_reasons,
    store_lines,
    table_snippets,
)
from lockstep.commands.recover import changelog_values
from lockstep.commands.replay import exit_code, replay_lines, replay_values
from lockstep.commands.status import (
    consumer_pairs,
    inactive_lines,
    inactive_tables,
    inactive_values,
)
from lockstep.commands.upkeep import upkeep_lines
from lockstep.context import CommandContext
from lockstep.grammar import parse
from lockstep.pipeline.check import Finding
from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.table_state import (
    OrderKind,
    StoppedTable,
    StopPlace,
    Supplier,
    TableCondition,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.changelog import Restatement
from lockstep.pipeline.recovery import RecoveryCase
from lockstep.pipeline.replay.rows import ReplayDifference, content_difference
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.orders import OrderRequest, Reload
from lockstep.pipeline.run.recovery.kept_ledger import LakeChanges
from lockstep.pipeline.run.recovery.recover import RecoveryOutcome
from lockstep.pipeline.run.replay.mirror_correction import MirrorCorrection
from lockstep.pipeline.run.replay.replay import ReplayedBatch, ReplayReport
from lockstep.pipeline.run.replay.segment_comparison import (
    Details,
    SegmentResult,
    SegmentStanding,
)
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.run.upkeep import UpkeepReport
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.upkeep.changes import ChangesPlan
from lockstep.pipeline.upkeep.decide import FileTotal
from lockstep.pipeline.values.consumers import Consumer
from lockstep.pipeline.values.errors import Need, SourceMoving, SpanRefused, StoppedBy
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import Earliest, Latest
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.printing import show_stopped_tables, show_table
from lockstep.streams import Streams

OK = Finding("ok", "gtid_mode", "gtid_mode = ON", topic="the log")
SAME = Finding("ok", "session a", "no session differs now", topic="sessions")
WARNED = Finding("warning", "xa", "lacks XA_RECOVER_ADMIN", "GRANT …;", topic="the account")
REFUSED = Finding("refusal", "shop.t", "MEMORY: gone", "exclude it", topic="the tables")


def test_what_matters_comes_first() -> None:
    """Refusals, warnings, a line for each topic that is fine, the count."""
    assert list(finding_lines([OK, WARNED, SAME, REFUSED, SAME])) == [
        "  refusal  shop.t: MEMORY: gone",
        "           hint: exclude it",
        "  warning  xa: lacks XA_RECOVER_ADMIN",
        "           hint: GRANT …;",
        "  ok       the log: gtid_mode = ON",
        "  ok       sessions: no session differs now",
        "  1 refusal, 1 warning, 3 ok",
    ]


def test_tables_with_the_same_trouble_share_a_line() -> None:
    """Five are named, and five of their cures; `--json` has all."""
    found = [
        Finding("warning", f"shop.t{n}", "unread", f"GRANT {n};", topic="the account")
        for n in range(8)
    ]
    shown = list(finding_lines(found))
    assert shown[0] == "  warning  shop.t0, shop.t1, shop.t2, shop.t3, shop.t4 and 3 more: unread"
    assert shown[1:6] == [f"           hint: GRANT {n};" for n in range(5)]
    assert shown[6:] == [
        "                 and 3 more hints; --json has all of them",
        "  8 warnings",
    ]


def test_long_lines_of_what_is_fine_are_folded() -> None:
    """Nothing is wider than a terminal, and names stay whole."""
    many = [Finding("ok", "x", f"binlog_setting_{n} = ON", topic="the log") for n in range(20)]
    shown = list(finding_lines(many))
    assert max(map(len, shown)) <= 100
    assert all(f"binlog_setting_{n} = ON" in " ".join(shown) for n in (0, 7, 19))


# -- tables that are not followed ------------------------------------------------------------


MOMENT = datetime(2026, 11, 1, 6, tzinfo=UTC)
STOPPED = StopPlace(3, Coordinates.parse("binlog.000002:400"))


def state(name: str, condition: TableCondition, reason: str | None = None) -> TableState:
    table = TableName("shop", name)
    found = TableState(table, condition, 1, f"shop/shop/{name}", f"shop/_changes/shop/{name}")
    if condition is TableCondition.FOLLOWING:
        return found
    hint = "do this" if reason else None
    by = None if reason is None else StoppedBy.PERSON if "paused" in reason else StoppedBy.SYSTEM
    return replace(
        found,
        reason=reason,
        hint=hint,
        position=str(STOPPED.at) if reason else None,
        stopped_by=by,
        stopped=STOPPED,
    )


STATES = {
    one.table: one
    for one in (
        state("a", TableCondition.FOLLOWING),
        state("b", TableCondition.STOPPED, "bytes without meaning"),
        state("c", TableCondition.STOPPED, "ann paused it: a load"),
        state("d", TableCondition.DROPPED),
        state("e", TableCondition.STOPPED, "its key changed"),
    )
}
IN_SHOP = TablePatterns(("shop.*",))
RESUMED = TableOrder(7, TableName("shop", "e"), OrderKind.RESUME, "bob", "mended", MOMENT, STOPPED)
TABLES = inactive_tables(STATES, [RESUMED], IN_SHOP.matches)


def test_each_is_told_as_what_it_is() -> None:
    """Stopped by somebody, or dropped; an order takes the hint's place."""
    assert list(inactive_lines(TABLES)) == [
        "  shop.b was stopped by Lockstep at binlog.000002:400: bytes without meaning",
        "    hint: do this",
        "  shop.c was stopped by a person at binlog.000002:400: ann paused it: a load",
        "    hint: do this",
        "  shop.d was dropped at the source at binlog.000002:400",
        "  shop.e was stopped by Lockstep at binlog.000002:400: its key changed",
        "    resumed by bob, 2026-11-01 06:00:00 UTC: mended; the next run catches it up "
        "through the log from binlog.000002:400",
    ]


@pytest.mark.parametrize(
    ("need", "way"),
    [
        (Need.ROWS, "reads it from the source"),
        (Need.CONSENT, "reads it from the source"),
        (Need.STRUCTURE, "reads it from the source"),
        (Need.COLUMNS, "catches it up through the log from binlog.000002:400"),
        (Need.MIRROR, "catches it up through the log from binlog.000002:400"),
    ],
)
def test_an_order_tells_how_the_table_comes_back(need: Need, way: str) -> None:
    """What lacks only columns goes on through the log; they are read beside it."""
    table = replace(state("e", TableCondition.STOPPED, "it was altered"), need=need)
    assert (
        way
        in list(inactive_lines(inactive_tables({table.table: table}, [RESUMED], IN_SHOP.matches)))[
            -1
        ]
    )


def test_a_dropped_table_is_not_quarantined() -> None:
    """It has no changes that the lake could lack."""
    assert [str(one.table) for one in stopped_tables(STATES, IN_SHOP.matches)] == [
        "shop.b",
        "shop.c",
        "shop.e",
    ]
    assert {one.position for one in stopped_tables(STATES, IN_SHOP.matches)} == {str(STOPPED.at)}


def test_an_excluded_table_asks_for_nothing() -> None:
    """It is named with its last place, and neither with a hint nor with an order, unless changes
    of it are kept."""
    matches = TablePatterns(("shop.*",), ("shop.b", "shop.e")).matches
    assert [str(one.table) for one in stopped_tables(STATES, matches)] == ["shop.c"]
    unmerged = replace(STATES[RESUMED.table], missing_since=4)
    assert [
        "since batch 4 are not merged" in (one.state.hint or "")
        for one in inactive_tables({RESUMED.table: unmerged}, [], matches)
    ] == [True]
    tables = inactive_tables(STATES, [RESUMED], matches)
    assert [line for line in inactive_lines(tables) if "shop.c" not in line] == [
        "  shop.b is excluded; it was stopped by Lockstep at binlog.000002:400: bytes without "
        "meaning",
        "    hint: do this",
        "  shop.d was dropped at the source at binlog.000002:400",
        "  shop.e is excluded; it was stopped by Lockstep at binlog.000002:400: its key changed",
    ]
    told = {one["table"]: one for one in to_json(inactive_values(tables))}
    assert [(one["excluded"], one["order"], one["hint"]) for one in told.values()] == [
        (True, None, None),
        (False, None, "do this"),
        (False, None, None),
        (True, None, None),
    ]


# -- consumers -------------------------------------------------------------------------------


MADE = datetime(2026, 11, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("consumer", "sentence"),
    [
        (
            Consumer("shop", "billing", None, 3, 20_000, 2, MADE),
            "before the first batch, 3 batches behind (20,000 changes), 2 open deliveries",
        ),
        (
            Consumer("shop", "billing", 7, 1, 1, 1, MADE),
            "after batch 7, 1 batch behind (1 change), 1 open delivery",
        ),
        (Consumer("shop", "billing", 8, 0, 0, 0, MADE), "after batch 8, nothing behind"),
    ],
)
def test_a_person_reads_a_sentence(consumer: Consumer, sentence: str) -> None:
    """One line a consumer."""
    assert consumer_pairs([consumer]) == {"consumer billing": sentence}


# -- tables on a terminal --------------------------------------------------------------------


names = st.from_regex(r"[a-z_]{1,64}\.[a-z_$0-9]{1,64}", fullmatch=True)


def page(width: int = 200) -> tuple[CommandContext, io.StringIO]:
    out = io.StringIO()
    context = CommandContext(Path("x"), cast("Streams", None), wants_json=False)
    vars(context)["answer_console"] = Console(
        file=out, width=width, highlight=False, soft_wrap=True
    )
    return context, out


def test_tables_that_stopped_for_one_reason_are_told_together() -> None:
    """With each cure that differs, and no more names than a person reads."""
    context, out = page()
    hint, five = (
        "`lockstep resume shop.t{} --reason …`",
        "shop.t0, shop.t1, shop.t2, shop.t3, shop.t4",
    )
    alike = [
        StoppedTable(TableName("shop", f"t{n}"), "they went", hint.format(n), "a place")
        for n in range(7)
    ]
    other = StoppedTable(TableName("shop", "x"), "it differs", "look", "a place")
    show_stopped_tables(context, [*alike[:3], other, *alike[3:]])
    assert out.getvalue().splitlines() == [
        f"{five} and 2 more are stopped by Lockstep at a place: they went",
        *(f"  hint: {hint.format(n)}" for n in range(5)),
        "  hint: 2 more: `lockstep status` shows all of them",
        "shop.x is stopped by Lockstep at a place: it differs",
        "  hint: look",
    ]


@pytest.mark.parametrize(("is_planned", "said"), [(True, "would be deleted"), (False, "deleted")])
def test_a_plan_of_upkeep_says_what_would_be_done(is_planned: bool, said: str) -> None:
    """Of files and of the ledger's rows alike."""
    changes = ChangesPlan(deleted=FileTotal(2, 2048), ledger_rows=3)
    lines = [*upkeep_lines(UpkeepReport((), 0.0, changes), is_planned=is_planned)]
    assert lines[:2] == [
        f"changes: 2 files (2.0 KiB) {said}",
        f"ledger: 3 rows about them {said}",
    ]


@given(
    st.lists(st.tuples(names, st.integers(0, 10**9), names), min_size=1, max_size=4),
    st.integers(20, 120),
)
def test_no_name_is_broken(rows: list[tuple[str, int, str]], width: int) -> None:
    """Its line has its numbers, too."""
    context, out = page(width)
    told = [(name, f"{count:,}", f"{place} and more") for name, count, place in rows]
    show_table(context, ("table", "rows at the source", "place"), told)
    words = [line.split() for line in out.getvalue().splitlines()]
    for name, count, place in rows:
        assert any({name, f"{count:,}", place} <= set(line) for line in words)


def test_numbers_stand_below_each_other_although_one_is_missing() -> None:
    context, out = page(80)
    show_table(context, ("table", "rows"), [("a", 12345), ("b", None), ("c", 7)])
    ends = [
        line.index(digit) for line in out.getvalue().splitlines() for digit in "57" if digit in line
    ]
    assert len(ends) == 2
    assert len(set(ends)) == 1


# -- rows that a comparison found different --------------------------------------------------


WRONG = 1234
ORDERS = TableName("shop", "orders")


def place(offset: int) -> Position:
    at = Coordinates.parse(f"binlog.000002:{offset}")
    return Position(at, GtidSet(), str(UUID(int=1)))


def report() -> ReplayReport:
    """A file and a mirror in which `WRONG` rows differ, with as many of them as are kept."""
    found = content_difference(
        [pa.table({"id": range(WRONG)})],
        [pa.table({"id": range(1, WRONG + 1)})],
        most=Details().most_rows,
    )
    rows = tuple(ReplayDifference("different", f"id={one['id']}") for one, _ in found.examples)
    state, moment = BatchState.ACKNOWLEDGED, datetime(2026, 11, 1, 6, tzinfo=UTC)
    batch = Batch(2, "shop", state, place(4), 1, None, 0, 1, None, moment, end=place(400))
    segment = SegmentResult(
        2, ORDERS, 1, SegmentStanding.DIFFERENT, wrong=found.row_count, rows=rows
    )
    return ReplayReport(
        Span(Earliest(), Latest()),
        (ReplayedBatch(batch, None, (segment,)),),
        (ORDERS,),
        (MirrorCorrection(ORDERS, keys=WRONG, wrong=found.row_count, rows=rows),),
    )


def test_the_text_shows_twenty_rows_of_each() -> None:
    """And says how many more there are."""
    lines = list(replay_lines(report(), is_planned=False))
    assert sum("  different: id=" in line for line in lines) == 2 * 20
    assert sum(line == "  1,214 more" for line in lines) == 2


def test_a_replay_says_what_it_found_equal() -> None:
    """And a table without a key, which is never compared by key, is no trouble."""
    compared = report()
    [batch] = compared.batches
    same = SegmentResult(2, ORDERS, 1, SegmentStanding.SAME)
    no_key = MirrorCorrection(ORDERS, not_compared="no key", hint="verify", is_comparable=False)
    equal = replace(compared, batches=(replace(batch, segments=(same,)),), mirrors=(no_key,))
    assert "1 part of the changelogs: equal to the log" in list(
        replay_lines(equal, is_planned=False)
    )
    assert exit_code(equal) == 0
    stopped = replace(no_key, is_comparable=True)
    assert exit_code(replace(equal, mirrors=(stopped,))) == 6


def test_json_has_five_hundred_of_each() -> None:
    """And the number of all that differ."""
    told = to_json(replay_values(report()))["tables"]["shop.orders"]
    [segment] = told["changelog"]
    assert (segment["wrong"], len(segment["differences"])) == (WRONG, 500)
    assert (told["mirror"]["wrong"], len(told["mirror"]["differences"])) == (WRONG, 500)


def test_json_has_the_values_of_each_side() -> None:
    """Under names that do not change with those of the fields."""
    row = ReplayDifference("different", "id=1", ("a",), {"a": "1"}, {"a": "2"})
    (mirror,) = report().mirrors
    told = to_json(replace(mirror, rows=(row,)))["differences"]
    assert told == [
        {
            "kind": "different",
            "key": "id=1",
            "columns": ["a"],
            "told": {"a": "1"},
            "shown": {"a": "2"},
        }
    ]


# -- code to paste ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/lake/shop/orders", '/it\'s a "lake"/a=20b'])
def test_snippets_can_be_pasted(path: str) -> None:
    """The Python ones compile; the SQL one doubles the quotes in the path."""
    told = table_snippets(path)
    for reader in ("Spark", "delta-rs"):
        compile(told[reader], reader, "exec")
    quoted = path.replace("'", "''")
    assert f"delta_scan('{quoted}')" in told["DuckDB"]
    assert Path(path).name in told["Spark"]


def test_the_name_of_a_secrets_file_is_quoted_for_duckdb() -> None:
    """It stands where the file's content belongs."""
    lines = store_lines("s3://lake", {"secret_access_key": "file:it's"})["DuckDB"]
    assert "secret 'the content of it''s'" in lines


def test_a_reader_that_is_missing_is_named_with_the_reason() -> None:
    """A column's name may need column mapping, although none was renamed; several generations are
    no single table for readers that open one."""
    assert refusal_reasons(["columnMapping"], ["id", "a b"]) == {
        "Polars": "it does not read this table: the name of its column 'a b' needs column mapping"
    }
    assert "renamed or dropped" in refusal_reasons(["columnMapping"], ["id"])["Polars"]
    assert generation_refusals(1) == {}
    refused = generation_refusals(3)
    assert [*refused] == ["delta-rs", "Polars", "DuckDB"]
    assert "3 Delta tables" in refused["Polars"]


def test_a_recovery_says_what_its_changelogs_list_now() -> None:
    """A program finds the same keys, whatever the fields are called."""
    added = (SegmentFile("c.parquet"),)
    restatement = Restatement(7, ("d.parquet", "e.parquet"), added, lost_paths=("a.parquet",))
    outcome = RecoveryOutcome(
        RecoveryCase.KEEP_LEDGER,
        lake_changes=LakeChanges((("shop/_changes/shop/orders", restatement),)),
    )
    assert changelog_values(outcome) == {
        "changelogs": {
            "shop/_changes/shop/orders": {"removed": 2, "added": 1, "lost": ("a.parquet",)}
        }
    }


def test_a_repair_whose_run_fails_reads_no_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tables of which no condition can select the rows are read completely."""
    by_key = TableName("shop", "by_key")
    rows = RereadRows(by_key, read_condition("id in (1)"), "ann", "differs")
    whole = Reload(OrderRequest(TableName("shop", "whole"), "ann", ""), None, Supplier.SOURCE, "")
    planned, said = list[TableName](), list[str]()
    replacements: dict[str, Any] = {
        "plan_repairs": lambda *_: [
            replace(whole, request=OrderRequest(by_key, "ann", ""), condition_rows=rows),
            whole,
        ],
        "reload_by_condition": lambda *_: (exits.TRY_AGAIN, {"reread": {}}),
        "ReloadFacts": lambda *_: None,
        "plan_reload": lambda _, request, *__: planned.append(request.table),
        "record_reloads": lambda *_: [],
    }
    for name, replacement in replacements.items():
        monkeypatch.setattr(f"lockstep.commands.verify.{name}", replacement)
    ledger = SimpleNamespace(lock=lambda *_: nullcontext())
    ports: Any = SimpleNamespace(ledger=ledger, source=SimpleNamespace(name="shop"))
    context: Any = SimpleNamespace(say=lambda *lines: said.extend(lines))
    adapters: Any = None
    report: Any = None
    verify._repair_tables(adapters, ports, report, context, dry_run=False)
    assert planned == [whole.table]
    assert any("`lockstep verify shop.by_key --repair` tries again" in line for line in said)


def test_a_source_that_cannot_be_compared_does_not_keep_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its error is an answer; of the only source it is the command's."""

    def compare(*arguments: Any) -> tuple[int, dict[str, Any]]:
        if arguments[3] == "away":
            raise SourceMoving("it moves", hint="wait")
        return exits.DONE, {}

    monkeypatch.setattr(verify, "_verify_source", compare)
    sources = [SimpleNamespace(name="away"), SimpleNamespace(name="there")]
    context: Any = SimpleNamespace(
        sources=lambda _: sources,
        adapters=nullcontext,
        report_error=lambda _, error: (exits.TRY_AGAIN, {"error": error.message}),
    )
    arguments = parse(["verify"])
    assert verify.perform(arguments, context).payload["sources"] == {
        "away": {"error": "it moves", "exit_code": exits.TRY_AGAIN},
        "there": {"exit_code": exits.DONE},
    }
    sources.pop()
    with pytest.raises(SourceMoving):
        verify.perform(arguments, context)


def test_a_source_without_a_run_does_not_keep_others_from_their_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its error is an answer; of the only source it is the command's."""

    def report_of_run(_: object, source: str, *__: object) -> object:
        if source == "new":
            raise SpanRefused("nothing was captured yet", hint="run")
        return SimpleNamespace(title="run 1")

    monkeypatch.setattr(report_command, "report_of_run", report_of_run)
    monkeypatch.setattr(report_command, "_report_values", lambda *_: {})
    monkeypatch.setattr(report_command, "_report_lines", lambda *_: [])
    monkeypatch.setattr(run_page, "render_page", lambda *_: "a page")
    sources = [SimpleNamespace(name="new"), SimpleNamespace(name="shop")]
    context: Any = SimpleNamespace(
        sources=lambda _: sources,
        adapters=lambda: nullcontext(SimpleNamespace(ledger=lambda: None)),
        settings=SimpleNamespace(state_folder=tmp_path, lake_path=lambda: tmp_path),
        report_error=lambda _, error: (2, {"error": error.message}),
        say=lambda *_: None,
    )
    page = tmp_path / "pages/shop/1.html"
    outcome = report_command.perform(parse(["report"]), context)
    assert outcome.code == exits.USAGE
    assert outcome.payload["sources"] == {
        "new": {"error": "nothing was captured yet", "exit_code": exits.USAGE},
        "shop": {"page": page, "exit_code": exits.DONE},
    }
    assert page.read_text() == "a page"
    sources.pop()
    with pytest.raises(SpanRefused):
        report_command.perform(parse(["report"]), context)


def test_the_error_of_a_source_names_it_once() -> None:
    notes = list[str]()
    context: Any = SimpleNamespace(note=notes.append)
    for message in ("shop: nothing was captured yet", "nothing was captured yet"):
        CommandContext.report_error(context, "shop", SpanRefused(message, hint="run"))
    assert notes == ["shop: nothing was captured yet\nhint: run"] * 2
