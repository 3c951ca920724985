"""An earlier version of a mirror, shown once more: by a commit of ours, or by Delta's RESTORE."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipeline.changes.evolution import LOCAL, MAPPING, WIDENING
from pipeline.changes.strategy import FEW, NOTHING
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import AddColumns, RenameColumn, SetProperties, WidenColumn
from resources.lake.pin import head_of
from resources.lake.restore import restore
from resources.lake.session import SparkProcess
from tests.lake.conftest import disk_lake
from tests.lake.made import PEOPLE, a_write, content, delete, update

MIRROR = "shop/shop/people"
STEPS = (
    SetProperties((LOCAL, MAPPING, WIDENING)),
    RenameColumn("name", "called"),
    AddColumns(pa.schema([("m", pa.int16())])),
    WidenColumn("m", pa.int64()),
)
OTHER = pa.schema([("id", pa.int64()), ("called", pa.string()), ("m", pa.int64())])
FIRST: list[dict[str, Any]] = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
ROWS: dict[int, tuple[pa.Schema, list[dict[str, Any]]]] = {
    1: (PEOPLE, [{"id": 1, "name": "new"}]),
    6: (OTHER, [{"id": 1, "called": "new", "m": None}, {"id": 9, "called": None, "m": 1 << 40}]),
    0: (PEOPLE, FIRST),
}
"""What versions show: one with rows that are marked as deleted, one with columns that were renamed
and widened, and the first."""


@pytest.fixture
def lake(tmp_path: Path, spark: SparkProcess) -> Path:
    """Written by queries and without them, its columns changed in between."""
    by_query, few = (disk_lake(tmp_path, spark, size).mirrors for size in (NOTHING, FEW))
    few.write(a_write(few, 1, "append", FIRST))
    by_query.write(a_write(by_query, 2, "merge", [delete(id=2), update(id=1, name="new")]))
    few.evolve(MIRROR, STEPS, app_id="steps", txn_version=3, after=1)
    come = [{"id": 9, "called": None, "m": 1 << 40}]
    by_query.write(a_write(by_query, 4, "merge", come, schema=OTHER))
    return tmp_path / "lake"


def test_it_is_what_restore_commits(lake: Path, tmp_path: Path, spark: SparkProcess) -> None:
    """The same files come and go, with the same rows deleted, under the same columns, in a commit
    of the same name; no query is made. Where it was set back it can be set back again, and written
    to. Nothing is committed where a file is gone."""
    jobs = spark.session().sparkContext.statusTracker().getJobIdsForGroup
    ours = disk_lake(tmp_path, spark).mirrors
    twin = tmp_path / "twin"
    shutil.copytree(lake, twin)
    restore(spark.session(), twin / MIRROR, 1, "said", head_of(twin / MIRROR), java=False)
    for number, (version, (schema, rows)) in enumerate(ROWS.items(), start=7):
        before = {*jobs()}
        assert ours.restore(MIRROR, version, "said") == number
        assert {*jobs()} == before
        assert content(ours, MIRROR, schema, number) == rows
        told = json.loads(_log(lake / MIRROR, number).with_suffix(".crc").read_text())
        assert told["numFiles"] == len(DeltaTable(lake / MIRROR).file_uris())
    assert _said(lake / MIRROR, 7) == _said(twin / MIRROR, 7)
    ours.write(a_write(ours, 5, "merge", [{"id": 3, "name": "c"}]))
    assert content(ours, MIRROR, PEOPLE, 10) == [*FIRST, {"id": 3, "name": "c"}]
    gone = {*DeltaTable(lake / MIRROR, version=8).file_uris()}
    for file in gone - {*DeltaTable(lake / MIRROR).file_uris()}:
        Path(file).unlink()
    with pytest.raises(TableError):
        ours.restore(MIRROR, 8, "said")
    assert ours.version(MIRROR) == 10


def _log(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def _said(table: Path, version: int) -> dict[str, Any]:
    """What a commit does, but for what differs from one to the next: moments, names of
    transactions, what it counted."""
    found: dict[str, Any] = {"add": [], "remove": []}
    for line in _log(table, version).read_text().splitlines():
        [(kind, told)] = json.loads(line).items()
        if kind == "commitInfo":
            found[kind] = {
                name: told[name] for name in ("operation", "operationParameters", "userMetadata")
            }
        elif kind in ("add", "remove"):
            told.pop("deletionTimestamp", None)
            found[kind].append({name: value for name, value in told.items() if value != {}})
        elif kind != "protocol":  # which Delta tells once more, as it was
            found[kind] = told
    for kind in ("add", "remove"):
        found[kind].sort(key=lambda one: one["path"])
    return found
