"""Runs through Dagster on real servers: what is logged, what is acknowledged.

One project and one Spark for the module; each test writes its own tables and looks at
the run that follows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.catalogue import read_catalogue
from assets.definitions import build
from assets.execute import execute
from assets.home import dagster_home, open_instance
from assets.names import SourceNames
from assets.sessions import RunRecord
from pipeline.batch import BatchState
from pipeline.runs.comparing.verify_rows import verify
from pipeline.runs.context import Unwatched
from pipeline.table import TableName
from resources.adapters import Adapters
from resources.config import Settings, load_settings
from resources.lake import room
from resources.lake.session import SparkProcess
from tests.e2e.project import Project, head
from tests.fix_mysql import MySqlStand

DATABASE = "dagster_runs"
NAMES = SourceNames("shop")


@dataclass
class Place:
    """A project, its open site and its Dagster instance."""

    settings: Settings
    adapters: Adapters
    instance: dg.DagsterInstance
    mysql: MySqlStand

    def run(self) -> RunRecord:
        return execute(
            self.settings, "shop", adapters=self.adapters, instance=self.instance, watcher=None
        )

    def materialized(self) -> dict[str, Any]:
        """Tables with a materialization in the newest run, and its metadata."""
        run = self.instance.get_runs(limit=1)[0]
        logs = self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        found = [entry.asset_materialization for entry in logs]
        return {"/".join(one.asset_key.path): one.metadata for one in found if one is not None}

    def tables(self) -> list[str]:
        return [key for key in self.materialized() if "." in key]

    def equal(self, *tables: str) -> bool:
        names = [TableName(DATABASE, table) for table in tables]
        report = verify(self.adapters.workplace("shop", Unwatched()), names)
        return all(one.equal for one in report.tables)

    def click(self, *tables: str, acknowledged: bool = False) -> bool:
        """Materialize chosen mirrors as the page would; whether the run succeeded."""
        catalogue = {"shop": read_catalogue(self.settings.state_folder, "shop")}
        adapters = self.adapters

        class Kept:
            def __enter__(self) -> Adapters:
                return adapters

            def __exit__(self, *_: object) -> None:
                return None

        definitions = build(self.settings, catalogue, Kept)
        keys = [NAMES.table(TableName(DATABASE, table)) for table in tables]
        if acknowledged:
            keys.append(NAMES.acknowledged)
        job = definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance, asset_selection=keys, raise_on_error=False
        ).success


@pytest.fixture(scope="module")
def place(
    mysql: MySqlStand, spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """The module's project, with three tables and one run behind it. Its Spark is this process's,
    which goes on behind it."""
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    start = head(mysql)
    mysql.execute(
        f"create database {DATABASE}",
        *(f"create table {DATABASE}.{t} (id int primary key, v varchar(20))" for t in "abc"),
        *(f"insert into {DATABASE}.{t} values (1, 'one')" for t in "abc"),
    )
    folder: Path = tmp_path_factory.mktemp("dagster") / "project"
    Project.made(folder, port=mysql.port, tables=[f"{DATABASE}.*"], start=start)
    monkey = pytest.MonkeyPatch()
    monkey.setenv("LOCKSTEP_TEST_PASSWORD", mysql.server.password)
    monkey.delenv("DAGSTER_HOME", raising=False)
    monkey.setattr(room, "SparkProcess", lambda *_, **__: spark)
    monkey.setattr(spark, "stop", lambda: None)
    settings = load_settings(folder / "lockstep.toml")
    home = dagster_home(settings.state_folder)
    with Adapters(settings, on_warning=print) as adapters, open_instance(home) as instance:
        made = Place(settings, adapters, instance, mysql)
        made.run()
        yield made
    monkey.undo()


def position(record: RunRecord) -> str:
    assert record.error is None, record.error
    assert record.defect is None, record.defect
    assert record.acknowledged is not None
    return str(record.acknowledged.position)


def test_an_idle_run_acknowledges(place: Place) -> None:
    """Nothing to read: no table is logged, every step succeeds, the position stays."""
    before = position(place.run())
    record = place.run()
    assert record.captured is not None
    assert (record.captured.batch, place.tables(), position(record)) == (None, [], before)


def test_foreign_traffic_moves_the_position(place: Place) -> None:
    """Changes of tables nobody captures still move the acknowledged position."""
    before = position(place.run())
    place.mysql.execute(
        "create database if not exists elsewhere",
        "create table if not exists elsewhere.t (id int primary key)",
        "insert into elsewhere.t values (1)",
        "delete from elsewhere.t",
    )
    record = place.run()
    assert record.captured is not None
    assert record.captured.rows == 0
    assert position(record) != before
    assert position(record) == str(record.captured.end.at)


def test_only_changed_tables_are_logged(place: Place) -> None:
    """One table of three changed: one materialization, with what a person wants to know."""
    place.mysql.execute(f"update {DATABASE}.b set v = 'two'")
    record = place.run()
    assert record.merged is not None
    assert place.tables() == [f"shop/{DATABASE}.b"]
    metadata = place.materialized()[f"shop/{DATABASE}.b"]
    assert metadata["rows updated"].value == 1
    assert place.equal("a", "b", "c")


def test_a_table_quarantined_holds_nobody(place: Place) -> None:
    """The others go on, the position moves, and the check says which and why."""
    place.mysql.execute(
        f"create table {DATABASE}.odd (id int primary key, j json)",
        f"update {DATABASE}.a set v = 'three'",
        f"insert into {DATABASE}.odd values (1, json_object('a', 1, 'b', repeat('x', 50)))",
        "set session binlog_row_value_options = PARTIAL_JSON",
        f"update {DATABASE}.odd set j = json_set(j, '$.a', 2)",
    )
    record = place.run()
    end = position(record)
    assert record.captured is not None
    assert end == str(record.captured.end.at)
    assert place.tables() == [f"shop/{DATABASE}.a"]
    assert record.acknowledged is not None
    (quarantined,) = record.acknowledged.quarantined
    assert (str(quarantined.table), "PARTIAL_JSON" in quarantined.reason) == (
        f"{DATABASE}.odd",
        True,
    )
    assert place.equal("a", "b", "c")


def test_zero_dates_are_null_and_counted(place: Place) -> None:
    """What a policy softens is never silent."""
    with place.mysql.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        cursor.execute("create table dated (id int primary key, d date)")
        cursor.execute("insert into dated values (1, '0000-00-00'), (2, '2024-00-01'), (3, null)")
    record = place.run()
    assert record.captured is not None
    assert record.captured.softened == {f"{DATABASE}.dated.d": 2}
    assert place.equal("dated")


def test_a_click_acknowledges_nothing_that_is_not_merged(place: Place) -> None:
    """A mirror clicked together with `acknowledged` merges itself alone; the ledger waits."""
    before = position(place.run())
    place.mysql.execute(f"update {DATABASE}.a set v = 'x'", f"update {DATABASE}.c set v = 'y'")
    captured = _only_capture(place)
    assert place.click("a", acknowledged=True)
    ledger = place.adapters.ledger()
    states = {batch.id: batch.state for batch in ledger.unfinished("shop")}
    assert states == {captured: BatchState.CAPTURED}
    cursor = ledger.acknowledged_cursor("shop")
    assert cursor is not None
    assert str(cursor.position) == before
    assert list(ledger.pending("shop")) == [TableName(DATABASE, "c")]
    assert position(place.run()) != before
    assert place.equal("a", "b", "c")


def _only_capture(place: Place) -> int:
    """A capture by itself, as if the run had ended there; its batch."""
    from pipeline.runs.capture import capture

    work = place.adapters.workplace("shop", Unwatched())
    with work.ledger.lock("shop", "a test", None) as lease:
        report = capture(work, lease)
    assert report.batch is not None
    return report.batch


AWKWARD = [
    "order items",
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
]


def test_awkward_names(place: Place) -> None:
    """No name breaks the location, meets another, or is lost on the way."""
    quoted = [name.replace("`", "``") for name in AWKWARD]
    place.mysql.execute(
        *(f"create table {DATABASE}.`{name}` (id int primary key)" for name in quoted),
        *(f"insert into {DATABASE}.`{name}` values ({n})" for n, name in enumerate(quoted)),
    )
    place.run()
    assert len(place.tables()) == len(AWKWARD)
    assert place.equal(*AWKWARD)
    place.mysql.execute(*(f"update {DATABASE}.`{name}` set id = id + 100" for name in quoted))
    _only_capture(place)
    assert place.click(*AWKWARD)
    assert len(place.tables()) == len(AWKWARD)
    position(place.run())
    assert place.equal(*AWKWARD)


def test_a_failing_table_leaves_the_others_their_commits(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several tables merged at a time one fails: the others are settled and told of, and the
    next run merges the one that failed, with the same version."""
    place.mysql.execute(*(f"update {DATABASE}.{t} set v = 'again'" for t in "abc"))
    mirrors = place.adapters.lake().mirrors
    write: Callable[..., Any] = type(mirrors).write

    def failing(self: Any, one: Any, *more: Any) -> Any:
        if one.target.mirror.endswith("/b"):
            raise OSError("the disk is on fire")
        return write(self, one, *more)

    monkeypatch.setattr(type(mirrors), "write", failing)
    record = place.run()
    assert isinstance(record.defect, OSError)
    assert sorted(place.tables()) == [f"shop/{DATABASE}.{one}" for one in "ac"]
    (intent,) = place.adapters.ledger().open_intents("shop")
    assert intent.table == TableName(DATABASE, "b")
    monkeypatch.undo()
    record = place.run()
    position(record)
    assert place.equal("a", "b", "c")
    commit = mirrors.recorded(f"shop/{DATABASE}/b", intent.app_id, intent.txn_version)
    assert commit is not None
