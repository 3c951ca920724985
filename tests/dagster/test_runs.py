"""Runs as Dagster performs them, on a real MySQL; ledger and lake are memory's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lockstep.assets.home import dagster_home
from lockstep.assets.names import SOURCE_TAG, UNTIL_TAG, WAITS_TAG, SourceNames, lease_tag
from lockstep.assets.table_list import TableEntry, read_table_list
from lockstep.assets.table_news import batch_ends
from lockstep.pipeline.mirror.layout import path_part
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.errors import LedgerUnavailable, SourceBusy
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName
from tests.dagster.place import Stand, checks_of, source_of
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.twins.mirrors import MemoryMirrors

TABLES = ("a", "b", "order items")
NAMES = SourceNames("shop")
AWKWARD = (
    "order lines",
    "täble",
    "t$1",
    "a/b",
    "a__b",
    "b-c",
    "b_c",
    "T",
    "t",
    "quo`te",
    "=41",
    "_x",
)
QUOTED = ["`{}`".format(name.replace("`", "``")) for name in AWKWARD]


@contextmanager
def source(mysql: MySqlStand, database: str, folder: Path) -> Iterator[Stand]:
    """A source with three empty tables, made before the start, that nobody captured yet."""
    tables = [f"create table `{table}` (id int primary key, v int)" for table in TABLES]
    mysql.execute(*tables, database=database)
    with source_of(mysql, database, folder) as made:
        yield made


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    with source(mysql, database, tmp_path) as made:
        yield made


def key(database: str, table: str) -> dg.AssetKey:
    return NAMES.table_key(TableName(database, table))


def materialized(result: dg.ExecuteInProcessResult) -> set[dg.AssetKey | None]:
    """What was made; not the hours that happened to be over."""
    made = {event.asset_key for event in result.get_asset_materialization_events()}
    return made - {NAMES.replayed_key}


def acknowledged(stand: Stand) -> Coordinates:
    """The place up to which the ledger is done."""
    cursor = stand.adapters.books.cursors("shop").acknowledged
    assert cursor is not None
    return cursor.position.at


def steps(*names: str) -> set[dg.AssetKey]:
    return {dg.AssetKey(["shop", name]) for name in names}


ALL_STEPS = steps("captured", "merged", "acknowledged")


def entries(database: str) -> tuple[TableEntry, ...]:
    return tuple(TableEntry(database, name, name, name) for name in TABLES)


def test_a_run_materializes_what_changed_and_only_that(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """One changed table of three: three steps and one table, then an idle run: no table, and the
    position stays; it moves with changes of tables that nobody captures. All acknowledge."""
    mysql.execute("insert into a values (1, 1), (2, 2)", database=database)
    first = stand.run()
    assert first.success
    assert materialized(first) == {*ALL_STEPS, key(database, "a")}
    elsewhere = mysql.fresh_name()
    for traffic in ((), (f"create database {elsewhere}", f"drop database {elsewhere}")):
        before = acknowledged(stand)
        mysql.execute(*traffic)
        idle = stand.run()
        assert idle.success
        assert materialized(idle) == ALL_STEPS
        record = stand.records[-1]
        assert record.capture_report is not None
        assert (record.capture_report.rows, record.capture_report.end.at) == (
            0,
            acknowledged(stand),
        )
        assert (acknowledged(stand) != before) == bool(traffic)
    assert stand.adapters.books.unfinished_batches("shop") == []
    assert all(record.acknowledge_report is not None for record in stand.records)


@pytest.mark.parametrize("failing_group", [1, 2])
def test_a_merge_is_logged_although_the_ledger_was_away(
    stand: Stand,
    mysql: MySqlStand,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    failing_group: int,
) -> None:
    """Between two merges, or after the last one: the step is tried again, which finds the merges
    done, but their events must not be lost."""
    mysql.execute("insert into a values (1, 1)", "insert into b values (1, 1)", database=database)
    groups = iter(range(1, 100))

    def ends(ports: RunPorts, batch_ids: Iterable[int]) -> dict[int, Position | None]:
        if next(groups) == failing_group:
            raise LedgerUnavailable("It is gone.", hint="start it")
        return batch_ends(ports, batch_ids)

    monkeypatch.setattr("lockstep.assets.runs._LOGGED_AT_ONCE", 0)
    monkeypatch.setattr("lockstep.assets.runs.batch_ends", ends)
    result = stand.run()
    assert result.success
    assert materialized(result) == {*ALL_STEPS, key(database, "a"), key(database, "b")}


def test_an_error_after_a_step_is_shown_with_its_hint(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger may be away when what the step did is reported."""

    def fail(*_: object) -> None:
        raise LedgerUnavailable("It is gone.", hint="start it")

    monkeypatch.setattr("lockstep.assets.runs.log_state", fail)
    result = stand.run()
    [failed] = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert told.description == "It is gone.\nhint: start it"


