"""Dagster's pages tell the truth: what is fresh, what is in trouble, where a run belongs.

Real runs on a real MySQL; ledger and lake are memory's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from lockstep.assets.dagster_metadata import FOLLOWS_CHECK
from lockstep.assets.names import SourceNames
from lockstep.assets.table_list import TableEntry, read_table_list
from lockstep.assets.table_news import tables_to_report
from lockstep.commands.check import declare_tables
from lockstep.pipeline.mirror.layout import no_mirror_path
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.status.tables import TableHealth, TableStanding
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.dagster.place import Stand, settings_for, source_of, stand_for
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings as connection

NAMES = SourceNames("shop")


@contextmanager
def source(mysql: MySqlStand, database: str, folder: Path) -> Iterator[Stand]:
    """A source with two tables that are older than the log, with a row each."""
    for table in "ab":
        mysql.execute(
            f"create table {table} (id int primary key, v int unsigned comment 'in euro')",
            f"insert into {table} values (1, 1)",
            database=database,
        )
    with source_of(mysql, database, folder, start="snapshot") as made:
        yield made


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    with source(mysql, database, tmp_path) as made:
        yield made


@dataclass(frozen=True)
class Ran:
    """A source after its first run."""

    stand: Stand
    database: str
    run_id: str


@pytest.fixture(scope="module")
def ran(mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Its tests look at it and change nothing."""
    folder = tmp_path_factory.mktemp("pages")
    with mysql.own_database() as database, source(mysql, database, folder) as stand:
        yield Ran(stand, database, run(stand))


def known(stand: Stand) -> tuple[TableEntry, ...]:
    return read_table_list(stand.adapters.settings.state_folder, "shop")


def run(stand: Stand) -> str:
    """The run's id."""
    done = stand.run()
    assert done.success
    return done.run_id


def evaluations(stand: Stand, run_id: str) -> dict[str, dg.AssetCheckEvaluation]:
    """Of tables, by their names."""
    logs = stand.instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    events = [log.get_dagster_event().asset_check_evaluation_data for log in logs]
    return {
        name_of(event.asset_key): event for event in events if event.check_name == FOLLOWS_CHECK
    }


def name_of(key: dg.AssetKey) -> str:
    return ".".join(key.path[-2:])


def test_a_quiet_mirror_is_fresh(stand: Stand, mysql: MySqlStand, database: str) -> None:
    """However often others change; and a click on it does nothing, reads nothing of the source, and
    leaves it fresh."""
    run(stand)
    mysql.execute("insert into a values (2, 2)", database=database)
    run(stand)
    quiet = NAMES.table_key(TableName(database, "b"))
    mysql.execute("insert into b values (2, 2)", database=database)
    clicked = stand.click(known(stand), quiet)
    assert (clicked.success, clicked.get_asset_materialization_events()) == (True, [])
    graph = stand.definitions(known(stand)).get_repository_def().asset_graph
    context = LoadingContextForTest(stand.instance)
    resolver = CachingStaleStatusResolver(stand.instance, graph, context)
    mirrors_and_steps = graph.materializable_asset_keys
    assert {resolver.get_status(key) for key in mirrors_and_steps} == {StaleStatus.FRESH}


def test_rows_that_were_read_are_told(ran: Ran) -> None:
    """A table that was read from the source reports its rows, what it is, and its columns; the
    run's page has it, too."""
    stand, database = ran.stand, ran.database
    found = stand.metadata(NAMES.table_key(TableName(database, "a")))
    rows = [found[f"rows {what}"].value for what in ("inserted", "read from the source")]
    assert (rows, found["dagster/row_count"].value) == ([0, 1], 1)
    assert found["dagster/table_name"].value == f"{database}.a"
    report = stand.metadata(NAMES.acknowledged_key)["report"]
    assert isinstance(report, dg.PathMetadataValue)
    assert f"{database}.a" in Path(str(report.path)).read_text(encoding="utf-8")
    columns = found["dagster/column_schema"]
    assert isinstance(columns, dg.TableSchemaMetadataValue)
    assert [
        (column.name, column.type, column.description) for column in columns.schema.columns
    ] == [
        ("id", "int", "MySQL: int"),
        ("v", "bigint", "MySQL: int unsigned. in euro"),
    ]


SHAPE = """
[[sources.table]]
match = "*.people"
hash_columns = ["email"]
mask_columns = { phone = "last:4" }
exclude_columns = ["ssn"]
rows = "id > 1"

[privacy]
key = "file:key"
"""


def test_what_is_not_shown_as_it_is_is_told(
    mysql: MySqlStand, database: str, tmp_path: Path
) -> None:
    """Columns that are hashed and masked say so, those left out are named beside them, and so is
    the condition of rows. Comments of hidden columns are not told."""
    mysql.execute(
        "create table people (id int primary key, email varchar(80) comment 'as info@example.org', "
        "phone varchar(20), ssn char(9), city varchar(60) comment 'where they live')",
        "insert into people values (1, 'a@b.org', '1', '1', 'A'), (2, 'b@b.org', '5551', '2', 'B')",
        database=database,
    )
    (tmp_path / "key").write_text("a key that nobody guesses, of some length")
    settings = settings_for(tmp_path, "shop", tables=f"{database}.*", start="snapshot", extra=SHAPE)
    key = settings.privacy_key()
    assert key is not None
    shaping = settings.source("shop").plan().shaping(key)
    with stand_for(settings, MySqlServer(connection(mysql), shaping=shaping)) as stand:
        run(stand)
        found = stand.metadata(NAMES.table_key(TableName(database, "people")))
    assert found["columns not shown as they are"].value == (
        "email hashed, phone masked last:4, ssn left out"
    )
    assert found["rows taken"].value == "those where id > 1"
    assert found["privacy key"].value == key.fingerprint
    columns = found["dagster/column_schema"]
    assert isinstance(columns, dg.TableSchemaMetadataValue)
    assert [(one.name, one.description, one.tags) for one in columns.schema.columns] == [
        ("id", "MySQL: int", {}),
        ("email", "MySQL: varchar(80). Hashed", {"lockstep": "hashed"}),
        ("phone", "MySQL: varchar(20). Masked last:4", {"lockstep": "masked last:4"}),
        ("city", "MySQL: varchar(60). where they live", {}),
    ]


