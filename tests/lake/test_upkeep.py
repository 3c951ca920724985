"""Files of a mirror, told without Spark and made fewer by it; checkpoints that others replace are
deleted, and every version is read as before."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY
from lockstep.pipeline.mirror.strategy import NO_FEW_ROWS
from lockstep.pipeline.model.foreign_commits import judge_foreign
from lockstep.pipeline.model.lake_commit import metadata_text
from lockstep.pipeline.ports.mirror_writes import SetProperties
from lockstep.pipeline.upkeep.decide import FileTotal, StepKind, UpkeepPolicy, decide
from lockstep.pipeline.values.errors import CommitConflict
from lockstep.resources.lake.mirror.upkeep import SparkUpkeep
from lockstep.resources.lake.spark.session import SparkProcess
from tests.fix_objects import ObjectStore
from tests.lake.conftest import lake_at
from tests.lake.made import a_write

MIRROR = "shop/shop/people"
SAID = metadata_text({"kind": "upkeep", "shows": 3})


def test_deleted_rows_go_from_the_files(
    object_store: ObjectStore, tmp_path: Path, spark: SparkProcess
) -> None:
    """In an object store, where Spark's queries marked them, in a table with column mapping; what
    upkeep deletes on disk is in `tests/e2e/test_upkeep.py`. They are counted without Spark; the
    commit that frees the files of them changes no row, says what it was told to, and is made behind
    the version it was planned on or not at all."""
    place = object_store.prefix()
    lake = lake_at(place, tmp_path / "staging", spark, NO_FEW_ROWS, in_memory=False)
    mirrors, before = lake.mirrors, lake.before
    rows = [{"id": number, "name": "x"} for number in range(100)]
    before.write(a_write(before, 1, "append", rows[:1]))
    # From here on Delta puts files into folders below the table's.
    mapped = SetProperties((MAPPING_PROPERTY,))
    mirrors.evolve(MIRROR, (mapped,), app_id=f"app/{MIRROR}", txn_version=2, after_version=0)
    mirrors.write(a_write(mirrors, 3, "append", rows[1:]))
    gone = [{"_change_type": "delete", **row} for row in rows[70:]]
    mirrors.write(a_write(mirrors, 4, "merge", gone))
    upkeep = SparkUpkeep(place, spark=spark, keep=timedelta(days=30))
    found = upkeep.files(MIRROR)
    assert (found.rows, found.deleted_rows) == (100, 30)
    (step,) = decide(found, UpkeepPolicy()).steps
    assert step.kind is StepKind.PURGE
    with pytest.raises(CommitConflict):
        upkeep.carry_out(MIRROR, step, SAID, 2)
    assert upkeep.carry_out(MIRROR, step, SAID, 3) == 4
    assert upkeep.carry_out(MIRROR, step, SAID, 4) is None
    (commit,) = mirrors.log_since(MIRROR, 3).commits
    assert (commit.copied_version, judge_foreign(commit), commit.user_metadata) == (3, None, SAID)
    found = upkeep.files(MIRROR)
    assert (found.rows, found.deleted_rows, found.unneeded.count) == (70, 0, 0)
    left = [row for batch in mirrors.rows(MIRROR, ["id"], 4) for row in batch["id"].to_pylist()]
    assert sorted(left) == list(range(70))
    at_once = SparkUpkeep(place, spark=spark, keep=timedelta(0))
    unneeded = at_once.files(MIRROR).unneeded
    written = [path for path in (place / MIRROR).rglob() if path.name.startswith("part-")]
    assert unneeded.count == len(written) - len(found.sizes) > 0
    deleted = at_once.vacuum(MIRROR)
    assert (deleted.count >= unneeded.count, deleted.bytes >= unneeded.bytes) == (True, True)
    assert at_once.files(MIRROR).unneeded == FileTotal()
    promised_longer = SparkUpkeep(place, spark=spark, keep=timedelta(days=365)).files(MIRROR)
    assert (promised_longer.unneeded, promised_longer.reason_unknown is None) == (
        FileTotal(),
        False,
    )
    left = [row for batch in mirrors.rows(MIRROR, ["id"], 4) for row in batch["id"].to_pylist()]
    assert sorted(left) == list(range(70))


COMMITS, EVERY = 24, 3


def test_old_checkpoints_go_and_versions_stay(tmp_path: Path, spark: SparkProcess) -> None:
    """Those of the last day stay, as do the first of each day and the two newest; where there is
    no table, there is nothing to do."""
    now = datetime.now(UTC)
    thin_log = SparkUpkeep(tmp_path, spark=spark, keep=timedelta(0)).thin_log
    assert thin_log("none", now, delete=True) == FileTotal()
    table = tmp_path / "t"
    for number in range(COMMITS):
        write_deltalake(table, pa.table({"id": [number]}), mode="append")
        if number % EVERY == EVERY - 1:
            DeltaTable(table).create_checkpoint()
    checkpoints = sorted((table / "_delta_log").glob("*.checkpoint.parquet"))
    (table / "_delta_log" / f".{checkpoints[1].name}.crc").touch()
    for path in checkpoints:  # an hour between two
        made = (now - timedelta(days=3, hours=-checkpoints.index(path))).timestamp()
        os.utime(path, (made, made))
    seen = {number: _rows(table, number) for number in range(COMMITS)}
    told = thin_log("t", now, delete=False)
    assert sorted((table / "_delta_log").glob("*.checkpoint.parquet")) == checkpoints
    assert thin_log("t", now, delete=True) == told
    assert thin_log("t", now, delete=True) == FileTotal()
    left = sorted((table / "_delta_log").glob("*.checkpoint.parquet"))
    assert left == [checkpoints[0], *checkpoints[-2:]]
    assert told.count == len(checkpoints) - len(left)
    assert not [*(table / "_delta_log").glob(".*.crc")]
    assert {number: _rows(table, number) for number in range(COMMITS)} == seen


def _rows(table: Path, version: int) -> list[int]:
    found = DeltaTable(table, version=version).to_pyarrow_table()
    return sorted(found.column("id").to_pylist())
