"""Which Delta table a commit is a version of: another one in its folder begins at 0 again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from resources.lake.delta_log import commit_file, table_id

ROWS = pa.table({"id": pa.array([1], pa.int64())})


def test_where_that_is_gone_the_snapshot_does(tmp_path: Path) -> None:
    for _ in range(3):
        write_deltalake(tmp_path, ROWS, mode="append")
    told = table_id(tmp_path)
    assert told == str(DeltaTable(tmp_path).metadata().id)
    DeltaTable(tmp_path).create_checkpoint()
    commit_file(tmp_path, 0).unlink()
    commit_file(tmp_path, 1).unlink()
    assert table_id(tmp_path) == told


def test_a_table_made_anew_has_another(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    before = table_id(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    write_deltalake(tmp_path / "t", ROWS)
    assert table_id(tmp_path / "t") != before
