"""A write's files as Spark reads them: by schemas made here, nothing inferred.

Belongs here: renaming and casting files of other structures to the mirror's columns. What
becomes of the rows is `writing`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.changes.layout import MARKS, changelog_names, keep_names
from pipeline.changes.mapping import kept_columns
from pipeline.ports.mirror_writes import MirrorWrite, Part, PartColumn
from pipeline.row_images import CHANGE_TYPES
from resources.lake.statement import literal, quoted, sql_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField


def whole_parts(write: MirrorWrite) -> tuple[Part, ...]:
    """All the parts of a write; `files` are one whose columns are the mirror's own."""
    if not write.files:
        return write.parts
    names = changelog_names(write.schema.names)
    own = tuple(PartColumn(n, f.type) for n, f in zip(names, write.schema, strict=True))
    return (Part(write.files, own), *write.parts)


def keep_marks(write: MirrorWrite) -> dict[str, str]:
    """Columns whose value in the mirror may stay → the mark that says so in folded changes."""
    known = write.kept or kept_columns((part.columns for part in whole_parts(write)), write.schema)
    marks = dict(zip(write.schema.names, keep_names(write.schema.names), strict=True))
    return {name: marks[name] for name in known}


def changes_of(session: SparkSession, write: MirrorWrite, marks: Sequence[str]) -> DataFrame:
    """The row images of all parts: `marks`, the mirror's columns as a changelog spells them,
    and for a fold the keep marks."""
    from pyspark.sql import functions as f

    keeps = {write.schema.get_field_index(n): m for n, m in keep_marks(write).items()}
    told = list(keeps.values()) if write.mode == "merge" else []
    frames = []
    for part in whole_parts(write):
        needed = [*marks, *told]
        if part.above and "_sequence" not in needed:
            needed.append("_sequence")
        frame = _read(session, part, needed)
        if part.above:
            frame = frame.where(f.col("_sequence") > part.above)
        images = frame.where(f.col("_change_type").isin([kind.value for kind in CHANGE_TYPES]))
        columns = [f.col(mark) for mark in marks]
        columns += _columns(part, write.schema, changelog_names(write.schema.names))
        if told:
            columns += [f.col(mark) for mark in told]
        else:
            columns += [f.lit(part.columns[at].absent).alias(m) for at, m in keeps.items()]
        frames.append(images.select(columns))
    if not frames:
        return _empty(session, write, marks)
    return reduce(lambda one, other: one.union(other), frames)


def snapshot_of(session: SparkSession, write: MirrorWrite) -> DataFrame | None:
    """The snapshot's rows under the mirror's own names; None without one."""
    frames = [
        _read(session, part, ()).select(_columns(part, write.schema, write.schema.names))
        for part in write.snapshot
        if part.files
    ]
    return reduce(lambda one, other: one.union(other), frames) if frames else None


def empty_rows(session: SparkSession, schema: pa.Schema) -> DataFrame:
    from pyspark.sql.types import StructType

    return session.createDataFrame([], StructType(_fields(schema)))


def _empty(session: SparkSession, write: MirrorWrite, marks: Sequence[str]) -> DataFrame:
    spelled = zip(changelog_names(write.schema.names), write.schema.types, strict=True)
    return empty_rows(session, pa.schema([*(MARKS.field(mark) for mark in marks), *spelled]))


def _read(session: SparkSession, part: Part, marks: Sequence[str]) -> DataFrame:
    from pyspark.sql.types import BooleanType, StructField, StructType

    columns = [(one.source, one.type) for one in part.columns if one.source is not None]
    fields = _fields(pa.schema([*(MARKS.field(m) for m in marks if m in MARKS.names), *columns]))
    fields += [StructField(m, BooleanType()) for m in marks if m not in MARKS.names]
    schema = StructType(fields)
    if not part.files:
        return session.createDataFrame([], schema)
    reader = session.read.schema(schema).option("recursiveFileLookup", "true")
    return reader.parquet(*part.files)


def _fields(schema: pa.Schema) -> list[StructField]:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField

    return [
        StructField(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
        for field in schema
    ]


def _columns(part: Part, schema: pa.Schema, names: Sequence[str]) -> list[Column]:
    return [
        column_from(column, field.type).alias(name)
        for column, field, name in zip(part.columns, schema, names, strict=True)
    ]


def column_from(column: PartColumn, kind: pa.DataType) -> Column:
    """The expression of a `PartColumn` in a frame that has its source."""
    from pyspark.sql import functions as f

    if column.source is None:
        value = pa.scalar(None, kind) if column.value is None else column.value
        return f.expr(literal(value)).cast(sql_type(kind))
    found = f.col(quoted(column.source))
    return found if column.type == kind else found.cast(sql_type(kind))
