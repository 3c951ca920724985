"""Checkpoints that others replace are deleted; every version is read as before."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from lockstep.pipeline.upkeep.decide import FileTotal
from lockstep.resources.lake.mirror.upkeep import thin_log

COMMITS, EVERY = 24, 3


def test_old_checkpoints_go_and_versions_stay(tmp_path: Path) -> None:
    """Those of the last day stay, as do the first of each day and the two newest; where there is
    no table, there is nothing to do."""
    now = datetime.now(UTC)
    assert thin_log(tmp_path / "none", now, delete=True) == FileTotal()
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
    told = thin_log(table, now, delete=False)
    assert sorted((table / "_delta_log").glob("*.checkpoint.parquet")) == checkpoints
    assert thin_log(table, now, delete=True) == told
    assert thin_log(table, now, delete=True) == FileTotal()
    left = sorted((table / "_delta_log").glob("*.checkpoint.parquet"))
    assert left == [checkpoints[0], *checkpoints[-2:]]
    assert told.files == len(checkpoints) - len(left)
    assert not [*(table / "_delta_log").glob(".*.crc")]
    assert {number: _rows(table, number) for number in range(COMMITS)} == seen


def _rows(table: Path, version: int) -> list[int]:
    found = DeltaTable(table, version=version).to_pyarrow_table()
    return sorted(found.column("id").to_pylist())
