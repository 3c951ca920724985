"""A write's files as Spark reads them: by schemas made here, nothing inferred.

Belongs here: renaming and casting files of other structures to the mirror's columns. What
becomes of the rows is `writing`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.changes.coalescing import HINT, OTHER_KEY, lacking_columns
from pipeline.changes.layout import (
    MARKS,
    changelog_names,
    keep_names,
    lack_names,
    origin_names,
)
from pipeline.changes.mapping import kept_columns
from pipeline.errors import TableError
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


def is_folded(write: MirrorWrite) -> bool:
    """Whether its files have one image per key, and what a fold says of it."""
    return write.mode == "merge" or write.folded


def lack_marks(write: MirrorWrite) -> dict[str, str]:
    """Columns whose value may have to be looked up → the mark that says so."""
    known = write.lacking if is_folded(write) else lacking_columns(write.parts, write.schema)
    marks = dict(zip(write.schema.names, lack_names(write.schema.names), strict=True))
    return {name: marks[name] for name in known}


def refuse_partial(write: MirrorWrite) -> None:
    """`TableError` for images that leave columns out, in a table without a key."""
    if lack_marks(write):
        raise TableError(OTHER_KEY, hint=HINT)


def origins(write: MirrorWrite) -> dict[str, str]:
    """Columns of the key → the column that has it of the row to look values up in; none
    where none is looked up."""
    if not lack_marks(write):
        return {}
    names = dict(zip(write.schema.names, origin_names(write.schema.names), strict=True))
    return {name: names[name] for name in write.key}


def changes_of(session: SparkSession, write: MirrorWrite, marks: Sequence[str]) -> DataFrame:
    """The row images of all parts: `marks`, the mirror's columns as a changelog spells them,
    and for a fold the keep marks and lack marks; of one that is done also the origins."""
    from pyspark.sql import functions as f

    keeps = {write.schema.get_field_index(n): m for n, m in keep_marks(write).items()}
    lacks = {write.schema.get_field_index(n): m for n, m in lack_marks(write).items()}
    told: list[pa.Field] = []
    if is_folded(write):
        told = [pa.field(mark, pa.bool_()) for mark in (*keeps.values(), *lacks.values())]
        told += [write.schema.field(n).with_name(m) for n, m in origins(write).items()]
    frames = []
    for part in whole_parts(write):
        needed = [MARKS.field(mark) for mark in marks] + told
        if part.above and "_sequence" not in marks:
            needed.append(MARKS.field("_sequence"))
        if part.present is not None:
            needed.append(pa.field(part.present, pa.binary()))
        frame = _read(session, part, needed)
        if part.above:
            frame = frame.where(f.col("_sequence") > part.above)
        images = frame.where(f.col("_change_type").isin([kind.value for kind in CHANGE_TYPES]))
        columns = [f.col(mark) for mark in marks]
        columns += _columns(part, write.schema, changelog_names(write.schema.names))
        if told:
            columns += [f.col(field.name) for field in told]
        elif not is_folded(write):
            columns += [f.lit(part.columns[at].absent).alias(m) for at, m in keeps.items()]
            columns += [_lacks(part, part.columns[at]).alias(m) for at, m in lacks.items()]
        frames.append(images.select(columns))
    if not frames:
        return _empty(session, write, marks)
    return reduce(lambda one, other: one.union(other), frames)


def merged_changes(session: SparkSession, write: MirrorWrite) -> DataFrame:
    """Folded changes out of its files."""
    marks = ["_committed_at"] if write.deletes == "soft" else []
    marks += ["_sequence"] if write.completion is not None else []
    return changes_of(session, write, ["_change_type", *marks])


def _lacks(part: Part, column: PartColumn) -> Column:
    """Whether an image leaves the column out."""
    from pyspark.sql import functions as f

    if part.present is None or column.bit is None:
        return f.lit(False)
    byte = f.expr(f"substring({quoted(part.present)}, {(column.bit >> 3) + 1}, 1)")
    number = f.conv(f.hex(byte), 16, 10).cast("bigint")
    there = number.bitwiseAND(f.lit(1 << (column.bit & 7))) != 0
    return f.coalesce(~there, f.lit(False))


def completion_of(session: SparkSession, part: Part, schema: pa.Schema) -> DataFrame:
    """A completion's rows under the mirror's own names, NULL where it does not know a column."""
    return _read(session, part, ()).select(_columns(part, schema, schema.names))


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


def _read(session: SparkSession, part: Part, more: Sequence[pa.Field]) -> DataFrame:
    from pyspark.sql.types import StructType

    columns = [(one.source, one.type) for one in part.columns if one.source is not None]
    schema = StructType(_fields(pa.schema([*more, *columns])))
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
