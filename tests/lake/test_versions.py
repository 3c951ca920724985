"""A version of a mirror is read whole, by spans of a column, or not at all and with the reason."""

from __future__ import annotations

import json
import os
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake

from lockstep.commands.read import table_snippets
from lockstep.pipeline.mirror.generations import shared_columns
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.values.errors import TableError, VersionGone
from lockstep.resources.lake.changelog.frame import PublishedGeneration, generations_frame
from lockstep.resources.lake.delta.columns import mirror_schema
from lockstep.resources.lake.delta.delta_log import actions, commit_file
from lockstep.resources.lake.delta.pin import head_of
from lockstep.resources.lake.delta.versions import (
    DeltaVersion,
    open_version,
    scan_rows,
    staged_rows,
    version_frame,
    version_rows,
)
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.both_ways import BEHIND, MARKED, MIRROR, WIDER, BothWays
from tests.lake.conftest import disk_lake
from tests.lake.made import a_write, content

AGED = {"delta.deletedFileRetentionDuration": "interval 1 seconds"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two versions: one row, then another, in a folder whose name has to be escaped."""
    path = tmp_path / "it's a =20table"
    for number in (1, 2):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        write_deltalake(path, rows, mode="overwrite", configuration=AGED if number == 1 else None)
    return path


def at(path: Path, version: int, table: str | None, batch: int = 1) -> DeltaVersion:
    return DeltaVersion(path, version, table, batch)


def identity(table: Path) -> str:
    return str(DeltaTable(table).metadata().id)


def test_a_version_is_read(table: Path) -> None:
    """With the rows that it had, whatever came later."""
    for version in (0, 1):
        rows = version_rows(at(table, version, identity(table)))
        assert rows.to_pylist() == [{"id": version + 1}]
        assert version_rows(at(table, version, None)) == rows


def test_another_table_in_the_folder_is_not_read(table: Path) -> None:
    with pytest.raises(VersionGone, match="another table"):
        open_version(at(table, 0, "a5c1"))


def test_a_version_whose_log_is_gone_is_not_read(table: Path) -> None:
    """Cleaned up behind a checkpoint; nor one that is not there yet; nor a folder that is not."""
    DeltaTable(table).create_checkpoint()
    commit_file(table, 0).unlink()
    for version, path in ((0, table), (7, table), (0, table / "none")):
        with pytest.raises(VersionGone) as caught:
            open_version(at(path, version, None))
        assert "lockstep versions --list" in caught.value.hint
    assert version_rows(at(table, 1, None)).to_pylist() == [{"id": 2}]


def test_a_version_whose_files_are_gone_is_not_read(table: Path, spark: SparkProcess) -> None:
    """As behind a VACUUM; the newest version still is, by whatever reads it."""
    (file,) = pa.table(DeltaTable(table, version=0).get_add_actions())["path"].to_pylist()
    (table / file).unlink()
    for read in (
        lambda: open_version(at(table, 0, None)),
        lambda: version_rows(at(table, 0, None)),
        lambda: version_frame(spark.session(), at(table, 0, None)),
    ):
        with pytest.raises(VersionGone, match="1 of its files were deleted"):
            read()
    assert version_rows(at(table, 1, None)).num_rows == 1


def test_spark_reads_a_version_that_was_the_newest_until_now(
    table: Path, spark: SparkProcess
) -> None:
    """Delta refuses it by the age of its commit, although all of it is there: neither what we
    give, of a mirror or a changelog, nor what we print does."""
    time.sleep(1.1)
    session = spark.session()
    with pytest.raises(Exception, match="BEYOND_DELETED_FILE_RETENTION"):
        session.read.format("delta").option("versionAsOf", 0).load(str(table)).collect()
    assert version_frame(session, at(table, 0, identity(table))).collect()[0].id == 1
    schema = mirror_schema(table, 0)
    generation = PublishedGeneration(1, table, schema, delta_version=0)
    changes = generations_frame(spark.session(), [generation], shared_columns([schema], [1]))
    assert changes.collect()[0].id == 1
    names = {"spark": spark.session()}
    *_, switched, read = table_snippets(str(table), version=0)["Spark"].split("\n")
    exec(switched, names)
    assert eval(read, names).collect()[0].id == 1


def test_a_version_that_was_made_a_second_time_is_not_read(tmp_path: Path) -> None:
    """Where the lake was set back, its next commits have the numbers of those that are gone, in
    the same Delta table; each says up to which batch it shows."""
    for batch in (1, 8):
        words = json.dumps({"lockstep": {"batches": [batch, batch]}})
        rows = pa.table({"id": pa.array([batch], pa.int64())})
        said = CommitProperties(custom_metadata={"userMetadata": words})
        write_deltalake(tmp_path, rows, mode="overwrite", commit_properties=said)
    assert version_rows(at(tmp_path, 1, None, batch=8)).to_pylist() == [{"id": 8}]
    assert version_rows(at(tmp_path, 0, None, batch=2)).to_pylist() == [{"id": 1}]
    with pytest.raises(VersionGone, match="set back"):
        open_version(at(tmp_path, 1, None, batch=2))


COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[ValueRange]]] = {
    "numbers": (
        pa.int32(),
        [-5, 0, 3, 2**31 - 1, None],
        [ValueRange(-9, 0), ValueRange(7, 2**31 - 1)],
    ),
    "long numbers": (
        pa.decimal128(20, 0),
        [Decimal(0), Decimal(2**64 - 1), Decimal(2**63)],
        [ValueRange(2**63, 10**20 - 1)],
    ),
    "long numbers from a short one": (
        pa.decimal128(20, 0),
        [Decimal(1), Decimal(3), Decimal(2**64 - 1), Decimal(9)],
        [ValueRange(5, 2**64 - 1), ValueRange(1, 1)],
    ),
    "texts": (
        pa.string(),
        ["a", "it's", 'a "quoted" one', "\\", "é😀", "", None],
        [ValueRange(one, one) for one in ("it's", 'a "quoted" one', "\\", "é😀", "")],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_in_spans_are_all_there(tmp_path: Path, name: str) -> None:
    """Whatever the values hold; a column's name may hold anything too."""
    kind, values, spans = COLUMNS[name]
    column = 'it\'s "a" column'
    write_deltalake(tmp_path, pa.table({column: pa.array(values, kind)}))
    found = [
        value
        for batch in scan_rows(tmp_path, [column], 0, (column, spans))
        for value in batch.column(0).to_pylist()
    ]
    inside = [
        one
        for one in values
        if one is not None and any(span.low <= one <= span.high for span in spans)
    ]
    assert set(inside) <= set(found)
    assert len(found) < len(values)
    none = scan_rows(tmp_path, [column], 0, (column, []))
    assert sum(batch.num_rows for batch in none) == 0


def test_large_rows_come_in_small_batches(tmp_path: Path) -> None:
    """However well they are packed, so that memory does not grow with their size. Only the columns
    that are read count, whatever their names have in common."""
    texts = [f"{number:03d}" + "x" * (1 << 20) for number in range(100)]
    rows = pa.table({"doc": [f"{number}" for number in range(100)], "document.text": texts})
    write_deltalake(tmp_path / "table", rows)
    (tmp_path / "staged").mkdir()
    pq.write_table(rows.rename_columns(["c0", "c1"]), tmp_path / "staged" / "rows.parquet")
    for batches in (
        [*scan_rows(tmp_path / "table", rows.column_names, 0)],
        [*staged_rows(str(tmp_path / "staged"), rows.column_names, rows.schema)],
    ):
        read = pa.Table.from_batches(batches)
        assert sorted(read["document.text"].to_pylist()) == texts
        assert max(batch.num_rows for batch in batches) <= 16
    [whole] = scan_rows(tmp_path / "table", ["doc"], 0)
    assert whole.num_rows == 100


def test_large_rows_are_found_beside_a_file_that_is_larger(tmp_path: Path) -> None:
    """The log has sizes of files, packed: here, those of the large rows are the smaller ones."""
    packed = WriterProperties(compression="ZSTD")
    for names in (
        [f"{number:03d}" + "x" * (1 << 20) for number in range(40)],
        [os.urandom(100_000).hex() for _ in range(100)],
    ):
        write_deltalake(tmp_path, pa.table({"n": names}), mode="append", writer_properties=packed)
    large, dense = (
        pa.table(DeltaTable(tmp_path).get_add_actions()).sort_by("num_records").to_pylist()
    )
    assert large["size_bytes"] / 40 < dense["size_bytes"] / 100
    assert max(batch.num_rows for batch in scan_rows(tmp_path, ["n"], 1)) <= 16


# -- an earlier version, shown once more -------------------------------------------------


def test_versions_are_shown_once_more(
    both_ways: BothWays, tmp_path: Path, spark: SparkProcess
) -> None:
    """It is set back to rows that are marked as deleted, and then to columns that were renamed and
    widened; then it is written to. The files that come and go are those that the two versions do
    not share. Nothing is committed where a file is gone."""
    ours, mirror = disk_lake(tmp_path, spark).mirrors, tmp_path / "lake" / MIRROR
    both_ways.copied(mirror)
    first = head_of(mirror).version + 1
    for number, version in enumerate((MARKED, WIDER), start=first):
        assert ours.restore(MIRROR, version, "said") == number
        there, then = (_files(mirror, at) for at in (number - 1, version))
        text = commit_file(mirror, number).read_text()
        for kind, files in (("add", then - there), ("remove", there - then)):
            assert {file["path"] for _, file in actions(text, kind)} == files
        assert _files(mirror, number) == then
    schema, rows = both_ways.shown[MARKED]
    assert content(ours, MIRROR, schema, first) == rows
    new = {"id": 99, "n": 1, "called": "c", "m": None}
    ours.write(a_write(ours, 99, "merge", [new], schema=BEHIND))
    newest = first + 2
    assert content(ours, MIRROR, BEHIND, newest) == [*both_ways.shown[WIDER][1], new]
    for file in _files(mirror, first) - _files(mirror, newest):
        (mirror / file).unlink()
    with pytest.raises(TableError):
        ours.restore(MIRROR, first, "said")
    assert ours.version(MIRROR) == newest


def _files(table: Path, version: int) -> set[str]:
    return {*pa.table(DeltaTable(table, version=version).get_add_actions())["path"].to_pylist()}
