"""Spark DataFrames of what a write reads: files of changes, mirrors (the Delta tables
with the present rows of source tables), and the values that changes lack.

Files are read with explicit schemas, because inferring a schema would take Spark a job
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from lockstep.pipeline.mirror.coalescing import LOST_ROW_REASON, RESUME_HINT
from lockstep.pipeline.mirror.layout import (
    DELETED_AT,
    MARKS,
    changelog_names,
    changelog_spelling,
    keep_flag_names,
    lack_flag_names,
    origin_names,
)
from lockstep.pipeline.mirror.mapping import KEPT_CHANGE_TYPE
from lockstep.pipeline.ports.mirror_writes import (
    ColumnOrigin,
    FoldedChanges,
    Inputs,
    Merge,
    MirrorRows,
    Replace,
    StagedFiles,
)
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.row_images import CHANGE_TYPES
from lockstep.resources.lake.changelog.frame import empty_rows, read_files
from lockstep.resources.lake.delta.columns import table_spelling
from lockstep.resources.lake.delta.statement import COMPLETION, literal, quoted
from lockstep.resources.lake.delta.versions import AGE_LIMIT_SETTING
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import delta_table, file_named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def keep_marks(schema: pa.Schema, changes: FoldedChanges) -> dict[str, str]:
    """Return the names of marker columns, by the columns in which the mirror's value may
    stay. A marker is true in changes where the value stays."""
    marks = keep_flag_names(schema.names)
    return {name: marks[name] for name in changes.kept_columns}


def read_changes(
    session: SparkSession, write: Merge | Replace, changes: FoldedChanges | None = None
) -> DataFrame:
    """Return folded changes (one row image per key), by default those of the write. The
    columns: those of `layout.MARKS` that the write needs, the mirror's columns as a
    changelog spells them, and the columns that folding adds (`keep_flag_names`,
    `lack_flag_names`, `origin_names`)."""
    schema = write.target.schema
    changes = changes or write.changes
    marks = ["_change_type"]
    marks += ["_committed_at"] if write.target.policies.marks_deleted else []
    marks += ["_sequence"] if isinstance(write, Merge) and write.completion is not None else []
    lack_marks, origins = lack_flag_names(schema.names), origin_names(schema.names)
    fold_marks = [
        *keep_marks(schema, changes).values(),
        *(lack_marks[name] for name in changes.lacking_columns),
    ]
    fold_columns = [pa.field(mark, pa.bool_()) for mark in fold_marks]
    if changes.lacking_columns:
        fold_columns += [schema.field(name).with_name(origins[name]) for name in write.key]
    return read_files(
        session,
        changes.files,
        pa.schema([*map(MARKS.field, marks), *_spelled_fields(schema), *fold_columns]),
    )


def read_images(
    session: SparkSession, parts: Sequence[StagedFiles], schema: pa.Schema
) -> DataFrame:
    """Return the row images of all parts: `_change_type`, and the mirror's columns as a
    changelog spells them."""
    from pyspark.sql import functions as f

    names = changelog_names(schema.names)
    frames = []
    for part in parts:
        needs_sequence = part.above or part.through is not None
        marks = ["_change_type", *(["_sequence"] if needs_sequence else [])]
        frame = _read_part(session, part, [MARKS.field(mark) for mark in marks])
        if part.above:
            frame = frame.where(f.col("_sequence") > part.above)
        if part.through is not None:
            frame = frame.where(f.col("_sequence") <= part.through)
        images = frame.where(f.col("_change_type").isin([kind.value for kind in CHANGE_TYPES]))
        frames.append(images.select(f.col("_change_type"), *_mapped_columns(part, schema, names)))
    no_images = pa.schema([MARKS.field("_change_type"), *_spelled_fields(schema)])
    return reduce(lambda rows, more: rows.union(more), frames or [empty_rows(session, no_images)])


def read_snapshot(
    session: SparkSession, parts: Inputs, schema: pa.Schema, lake: LakePath
) -> DataFrame:
    """Return a snapshot's rows under the source's column names; a column that a part
    lacks is NULL. `lake`: any path in the lake that has the parts."""
    frames = []
    for part in parts:
        if isinstance(part, MirrorRows):
            rows = mirror_frame(session, file_named(lake, part.path), part.version)
            is_table_column = any(origin.source == DELETED_AT.name for origin in part.columns)
            if DELETED_AT.name in rows.columns and not is_table_column:
                rows = rows.where(column(DELETED_AT.name).isNull())
        elif part.files:
            rows = _read_part(session, part, ())
        else:
            continue
        frames.append(rows.select(_mapped_columns(part, schema, schema.names)))
    return reduce(lambda rows, more: rows.union(more), frames or [empty_rows(session, schema)])


def _spelled_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the mirror's columns as a changelog spells them."""
    names = changelog_names(schema.names)
    return [field.with_name(name) for field, name in zip(schema, names, strict=True)]


