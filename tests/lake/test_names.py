"""Columns that Delta or Spark take for their own, or by no name: followed under any, by every way
in which a mirror is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY
from lockstep.pipeline.mirror.layout import changelog_names
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    Fill,
    FoldedChanges,
    Merge,
    MirrorStep,
    MirrorTarget,
    RenameColumn,
    Replace,
    Rewrite,
    SetProperties,
    StagedFiles,
)
from lockstep.pipeline.schema.types import MERGE_COLUMNS
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.policies import Deletes, Readers
from lockstep.resources.lake.spark.session import SparkProcess
from tests.lake.conftest import Lake, lake_of
from tests.lake.made import a_target, own_part

INTERNAL = (
    *("filePath", "rowIndexCol", "deletionVectorId", "maxRowIndexCol", "dvFilePath"),
    *("_row_id_", "_file_name_", "_source_row_present_", "_target_row_present_", "_row_dropped_"),
    *("_condition_", "__condition__", "_input_file_name_", "_target_row_index_"),
    *("_source_row_index", "_change_type", "_commit_version", "_commit_timestamp", "__is_cdc"),
    *("__delta_internal_is_row_deleted", "__delta_internal_row_index", "_tmp_metadata_row_index"),
    *("_metadata", "file_path", "row_index", "_row_id", "base_row_id", "one", "count", "s", "t"),
)
"""Names in the plans of Delta 4.4 (`spark/src/main/scala`: MergeIntoCommandBase, UpdateCommand,
DMLWithDeletionVectorsHelper, CDCReader, DeltaParquetFileFormat, RowId) and of Spark 4.2
(FileFormat, ParquetFileFormat)."""

ODD = (
    *("a b", "x;y", "count(`id`)", "{n}", "k=v", "l\nm\tn", "a.b", "`", "a%20b", "%", "ä"),
    *("x`y", "täble$1", "it's", 'say"so', "select", "c0"),
)
EVERY = (*INTERNAL, *ODD)
MERGED = tuple(name for name in EVERY if name not in MERGE_COLUMNS)

MIRROR = "shop/shop/odd"


@dataclass(frozen=True)
class Odd:
    """A table of `id` and these columns, in a lake."""

    lake: Lake
    names: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), *((name, pa.string()) for name in self.names)])

    def row(self, number: int, text: str | None = None) -> dict[str, Any]:
        told = str(number) if text is None else text
        return {"id": number, **{name: told + name for name in self.names}}

    def target(self, number: int, **more: Any) -> MirrorTarget:
        return a_target(number, self.schema, MIRROR, **more)

    def staged(self, *changes: tuple[str, Mapping[str, Any]]) -> tuple[str, ...]:
        """A file of row images, or of folded changes."""
        spelled = dict(zip(self.schema.names, changelog_names(self.schema.names), strict=True))
        marks = [
            ("_change_type", pa.string()),
            ("_sequence", pa.int64()),
            ("_committed_at", pa.timestamp("us", tz="UTC")),
        ]
        images = [
            {
                "_change_type": kind,
                "_sequence": number,
                "_committed_at": datetime(2026, 1, 1, 12, tzinfo=UTC),
                **{spelled[name]: value for name, value in values.items()},
            }
            for number, (kind, values) in enumerate(changes, start=1)
        ]
        fields = [field.with_name(spelled[field.name]) for field in self.schema]
        table = pa.Table.from_pylist(images, schema=pa.schema([*marks, *fields]))
        return (self.lake.mirrors.stage("odd", table),)

    def images(self, *changes: tuple[str, Mapping[str, Any]]) -> StagedFiles:
        return own_part(self.staged(*changes), self.schema)

    @property
    def rows(self) -> list[dict[str, Any]]:
        version = self.lake.mirrors.version(MIRROR)
        assert version is not None
        batches = self.lake.mirrors.rows(MIRROR, self.schema.names, version)
        rows = pa.Table.from_batches(batches, self.schema).to_pylist()
        return sorted(rows, key=lambda row: int(row["id"]))


WAYS = {
    "by MERGE": ("many", MERGED),
    "in memory": ("disk", EVERY),
    "by a join": ("queries", EVERY),
}
ALIKE = [pytest.param(way, marks=[] if way == "in memory" else [pytest.mark.soak]) for way in WAYS]
"""Ways of a test whose queries, which take many seconds, are much like those of another one."""


@pytest.fixture(params=WAYS)
def odd(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkProcess) -> Odd:
    kind, names = WAYS[request.param]
    return Odd(lake_of(kind, tmp_path, spark), names)


@pytest.mark.thin
@pytest.mark.parametrize("readers", Readers)
def test_a_table_with_a_key(odd: Odd, readers: Readers) -> None:
    """Created, merged into, and replaced."""
    mirrors, key = odd.lake.mirrors, ("id",)
    first = odd.images(*(("insert", odd.row(number)) for number in range(4)))
    mirrors.write(Append(odd.target(1, readers=readers), (first,)))
    then = ("update_postimage", odd.row(1, "new")), ("delete", odd.row(2)), ("insert", odd.row(9))
    mirrors.write(Merge(odd.target(2), key, FoldedChanges(odd.staged(*then))))
    assert odd.rows == [odd.row(0), odd.row(1, "new"), odd.row(3), odd.row(9)]
    folded = FoldedChanges(odd.staged(("insert", odd.row(5))))
    mirrors.write(Replace(odd.target(3), key, (), folded))
    assert odd.rows == [odd.row(5)]


@pytest.mark.parametrize(
    "odd",
    ["in memory", "by MERGE", pytest.param("by a join", marks=pytest.mark.soak)],
    indirect=True,
)
def test_a_table_whose_key_they_are(odd: Odd) -> None:
    mirrors, key = odd.lake.mirrors, odd.names
    first = odd.images(*(("insert", odd.row(number)) for number in range(3)))
    mirrors.write(Append(odd.target(1), (first,)))
    then = ("update_postimage", odd.row(1)), ("delete", odd.row(2)), ("insert", odd.row(9))
    mirrors.write(Merge(odd.target(2), key, FoldedChanges(odd.staged(*then))))
    assert odd.rows == [odd.row(0), odd.row(1), odd.row(9)]


@pytest.mark.parametrize("odd", ALIKE, indirect=True)
def test_a_table_without_a_key(odd: Odd) -> None:
    """Copies are counted by all columns."""
    mirrors = odd.lake.mirrors
    first = odd.images(*(("insert", odd.row(number)) for number in (0, 1, 2, 3, 3)))
    mirrors.write(Append(odd.target(1), (first,)))
    then = odd.images(("delete", odd.row(3)), ("insert", odd.row(0)))
    mirrors.write(CountedMerge(odd.target(2), (then,)))
    assert odd.rows == [odd.row(number) for number in (0, 0, 1, 2, 3)]
    mirrors.write(CountedReplace(odd.target(3), (odd.images(("insert", odd.row(7))),), ()))
    assert odd.rows == [odd.row(7)]


@pytest.mark.parametrize("odd", ALIKE, indirect=True)
def test_deleted_rows_that_stay(odd: Odd) -> None:
    """Each as it was last."""
    mirrors = odd.lake.mirrors
    first = [("insert", odd.row(number)) for number in range(3)]
    then = [("update_postimage", odd.row(1, "new")), ("delete", odd.row(2)), ("insert", odd.row(9))]
    for number, changes in enumerate((first, then), start=1):
        target = odd.target(number, deletes=Deletes.SOFT)
        mirrors.write(Merge(target, ("id",), FoldedChanges(odd.staged(*changes))))
    assert odd.rows == [odd.row(0), odd.row(1, "new"), odd.row(2), odd.row(9)]


@pytest.mark.parametrize("readers", Readers)
@pytest.mark.parametrize("odd", ALIKE, indirect=True)
def test_columns_that_come_later(odd: Odd, readers: Readers) -> None:
    """Added, renamed and filled, in a mirror that had plain names."""
    mirrors, last = odd.lake.mirrors, odd.names[-1]
    plain = pa.schema([("id", pa.int64()), (last, pa.string())])
    images = pa.table({"_change_type": ["insert"], "_sequence": [1], "id": [1], last: ["a"]})
    files = own_part((mirrors.stage("plain", images),), plain)
    mirrors.write(Append(a_target(1, plain, MIRROR, readers=readers), (files,)))
    added = [(name, pa.string()) for name in odd.names[:-1]]
    steps: list[MirrorStep] = [AddColumns(pa.schema(added))]
    if readers is Readers.SPARK:
        steps = [
            SetProperties((MAPPING_PROPERTY,)),
            RenameColumn(last, odd.names[0]),
            AddColumns(pa.schema([*added[1:], (last, pa.string())])),
        ]
    fill = Fill(tuple((name, pa.scalar(f"1{name}")) for name in odd.names))
    mirrors.evolve(MIRROR, (*steps, fill), app_id="a", txn_version=1, after_version=0)
    assert odd.rows == [odd.row(1)]


@pytest.mark.parametrize(
    "step",
    [
        AddColumns(pa.schema([("order items", pa.int32())])),
        RenameColumn("id", "order items"),
        Rewrite(pa.schema([("order items", pa.int64())]), (ColumnOrigin("id", pa.int64()),)),
    ],
    ids=["added", "renamed", "rewritten"],
)
def test_a_mirror_that_is_to_have_no_mapping_sets_such_a_table_aside(
    tmp_path: Path, spark: SparkProcess, step: MirrorStep
) -> None:
    """It was made for Spark, and is for any reader now: Spark is not asked, where it would fail,
    and so would every run after it."""
    odd = Odd(lake_of("disk", tmp_path, spark), ())
    odd.lake.mirrors.write(Append(odd.target(1), (odd.images(("insert", odd.row(1))),)))
    with pytest.raises(TableError, match="'order items'"):
        odd.lake.mirrors.evolve(MIRROR, (step,), app_id="a", txn_version=1, after_version=0)
    assert odd.lake.mirrors.version(MIRROR) == 0


def test_a_refusal_is_told_by_its_error_alone(spark: SparkProcess) -> None:
    """PySpark prints none, with Java's stack."""
    printed = MemoryHandler(100)
    loggers = [
        PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")
    ]
    for logger in loggers:
        logger.addHandler(printed)
    session = spark.session()
    with pytest.raises(AnalysisException, match="nothing"):
        session.sql("select nothing")
    with pytest.raises(AnalysisException, match="nothing"):
        session.range(1).select("nothing")
    for logger in loggers:
        logger.removeHandler(printed)
    assert printed.buffer == []