def test_how_a_table_stands_is_told_when_it_changes(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """Of a table that was written or stands otherwise; of no other. A click asks anew, whether
    the table is materialized with its check or the check alone is run."""
    assert all(evaluation.passed for evaluation in evaluations(stand, run(stand)).values())
    mysql.execute(
        "create table odd (id int primary key, j json)",
        "insert into odd values (1, json_object('a', 1, 'b', repeat('x', 50)))",
        "set session binlog_row_value_options = PARTIAL_JSON",
        "update odd set j = json_set(j, '$.a', 2)",
        "drop table b",
        database=database,
    )
    found = evaluations(stand, run(stand))
    assert {key: (one.passed, one.severity.value) for key, one in found.items()} == {
        f"{database}.odd": (False, "ERROR"),
        f"{database}.b": (False, "WARN"),
    }
    odd = found[f"{database}.odd"].metadata
    assert odd["state"].value == "stopped by Lockstep"
    assert "PARTIAL_JSON" in str(odd["reason"].value)
    assert "binlog_row_value_options" in str(odd["hint"].value)
    assert r"PARTIAL\_JSON" in str(found[f"{database}.odd"].description)
    assert evaluations(stand, run(stand)) == {}
    entries = known(stand)
    assert {entry.name: entry.dropped for entry in entries} == {"a": False, "b": True, "odd": False}
    keys = [NAMES.table_key(TableName(database, name)) for name in ("a", "odd")]
    alone = [dg.AssetCheckKey(key, FOLLOWS_CHECK) for key in keys]
    for clicked in (stand.click(entries, *keys), stand.click(entries, checks=alone)):
        results = {
            name_of(evaluation.asset_key): evaluation.passed
            for evaluation in clicked.get_asset_check_evaluations()
            if evaluation.check_name == FOLLOWS_CHECK
        }
        assert results == {f"{database}.a": True, f"{database}.odd": False}


def test_news_of_many_tables() -> None:
    """Trouble and its end at once; of tables that are new and stand well a hundred each time, and
    of many that changed none but those in trouble."""
    tables = [TableName("shop", f"t{number:03d}") for number in range(250)]
    well = {one: TableStanding(one, TableHealth.FOLLOWING, "it follows") for one in tables}
    prints = dict.fromkeys(tables, "well")
    known: dict[TableName, str] = {tables[-1]: "stopped by Lockstep"}
    for count in (101, 100, 49, 0):
        news = tables_to_report(well, prints, known, ())
        assert len(news) == count
        known |= dict.fromkeys(news, "well")
    ill = {
        **well,
        tables[7]: TableStanding(tables[7], TableHealth.STOPPED_BY_SYSTEM, "it does not"),
    }
    assert tables_to_report(ill, prints, known, tables) == {tables[7]}
    assert tables_to_report(ill, prints, known, tables[:100]) == set(tables[:100])


def test_a_structure_that_changed_is_observed(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """With the statement, without its literals, and its effect, in which no name is Markdown."""
    run(stand)
    mysql.execute("alter table a add `<b>w_` varchar(9) default 'secret'", database=database)
    run(stand)
    (observed,) = stand.instance.fetch_observations(
        NAMES.table_key(TableName(database, "a")), limit=1
    ).records
    assert observed.asset_observation is not None
    shown = {name: str(one.value) for name, one in observed.asset_observation.metadata.items()}
    assert shown["statement"].startswith("alter table a add `<b>w_` varchar(")
    assert "secret" not in str(shown)
    assert "<b>w_" in shown["effect"]
    assert r"\<b\>w\_" in str(observed.asset_observation.description)


def test_a_check_does_not_declare_tables_as_dropped_or_back(
    stand: Stand, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that the settings no longer match was not dropped; one whose mirror has no place
    is not shown."""
    run(stand)
    settings = settings_for(tmp_path, "shop", tables=f"{database}.a")
    ports = replace(stand.adapters, settings=settings).ports("shop", SilentProgress())
    declare_tables(settings, ports)
    assert [(entry.dropped, entry.ended) for entry in known(stand)] == [(False, False)] * 2
    states = {
        table: replace(state, mirror=no_mirror_path("shop", table))
        for table, state in ports.ledger.table_states("shop").items()
    }
    monkeypatch.setattr(ports.ledger, "table_states", lambda _: states)
    declare_tables(settings, ports)
    assert [(entry.dropped, entry.ended) for entry in known(stand)] == [(False, True)] * 2


def test_a_mirror_that_was_removed_leaves_the_list(ran: Ran) -> None:
    """The others keep their generated names; its history stays."""
    stand = ran.stand
    first, second = known(stand)
    shown = stand.definitions((replace(first, ended=True), second)).get_repository_def()
    keys = {NAMES.table_key(one.table) for one in (first, second)} & shown.assets_defs_by_key.keys()
    assert keys == {NAMES.table_key(second.table)}
    [mirrors] = {shown.assets_defs_by_key[key] for key in keys}
    assert mirrors.keys_by_output_name == {"t000002": NAMES.table_key(second.table)}
    assert stand.instance.get_latest_materialization_event(NAMES.table_key(first.table)) is not None