@dataclass(frozen=True)
class Everything:
    """A source after a run in which much happened."""

    stand: Stand
    database: str
    result: dg.ExecuteInProcessResult


@pytest.fixture(scope="module")
def everything(mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    database = mysql.fresh_name()
    mysql.execute(f"create database {database}")
    with source(mysql, database, tmp_path_factory.mktemp("runs")) as stand:
        mysql.execute(
            "insert into a values (1, 1), (2, 2)",
            "delete from a where id = 1",
            "create table wide (id int primary key, t text)",
            "insert into wide values (1, repeat('x', 50000))",
            "create table odd (id int primary key, j json)",
            "insert into odd values (1, json_object('a', 1, 'b', repeat('x', 50)))",
            "set session binlog_row_value_options = PARTIAL_JSON",
            "update odd set j = json_set(j, '$.a', 2)",
            "set sql_mode = ''",
            "create table dated (id int primary key, d date)",
            "insert into dated values (1, '0000-00-00'), (2, '2024-00-01'), (3, null)",
            *(f"create table {name} (id int primary key, v int)" for name in QUOTED),
            *(f"insert into {name} values ({n}, 0)" for n, name in enumerate(QUOTED)),
            database=database,
        )
        yield Everything(stand, database, stand.run())
    mysql.execute(f"drop database {database}")


def test_a_run_is_under_one_lease_and_marked_with_it(everything: Everything) -> None:
    """All steps share the lease that names the run; afterwards the source is free."""
    stand, result = everything.stand, everything.result
    lease = stand.adapters.books.newest_lease("shop")
    assert lease is not None
    assert (lease.token, lease.run_id, lease.live) == (1, result.run_id, False)
    run = stand.instance.get_run_by_id(result.run_id)
    assert run is not None
    lease_text = f"1 {result.run_id[:8]}"
    assert (run.tags[SOURCE_TAG], run.tags[lease_tag("shop")]) == ("shop", lease_text)


def test_a_tables_metadata_tells_the_run(everything: Everything) -> None:
    """Rows by operation, Delta version, position, bytes, columns."""
    stand, database = everything.stand, everything.database
    metadata = stand.metadata(key(database, "a"))
    told = {name: value.value for name, value in metadata.items()}
    cursor = stand.adapters.books.cursors("shop").acknowledged
    assert cursor is not None
    assert (told["rows inserted"], told["rows updated"], told["rows deleted"]) == (2, 0, 1)
    assert told["Delta version"] == 0
    assert told["position"] == str(cursor.position)
    assert isinstance(told["change bytes"], int)
    assert told["change bytes"] > 0
    read = stand.metadata(NAMES.captured_key)
    largest, whole = (read[what].value for what in ("largest transaction bytes", "log bytes"))
    assert isinstance(largest, int)
    assert isinstance(whole, int)
    assert whole / 2 <= largest < whole, "of one wide row, and others"
    columns = metadata["dagster/column_schema"]
    assert isinstance(columns, dg.TableSchemaMetadataValue)
    assert [column.name for column in columns.schema.columns] == ["id", "v"]


def test_a_table_quarantined_does_not_hold_the_run(everything: Everything) -> None:
    """The others are merged and acknowledged; the check reports it and blocks nothing."""
    result, database = everything.result, everything.database
    assert result.success
    merged = {key(database, name) for name in ("a", "wide", "dated", *AWKWARD)}
    assert materialized(result) == {*ALL_STEPS, *merged}
    checks = checks_of(result)
    quarantined = checks["no_table_stopped"]
    assert (quarantined.passed, quarantined.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert checks["no_gap"].passed
    assert everything.stand.adapters.books.unfinished_batches("shop") == []


def test_zero_dates_are_null_and_counted(everything: Everything) -> None:
    """What a policy softens is never silent."""
    record, database = everything.stand.records[0], everything.database
    assert record.capture_report is not None
    assert record.capture_report.softened_counts == {f"{database}.dated.d": 2}
    rows = everything.stand.adapters.lake.tables[f"shop/{database}/dated"][-1].rows
    assert rows["d"].to_pylist() == [None] * 3


def test_awkward_names(everything: Everything, mysql: MySqlStand) -> None:
    """No name meets another or is lost on the way, whether a run or a click merges its table. The
    run lists the tables that it had rows of in its list."""
    stand, database = everything.stand, everything.database
    keys = {key(database, name) for name in AWKWARD}
    assert len(keys) == len(AWKWARD)
    known = read_table_list(stand.adapters.settings.state_folder, "shop")
    assert {one.name for one in known} == {"a", "wide", "odd", "dated", *AWKWARD}
    mysql.execute(*(f"update {name} set v = id + 1" for name in QUOTED), database=database)
    stand.click(known, NAMES.captured_key)
    assert materialized(stand.click(known, *keys)) == keys
    assert materialized(stand.run()) == ALL_STEPS
    for number, name in enumerate(AWKWARD):
        mirror = stand.adapters.lake.tables[f"shop/{database}/{path_part(name)}"][-1]
        assert mirror.rows.to_pylist() == [{"id": number, "v": number + 1}]


def test_a_gap_is_a_warning_from_then_on(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """The tables that may miss changes and the reason, with every run, as no run heals it;
    the run that left something out says so too."""
    mysql.execute("insert into a values (1, 1)", database=database)
    stand.run()
    mysql.execute("insert into a values (2, 2)", database=database)
    books = stand.adapters.books
    with books.lock("shop", "test", None) as lease:
        books.choose_start(lease, place="latest", reason="row 2 is of no use", author="ann")
    for continuity in ("gap", None):
        result = stand.run()
        assert result.success
        gap = checks_of(result)["no_gap"]
        assert (gap.passed, gap.severity) == (False, dg.AssetCheckSeverity.WARN)
        table = gap.metadata["gaps"]
        assert isinstance(table, dg.TableMetadataValue)
        (record,) = table.records
        assert f"{database}.a" in str(record.data["tables"]).split(", ")
        assert "row 2 is of no use" in str(record.data["reason"])
        told = stand.metadata(NAMES.captured_key).get("continuity")
        assert (told.value if told else None) == continuity


def test_a_run_ends_at_its_tag(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """As a person types it on the launchpad; a run without one ends at the head. A tag that is no
    place fails with the form: the sentence and the cure are on the page; nothing is retried,
    nothing is recorded."""
    result = stand.run(tags={UNTIL_TAG: "tomorrow"})
    assert not result.success
    [failed] = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    for part in (UNTIL_TAG, "expected 2026-11-01T06:00:00Z", "hint: "):
        assert part in (told.description or "")
    assert stand.adapters.books.newest_lease("shop") is None
    mysql.execute("insert into a values (1, 1)", database=database)
    until = str(head(mysql))
    mysql.execute("insert into a values (2, 2)", database=database)
    assert stand.run(tags={UNTIL_TAG: until}).success
    mirror = stand.adapters.lake.tables[f"shop/{database}/a"]
    assert mirror[-1].rows.to_pylist() == [{"id": 1, "v": 1}]
    assert stand.run().success
    assert mirror[-1].rows.to_pylist() == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]


def test_a_click_does_not_acknowledge_what_was_not_merged(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """One table and `acknowledged` are clicked together: that table is merged, the batch
    waits for the other; the next run completes it."""
    mysql.execute("insert into a values (1, 1)", "insert into b values (1, 1)", database=database)
    known = entries(database)
    stand.click(known, NAMES.captured_key)
    clicked = stand.click(known, NAMES.table_key(TableName(database, "a")), NAMES.acknowledged_key)
    assert clicked.success
    assert materialized(clicked) == {*steps("acknowledged"), key(database, "a")}
    assert [batch.state for batch in stand.adapters.books.unfinished_batches("shop")] == [
        BatchState.CAPTURED
    ]
    assert stand.adapters.books.cursors("shop").acknowledged is None
    assert materialized(stand.run()) == {*ALL_STEPS, key(database, "b")}
    assert stand.adapters.books.unfinished_batches("shop") == []


def test_a_busy_source_fails_with_the_cure(stand: Stand, database: str) -> None:
    """A run, and a click on one step: the failure holds our sentence and hint, and no stack trace
    of ours; nothing was done, nothing is retried."""
    with stand.adapters.books.lock("shop", "another process", None):
        with pytest.raises(SourceBusy) as busy, stand.adapters.books.lock("shop", "a test", None):
            pass
        results = [stand.run(), stand.click(entries(database), NAMES.merged_key)]
    for result in results:
        assert not result.success
        (failed,) = result.get_step_failure_events()
        data = failed.step_failure_data
        assert data.user_failure_data is not None
        told = f"{busy.value.message}\nhint: {busy.value.hint}"
        assert data.user_failure_data.description == told
        assert "hint" in data.user_failure_data.metadata
        assert data.error is not None
        assert (data.error.cause, data.error.context) == (None, None)
    assert stand.adapters.books.batches("shop") == []


def test_a_click_on_a_mirror_waits_for_a_run(
    mysql: MySqlStand, database: str, tmp_path: Path
) -> None:
    """No job gives it the source's tag, so Dagster's queue does not keep it back."""
    rows = ("create table a (id int primary key, v int)", "insert into a values (1, 1)")
    known, home = entries(database)[:1], dagster_home(tmp_path / ".lockstep")
    with (
        source_of(mysql, database, tmp_path, *rows, home=home) as stand,
        ThreadPoolExecutor(1) as threads,
        ExitStack() as held,
    ):
        stand.click(known, NAMES.captured_key)
        held.enter_context(stand.adapters.books.lock("shop", "a run", None))
        click = threads.submit(stand.click, known, key(database, "a"))
        while not any(WAITS_TAG in run.tags for run in stand.instance.get_runs()):
            assert not click.done(), click.result().all_events
        held.close()
        assert materialized(click.result()) == {key(database, "a")}


def test_a_failing_table_leaves_the_others_their_commits(
    stand: Stand, mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several tables merged at a time one fails: the others are settled and told of, and the
    next run merges the one that failed, with the same version."""
    mysql.execute(*(f"insert into `{t}` values (1, 1)" for t in TABLES), database=database)
    write: Callable[..., Any] = MemoryMirrors.write

    def failing(self: MemoryMirrors, one: Any, *more: Any) -> Any:
        if one.target.mirror.endswith("/b"):
            raise OSError("the disk is on fire")
        return write(self, one, *more)

    books = stand.adapters.books
    with monkeypatch.context() as patched:
        patched.setattr(MemoryMirrors, "write", failing)
        assert not stand.run().success
    told = {
        table: stand.instance.get_latest_materialization_event(key(database, table))
        for table in TABLES
    }
    assert [table for table, event in told.items() if event is None] == ["b"]
    assert isinstance(stand.records[-1].defect, OSError)
    (intent,) = books.open_intents("shop")
    assert intent.table == TableName(database, "b")
    assert materialized(stand.run()) == {*ALL_STEPS, key(database, "b")}
    settled = books.newest_writes("shop", [intent.app_id])[intent.app_id].settled_write
    assert settled is not None
    assert settled.intent == intent
