"""Runs that Dagster did not start are shown by it, each once, whatever there is to tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lockstep.assets import coverage, other_runs, sensors, table_list
from lockstep.assets.names import SourceNames
from lockstep.commands.run import run_source
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.values.table import TableName
from tests.dagster.place import Stand, source_of
from tests.fix_mysql import MySqlStand

NAMES = SourceNames("shop")


@pytest.fixture
def stand(mysql: MySqlStand, database: str, tmp_path: Path) -> Iterator[Stand]:
    """A source with five tables, and changes of all."""
    tables = [f"create table {table} (id int primary key)" for table in "abcde"]
    rows = [f"insert into {table} values (1), (2)" for table in "abcde"]
    with source_of(mysql, database, tmp_path, *tables, *rows) as made:
        yield made


def run(stand: Stand) -> None:
    """As the command line does it."""
    adapters = stand.adapters
    record = run_source(adapters.settings, "shop", adapters, SilentProgress())
    assert (record.error, record.defect) == (None, None)


def test_a_run_is_done_although_the_list_of_tables_cannot_be_written(stand: Stand) -> None:
    """Nor what was reported of the past: only Dagster's page needs them, and the disk may be full,
    or the folder another account's."""
    for file in (table_list.FILE, coverage.FILE):
        (stand.adapters.settings.state_folder / f"{file}.lock").mkdir(parents=True)
    run(stand)
    assert stand.adapters.books.unfinished_batches("shop") == []
    assert stand.run().success


class Ticks:
    """A sensor that goes on from its cursor; what it tells is kept as the daemon keeps it."""

    def __init__(self, stand: Stand) -> None:
        self._sensor = stand.definitions().resolve_sensor_def("lockstep_other_runs")
        self._instance = stand.instance
        self.cursor: str | None = None
        self.said = ""

    def tick(self) -> list[Any]:
        context = dg.build_sensor_context(instance=self._instance, cursor=self.cursor)
        told = self._sensor.evaluate_tick(context)
        self.cursor, self.said = told.cursor, told.skip_message or ""
        for event in told.asset_events:
            self._instance.report_runless_asset_event(event)
        return list(told.asset_events)


def keys(events: list[Any], kind: type) -> Counter[dg.AssetKey]:
    return Counter(event.asset_key for event in events if issubclass(type(event), kind))


