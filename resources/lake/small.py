"""What a write of few rows leaves, put together in memory.

Belongs here: which writes that can be said of, and their rows. Does not: how many rows are few
(`pipeline.changes.strategy`), applying changes (`pipeline.changes.apply`), the commit (`direct`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipeline.changes.apply import apply
from pipeline.changes.latest import is_present
from pipeline.ports.mirror_writes import (
    Append,
    Merge,
    MirrorWrite,
    PartColumn,
    Replace,
    StagedFiles,
)
from pipeline.row_images import CHANGE_TYPES
from resources.lake.direct import has_columns, takes_files
from resources.lake.paths import LakePath
from resources.lake.scan import mirror_schema, needs_spark, scanned
from resources.lake.storage import lake_errors

_KINDS = pa.array([kind.value for kind in CHANGE_TYPES])


def in_memory(write: MirrorWrite, table: DeltaTable | None) -> bool:
    """Whether what the write leaves can be put together without Spark; `table`: the mirror, None
    where there is none yet."""
    if write.target.soft or (table is not None and not takes_files(table)):
        return False
    match write:
        case Append(target, parts):
            return _as_they_are(parts, target.schema)
        case Merge():
            return (
                bool(write.changes.files)
                and write.changes.whole
                and write.completion is None
                and (table is None or not needs_spark(table))
            )
        case Replace(target):
            return (
                write.changes.whole
                and _as_they_are(write.snapshot, target.schema)
                and (table is None or has_columns(table, target.schema))
            )
        case _:
            return False


def rows_of_write(path: LakePath, write: MirrorWrite, version: int) -> pa.Table:
    """The rows that an append adds, or that are there behind a merge and a replacement.
    `version`: the mirror's before, -1 where there is none."""
    schema = write.target.schema
    with lake_errors(path):
        match write:
            case Append(_, parts):
                return pa.concat_tables([schema.empty_table(), *_images(parts, schema)])
            case Merge() if version >= 0:
                there = mirror_schema(path, version)
                schema = pa.schema([there.field(name) for name in schema.names])
                rows = pa.Table.from_batches(scanned(path, schema.names, version), schema)
                return _changed(rows, write)
            case Merge():
                return _changed(schema.empty_table(), write)
            case Replace():
                snapshot = _rows(write.snapshot, schema)
                return _changed(pa.concat_tables([schema.empty_table(), *snapshot]), write)
            case _:
                raise ValueError(f"{type(write).__name__} is not put together in memory")


def _changed(rows: pa.Table, write: Merge | Replace) -> pa.Table:
    if not write.changes.files:
        return rows
    changes = pa.concat_tables(pq.read_table(file) for file in write.changes.files)
    return apply(rows, changes, write.key)


def _as_they_are(parts: Sequence[StagedFiles], schema: pa.Schema) -> bool:
    """Whether nothing is to be cast, which Spark does by rules of its own."""
    return all(
        column.type == field.type if column.source is not None else _is_of(column, field)
        for part in parts
        for column, field in zip(part.columns, schema, strict=True)
    )


def _is_of(column: PartColumn, field: pa.Field) -> bool:
    return column.value is None or column.value.type == field.type


def _images(parts: Sequence[StagedFiles], schema: pa.Schema) -> list[pa.Table]:
    """The rows that the row images of all parts leave."""
    found = []
    for part in parts:
        for file in part.files:
            images = pq.read_table(file)
            counts = pc.is_in(images["_change_type"], _KINDS)
            if part.above:
                counts = pc.and_(counts, pc.greater(images["_sequence"], part.above))
            images = images.filter(pc.and_(counts, is_present(images["_change_type"])))
            found.append(_columns(images, part, schema))
    return found


def _rows(parts: Sequence[StagedFiles], schema: pa.Schema) -> list[pa.Table]:
    files = [(part, file) for part in parts for file in part.files]
    return [_columns(pq.read_table(file), part, schema) for part, file in files]


def _columns(rows: pa.Table, part: StagedFiles, schema: pa.Schema) -> pa.Table:
    pairs = zip(part.columns, schema, strict=True)
    return pa.table([_column(rows, column, field) for column, field in pairs], schema=schema)


def _column(rows: pa.Table, column: PartColumn, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if column.source is not None:
        return rows.column(column.source).cast(field.type)
    if column.value is None:
        return pa.nulls(rows.num_rows, field.type)
    return pa.repeat(column.value, rows.num_rows)
