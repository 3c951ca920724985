"""Runs and clicks through Dagster where ledger and lake are real.

Does not: what is logged, checked and acknowledged: `tests/dagster`, with both in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.definitions import build_definitions
from lockstep.assets.names import SourceNames, job_name
from lockstep.assets.table_list import read_table_list
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.run import RunRecord
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import Settings, load_settings
from lockstep.resources.lake import lake as opened_lake
from lockstep.resources.lake.spark.session import SparkProcess
from tests.e2e.project import Project, head
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance

DATABASE = "dagster_runs"
NAMES = SourceNames("shop")
AWKWARD = ["order täble$1/b=41", "_x", "T", "t"]
"""Spaces and letters that a path cannot have, what looks like a partition or like nobody's file,
and names of one spelling: `tests/dagster/test_runs.py` has more, for a lake without files."""


def _key(table: str) -> dg.AssetKey:
    return NAMES.table_key(TableName(DATABASE, table))


@dataclass
class Place:
    """A project, its open adapters and its Dagster instance."""

    settings: Settings
    adapters: Adapters
    instance: dg.DagsterInstance

    def run(self) -> RunRecord:
        record = RunRecord("shop")
        job = self._definitions(record).resolve_job_def(job_name("shop"))
        job.execute_in_process(instance=self.instance, raise_on_error=False)
        return record

    def tables(self) -> set[dg.AssetKey]:
        """Those that the newest run materialized."""
        run = self.instance.get_runs(limit=1)[0]
        logs = self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        found = {one.asset_key for entry in logs if (one := entry.asset_materialization)}
        return found & set(map(_key, AWKWARD))

    def equal(self, *tables: str) -> bool:
        names = [TableName(DATABASE, table) for table in tables]
        report = verify(self.adapters.ports("shop", SilentProgress()), names)
        return all(one.equal for one in report.tables)

    def click(self, *tables: str) -> bool:
        """Materialize chosen mirrors as the page would; whether the run succeeded."""
        job = self._definitions(RunRecord("shop")).resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=[_key(table) for table in tables],
            raise_on_error=False,
        ).success

    def _definitions(self, record: RunRecord) -> dg.Definitions:
        table_lists = {"shop": read_table_list(self.settings.state_folder, "shop")}
        adapters = self.adapters
        return build_definitions(
            self.settings, table_lists, lambda: nullcontext(adapters), make_record=lambda _: record
        )


@pytest.fixture
def place(
    mysql: MySqlStand, spark: SparkProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A project that no run has seen. Its Spark is this process's, which goes on behind it."""
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    start = head(mysql)
    mysql.execute(f"create database {DATABASE}")
    folder = tmp_path / "project"
    Project.made(folder, port=mysql.port, tables=[f"{DATABASE}.*"], start=start)
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", mysql.server.password)
    monkeypatch.setattr(opened_lake, "SparkProcess", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    settings = load_settings(folder / "lockstep.toml")
    with (
        Adapters(settings, on_warning=print) as adapters,
        dg.DagsterInstance.ephemeral() as instance,
    ):
        yield Place(settings, adapters, instance)


def test_awkward_names(place: Place, mysql: MySqlStand) -> None:
    """No name breaks the location, meets another, or is lost on the way: made by a run, merged by a
    click, and acknowledged by the run behind it."""
    mysql.execute(
        *(f"create table {DATABASE}.`{name}` (id int primary key)" for name in AWKWARD),
        *(f"insert into {DATABASE}.`{name}` values ({n})" for n, name in enumerate(AWKWARD)),
    )
    place.run()
    assert len(place.tables()) == len(AWKWARD)
    mysql.execute(*(f"update {DATABASE}.`{name}` set id = id + 100" for name in AWKWARD))
    _only_capture(place)
    assert place.click(*AWKWARD)
    assert len(place.tables()) == len(AWKWARD)
    record = place.run()
    assert (record.error, record.defect) == (None, None)
    assert record.acknowledge_report is not None
    assert place.tables() == set()
    assert place.equal(*AWKWARD)


def _only_capture(place: Place) -> None:
    """A capture by itself, as if the run had ended there."""
    ports = place.adapters.ports("shop", SilentProgress())
    with ports.ledger.lock("shop", "a test", None) as lease:
        assert capture(ports, lease).batch_id is not None