def _read_part(
    session: SparkSession, part: StagedFiles, more_columns: Sequence[pa.Field]
) -> DataFrame:
    columns = {field.name: field.type for field in more_columns}
    columns |= {origin.source: origin.type for origin in part.columns if origin.source is not None}
    return read_files(session, part.files, pa.schema(columns))


def mirror_frame(session: SparkSession, path: LakePath, version: int | None = None) -> DataFrame:
    """Return a mirror's rows at a version, by default the newest, with its columns
    named as at the source."""
    reader = session.read.format("delta")
    if version is not None:
        session.conf.set(AGE_LIMIT_SETTING, "false")
        reader = reader.option("versionAsOf", version)
    spelled = table_spelling(delta_table(path, version))
    rows = reader.load(str(path))
    return rows.select(
        *(column(spelled_name).alias(name) for name, spelled_name in spelled.items())
    )


def _mapped_columns(
    part: StagedFiles | MirrorRows, schema: pa.Schema, names: Sequence[str]
) -> list[Column]:
    return [
        column_from(origin, field.type).alias(name)
        for origin, field, name in zip(part.columns, schema, names, strict=True)
    ]


def column(name: str) -> Column:
    """Return the column with exactly this name, in which Spark interprets no
    characters."""
    from pyspark.sql import functions as f

    return f.col(quoted(name))


_PACKED = "_derived"
_IS_COMPLETE = "_derived"
"""The name of two temporary columns; no DataFrame has both. A changelog has a column
of its own with this name, so it spells no column of a table like this."""


def pack(rows: DataFrame, names: Sequence[str]) -> tuple[DataFrame, Column, dict[str, Column]]:
    """Return the rows packed into one struct column, so that a join has no duplicate
    column names; that column, which is NULL after a join that found no row; and the
    struct's fields by name."""
    from pyspark.sql import functions as f

    fields = [column(name).alias(f"c{index}") for index, name in enumerate(names)]
    row = f.col(_PACKED)
    columns = {name: row.getField(f"c{index}") for index, name in enumerate(names)}
    return rows.select(f.struct(*fields).alias(_PACKED)), row, columns


def column_from(origin: ColumnOrigin, kind: pa.DataType) -> Column:
    """Return the expression for a `ColumnOrigin`, cast to the type `kind`. The
    DataFrame must have its source column."""
    from pyspark.sql import functions as f

    if origin.source is None:
        value = pa.scalar(None, kind) if origin.value is None else origin.value
        return f.expr(literal(value)).cast(sql_type(kind))
    source_column = column(origin.source)
    return source_column if origin.type == kind else source_column.cast(sql_type(kind))


