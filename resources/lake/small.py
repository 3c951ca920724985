"""What a write of few rows leaves, put together in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipeline.changes.apply import apply, completed
from pipeline.changes.layout import DELETED_AT, changelog_names
from pipeline.changes.mapping import cast_column, images_within
from pipeline.changes.widening import TypeChange, type_change
from pipeline.ports.mirror_writes import (
    Append,
    Count,
    Merge,
    MirrorRows,
    MirrorWrite,
    PartColumn,
    Recount,
    Replace,
    Snapshot,
    StagedFiles,
    copied,
    parts_of,
)
from resources.lake.direct import takes_files
from resources.lake.paths import LakePath
from resources.lake.scan import needs_spark, rows_at
from resources.lake.storage import delta_table, file_named, lake_errors

Read: TypeAlias = Callable[[str], pa.Table]

_COME = ("insert", "update_postimage")
_GO = ("delete", "update_preimage")


def in_memory(path: LakePath, write: MirrorWrite, table: DeltaTable | None) -> bool:
    """Whether what the write leaves can be put together without Spark; `table`: the mirror at
    `path`, None where there is none yet."""
    for rows in copied(write):
        origin = file_named(path, rows.path)
        if needs_spark(origin, delta_table(origin, rows.version)):
            return False
    if not all(_castable(part.columns, write.target.schema) for part in parts_of(write)):
        return False
    if (
        isinstance(write, Replace)
        and write.target.keeps
        and (table is not None or write.gone.files)
    ):
        return False  # rows of before stay
    if table is None:
        return True
    reads = isinstance(write, Merge | Count)
    return takes_files(table) and not (reads and needs_spark(path, table))


def rows_of_write(path: LakePath, write: MirrorWrite, version: int, read: Read) -> pa.Table:
    """The rows that an append adds, or that are there behind any other write. `version`: the
    mirror's before, -1 where there is none; `read` gives the rows of a file that it names."""
    schema = _shown(write)
    with lake_errors(path):
        match write:
            case Append(_, parts):
                return _with_mark(_images(read, parts, write.target.schema, _COME), schema)
            case Count(_, parts):
                return _counted(read, _there(path, schema, version), parts)
            case Recount(_, parts, snapshot):
                return _counted(read, _rows(read, snapshot, schema, path), parts)
            case Merge():
                return _merged(read, _there(path, schema, version), write)
            case Replace():
                snapshot = _rows(read, write.snapshot, write.target.schema, path)
                return _replaced(read, _with_mark(snapshot, schema), write)


def _shown(write: MirrorWrite) -> pa.Schema:
    schema = write.target.schema
    return schema.append(DELETED_AT) if write.target.soft else schema


def _there(path: LakePath, schema: pa.Schema, version: int) -> pa.Table:
    return rows_at(path, version, schema.names) if version >= 0 else schema.empty_table()


def _counted(read: Read, rows: pa.Table, parts: Sequence[StagedFiles]) -> pa.Table:
    come, go = (_images(read, parts, rows.schema, kinds) for kinds in (_COME, _GO))
    return _without_gone(rows, come, go)


def _merged(read: Read, rows: pa.Table, write: Merge) -> pa.Table:
    changes = _changes(read, write.changes.files)
    soft = write.target.soft
    if changes is not None:
        rows = apply(rows, changes, write.key, write.changes, soft=soft)
    part = write.completion
    if part is None:
        return rows
    schema = write.target.schema
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    names = [spelled[name] for name in write.key]
    keys = pa.schema([schema.field(name) for name in write.key]).empty_table()
    behind = keys if changes is None else images_within(changes, part).select(names)
    found = [_columns(read(file), part.columns, schema) for file in part.files]
    read_rows = pa.concat_tables([schema.empty_table(), *found])
    return completed(rows, read_rows, behind, write.key, write.completed)


def _replaced(read: Read, rows: pa.Table, write: Replace) -> pa.Table:
    changes = _changes(read, write.changes.files)
    if changes is None:
        return rows
    soft = write.target.soft
    return apply(rows, changes, write.key, write.changes, soft=soft, anew=True)


def _with_mark(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that are not deleted."""
    if len(schema) == rows.num_columns:
        return rows
    return rows.append_column(DELETED_AT, pa.nulls(rows.num_rows, DELETED_AT.type))


def _castable(columns: Sequence[PartColumn], schema: pa.Schema) -> bool:
    """Whether nothing is cast that Spark casts by rules of its own."""
    for column, field in zip(columns, schema, strict=True):
        value = None if column.value is None else column.value.type
        kind = column.type if column.source is not None else value
        if kind is not None and type_change(kind, field.type) is TypeChange.REREAD:
            return False
    return True


def _changes(read: Read, files: Sequence[str]) -> pa.Table | None:
    return pa.concat_tables(read(file) for file in files) if files else None


def _images(
    read: Read, parts: Sequence[StagedFiles], schema: pa.Schema, kinds: Sequence[str]
) -> pa.Table:
    found = [schema.empty_table()]
    for part in parts:
        for file in part.files:
            images = images_within(read(file), part)
            images = images.filter(pc.is_in(images["_change_type"], pa.array(kinds)))
            found.append(_columns(images, part.columns, schema))
    return pa.concat_tables(found)


def _rows(read: Read, parts: Snapshot, schema: pa.Schema, lake: LakePath) -> pa.Table:
    """`lake`: any place of the lake that the parts are in."""
    found = [schema.empty_table()]
    for part in parts:
        if isinstance(part, MirrorRows):
            found.append(_columns(_copied(part, lake), part.columns, schema))
        else:
            found += [_columns(read(file), part.columns, schema) for file in part.files]
    return pa.concat_tables(found)


def _copied(part: MirrorRows, lake: LakePath) -> pa.Table:
    rows = rows_at(file_named(lake, part.path), part.version)
    own = any(column.source == DELETED_AT.name for column in part.columns)
    if own or DELETED_AT.name not in rows.column_names:
        return rows
    return rows.filter(pc.is_null(rows.column(DELETED_AT.name)))


def _columns(rows: pa.Table, columns: Sequence[PartColumn], schema: pa.Schema) -> pa.Table:
    pairs = zip(columns, schema, strict=True)
    found = [_column(rows, column, field.type) for column, field in pairs]
    return pa.Table.from_arrays(found, schema=schema)


def _column(rows: pa.Table, column: PartColumn, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if column.source is not None:
        return cast_column(rows.column(column.source), kind)
    if column.value is None or not column.value.is_valid:
        return pa.nulls(rows.num_rows, kind)
    return pa.repeat(column.value.cast(kind), rows.num_rows)


def _without_gone(rows: pa.Table, come: pa.Table, go: pa.Table) -> pa.Table:
    """`rows` and those that `come`, without a copy of each that goes (all of one schema), in no
    particular order. Rows are told apart by the bits of all their values; what goes and was
    never there is passed over."""
    there = pa.concat_tables([rows, come])
    going = Counter(_texts(go))
    stays = []
    for at, row in enumerate(_texts(there)):
        if going[row]:
            going[row] -= 1
        else:
            stays.append(at)
    return there.take(pa.array(stays, pa.int64()))


def _texts(rows: pa.Table) -> list[str]:
    """Each row as text: 0.0 and -0.0 are two, and NULL is like NULL."""
    return [repr(list(row.values())) for row in rows.to_pylist()]