def test_a_run_of_the_command_line_is_told_once(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """Its mirrors with their rows, its steps, how tables and the source stand; the next time, only
    what came since. Of a run that Dagster started nothing is told twice."""
    ticks = Ticks(stand)
    assert ticks.tick() == []
    run(stand)
    told = ticks.tick()
    tables = {NAMES.table_key(TableName(database, table)) for table in "abcde"}
    assert keys(told, dg.AssetMaterialization) == Counter({*tables, *NAMES.step_keys})
    made = {one.asset_key: one for one in told if isinstance(one, dg.AssetMaterialization)}
    captured = made[NAMES.captured_key].metadata
    assert (captured["structure changes"].value, captured["rows inserted"].value) == (5, 10)
    assert sum(keys(told, dg.AssetObservation)[table] for table in tables) == 5
    checked = keys(told, dg.AssetCheckEvaluation)
    assert checked.keys() == {*tables, NAMES.acknowledged_key}
    assert all(one.passed for one in told if isinstance(one, dg.AssetCheckEvaluation))
    assert NAMES.log_key in keys(told, dg.AssetObservation)
    a = NAMES.table_key(TableName(database, "a"))
    shown = stand.metadata(a)
    assert (shown["rows inserted"].value, shown["Delta version"].value) == (2, 0)
    assert ticks.tick() == []

    for value in (3, 4):
        mysql.execute(f"insert into a values ({value})", database=database)
        run(stand)
    run(stand)  # finds nothing
    told = ticks.tick()
    assert keys(told, dg.AssetMaterialization) == Counter({a, *NAMES.step_keys})
    made = {one.asset_key: one for one in told if isinstance(one, dg.AssetMaterialization)}
    assert made[a].metadata["rows inserted"].value == 2
    cursor = stand.adapters.books.cursors("shop").acknowledged
    assert cursor is not None
    assert (made[NAMES.acknowledged_key].tags or {})["dagster/data_version"] == str(cursor.batch)

    mysql.execute("insert into b values (3)", database=database)
    assert stand.run().success
    assert ticks.tick() == []
    run(stand)  # finds nothing, which keeps the step fresh
    assert keys(ticks.tick(), dg.AssetMaterialization) == Counter(NAMES.step_keys)


def test_what_dagster_shows_of_a_mirror_stays_if_it_is_newer(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """What came before is an observation: the newest materialization is of the newest version."""
    run(stand)
    ticks, a = Ticks(stand), NAMES.table_key(TableName(database, "a"))
    ticks.tick()
    mysql.execute("insert into a values (3)", database=database)
    run(stand)
    mysql.execute("insert into a values (4)", database=database)
    assert stand.run().success
    told = ticks.tick()
    assert keys(told, dg.AssetObservation)[a] == 1
    assert a not in keys(told, dg.AssetMaterialization)
    assert stand.metadata(a)["Delta version"].value == 2


def test_another_ledger_is_told_from_its_beginning(stand: Stand, database: str) -> None:
    """Whose tokens are smaller than the cursor's. What Dagster shows already, as after its cursor
    was lost, is not told again."""
    run(stand)
    ticks = Ticks(stand)
    ticks.cursor = json.dumps({"shop": {"ledger": "another", "token": 99}})
    tables = {NAMES.table_key(TableName(database, table)) for table in "abcde"}
    assert keys(ticks.tick(), dg.AssetMaterialization).keys() > tables
    assert "this is another ledger than before" in ticks.said
    ticks.cursor = None
    assert not keys(ticks.tick(), dg.AssetMaterialization).keys() & tables


def test_a_new_storage_of_dagster_has_what_its_runs_did(
    stand: Stand, mysql: MySqlStand, database: str
) -> None:
    """After Dagster's home was lost or moved: every mirror, the steps, how tables stand, and the
    past, each once. A storage that has these runs gets none of it again."""
    assert stand.run().success
    mysql.execute("insert into a values (3)", database=database)
    assert stand.run().success
    tables = {NAMES.table_key(TableName(database, table)) for table in "abcde"}
    folder = stand.adapters.settings.state_folder
    begins = stand.coverages()["shop"].begins
    coverage.write_coverage(folder, "shop", coverage.Coverage(begins, begins + timedelta(hours=1)))
    first = keys(Ticks(stand).tick(), dg.AssetMaterialization)
    assert not first.keys() & {*tables, *NAMES.step_keys}
    with dg.DagsterInstance.ephemeral() as stand.instance:
        ticks = Ticks(stand)
        told = ticks.tick()
        assert keys(told, dg.AssetMaterialization) == Counter({*tables, *NAMES.step_keys})
        assert tables <= keys(told, dg.AssetCheckEvaluation).keys()
        assert stand.coverages()["shop"].until == begins
        assert ticks.tick() == []


def test_rows_of_the_newest_batches_are_added_up(
    stand: Stand, mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others made more batches than a tick has time for, and the tick says so."""
    monkeypatch.setattr(other_runs, "MAX_SUMMED_BATCHES", 1)
    run(stand)
    mysql.execute("insert into a values (3)", database=database)
    run(stand)
    ticks = Ticks(stand)
    ticks.tick()
    assert "2 batches are reported, but only the rows of the newest 1 are counted." in ticks.said
    mirror = stand.metadata(NAMES.table_key(TableName(database, "a")))
    assert (mirror["rows inserted"].value, mirror["batches"].value) == (1, "2")
    assert stand.metadata(NAMES.merged_key)["rows inserted"].value == 1


@pytest.mark.parametrize(("most", "seconds", "ticks_of_tables"), [(2, 15.0, 3), (200, -1.0, 5)])
def test_many_tables_are_told_some_at_a_time(
    stand: Stand,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    seconds: float,
    ticks_of_tables: int,
) -> None:
    """Each once, and the steps when all were; what another run did meanwhile is told afterwards. A
    tick ends after so many tables, or, with one at least, after so many seconds."""
    monkeypatch.setattr(sensors, "MAX_TABLES", most)
    monkeypatch.setattr(other_runs, "TICK_SECONDS", seconds)
    ticks, told = Ticks(stand), list[Any]()
    run(stand)
    rounds = 0
    while events := ticks.tick():
        rounds += 1
        told += events
        if rounds == 1:
            run(stand)
    tables = {NAMES.table_key(TableName(database, table)) for table in "abcde"}
    found = keys(told, dg.AssetMaterialization)
    assert {key: found[key] for key in tables} == dict.fromkeys(tables, 1)
    assert {found[key] for key in NAMES.step_keys} == {2}
    assert rounds == ticks_of_tables + 1


def test_what_a_run_does_now_is_told_when_it_has_ended(stand: Stand) -> None:
    """Until then it may change."""
    run(stand)
    ticks = Ticks(stand)
    with stand.adapters.books.lock("shop", "a run", "run-1"):
        assert keys(ticks.tick(), dg.AssetMaterialization)
        assert ticks.tick() == []
    assert ticks.tick()