def with_completion(
    session: SparkSession, changes: DataFrame, write: Merge, part: StagedFiles
) -> DataFrame:
    """Return the folded changes with the values of `write.completed_columns`, which
    were read from the source by key and are in `part`. A row of `part` whose key has no
    change is added with the `_change_type` COMPLETION.

    `changes` must have `_sequence`. A change with a number above `part.above` is newer
    than the reading and keeps its values.
    """
    from pyspark.sql import functions as f

    schema = write.target.schema
    spelled = changelog_spelling(schema.names)
    part_rows = _read_part(session, part, ()).select(_mapped_columns(part, schema, schema.names))
    packed, packed_row, packed_fields = pack(part_rows, (*write.key, *write.completed_columns))
    condition = f.lit(True)
    values = {"_change_type": f.coalesce(f.col("_change_type"), f.lit(COMPLETION))}
    for name in write.key:
        own_column = column(spelled[name])
        condition &= own_column == packed_fields[name]
        values[spelled[name]] = f.coalesce(own_column, packed_fields[name])
    sequence = f.col("_sequence")
    is_completed = packed_row.isNotNull() & (sequence.isNull() | (sequence <= part.above))
    for name in write.completed_columns:
        own_column = column(spelled[name])
        values[spelled[name]] = f.when(is_completed, packed_fields[name]).otherwise(own_column)
    return changes.join(packed, condition, "full_outer").select(
        *(
            values.get(name, column(name)).alias(name)
            for name in changes.columns
            if name != "_sequence"
        )
    )


@contextmanager
def look_up_values(
    session: SparkSession,
    changes: DataFrame,
    write: Merge | Replace,
    rows: DataFrame,
    staging: Staging,
) -> Iterator[DataFrame]:
    """Yield the folded changes with the values that they lack, looked up in `rows`. The
    result can be read only inside the context.

    `rows`: the present rows of the mirror or of the snapshot, under the source's column
    names. Raise `TableError` if the row of a change is not among them. In a `Replace`,
    however, a delete whose row is not in the snapshot is left out.
    """
    if not write.changes.lacking_columns:
        yield changes
        return
    with staging.new_folder() as folder:
        joined = _join_rows(changes, write, rows)
        joined.write.mode("overwrite").option("compression", "snappy").parquet(folder)
        complete = session.read.schema(joined.schema).parquet(folder)
        changes_without_row = complete.where(f"not {_IS_COMPLETE}")
        if isinstance(write, Replace):
            changes_without_row = changes_without_row.where(
                f"_change_type not in ('delete', '{KEPT_CHANGE_TYPE}')"
            )
            complete = complete.where(_IS_COMPLETE)
        if changes_without_row.limit(1).count():
            raise TableError(LOST_ROW_REASON, hint=RESUME_HINT)
        yield complete.drop(_IS_COMPLETE)


def _join_rows(changes: DataFrame, write: Merge | Replace, rows: DataFrame) -> DataFrame:
    """Return the changes with the values that they lack, without the columns
    `lack_flag_names` and `origin_names`. The column `_IS_COMPLETE` is true for a change that
    now has all its values, because it lacked none or because the row with them was
    found."""
    from pyspark.sql import functions as f

    names = write.target.schema.names
    lacking_columns = write.changes.lacking_columns
    lack_marks, origins = lack_flag_names(names), origin_names(names)
    spelled = changelog_spelling(names)
    packed, packed_row, packed_fields = pack(rows, (*write.key, *lacking_columns))
    is_lacking, has_same_key = f.lit(False), f.lit(True)
    for name in write.key:
        has_same_key &= f.col(origins[name]) == packed_fields[name]
    values = {}
    for name in lacking_columns:
        lack_mark, own_column = f.col(lack_marks[name]), column(spelled[name])
        is_lacking |= lack_mark
        values[spelled[name]] = f.when(lack_mark, packed_fields[name]).otherwise(own_column)
    helpers = {
        *(lack_marks[name] for name in lacking_columns),
        *(origins[name] for name in write.key),
    }
    columns = [
        values.get(name, column(name)).alias(name)
        for name in changes.columns
        if name not in helpers
    ]
    is_complete = ~is_lacking | packed_row.isNotNull()
    return changes.join(packed, is_lacking & has_same_key, "left").select(
        *columns, is_complete.alias(_IS_COMPLETE)
    )
