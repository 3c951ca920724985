"""A write's files as Spark reads them, by schemas made here, with nothing inferred; and what folded
changes lack of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.changes.coalescing import HINT, LOST
from pipeline.changes.layout import (
    DELETED_AT,
    MARKS,
    changelog_names,
    keep_names,
    lack_names,
    origin_names,
)
from pipeline.changes.mapping import KEPT
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import (
    FoldedChanges,
    Merge,
    MirrorRows,
    PartColumn,
    Replace,
    Snapshot,
    StagedFiles,
)
from pipeline.row_images import CHANGE_TYPES
from pipeline.schema.types import sql_type
from resources.lake.columns import column_names
from resources.lake.frame import spark_schema
from resources.lake.paths import LakePath
from resources.lake.staging import Staging
from resources.lake.statement import COMPLETE, literal, quoted
from resources.lake.storage import delta_table, file_named
from resources.lake.versions import BY_AGE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


Names = Callable[[list[str]], list[str]]


def _named(schema: pa.Schema, names: Names, columns: Iterable[str]) -> dict[str, str]:
    every = dict(zip(schema.names, names(schema.names), strict=True))
    return {column: every[column] for column in columns}


def keep_marks(schema: pa.Schema, changes: FoldedChanges) -> dict[str, str]:
    """Columns whose value in the mirror may stay → the mark that says so."""
    return _named(schema, keep_names, changes.kept)


def _lack_marks(schema: pa.Schema, changes: FoldedChanges) -> dict[str, str]:
    """Columns whose value may have to be looked up → the mark that says so."""
    return _named(schema, lack_names, changes.lacking)


def _origins(write: Merge | Replace, changes: FoldedChanges) -> dict[str, str]:
    """Columns of the key → the column that has it of the row to look values up in; none
    where none is looked up."""
    return _named(write.target.schema, origin_names, write.key if changes.lacking else ())


def changes_of(
    session: SparkSession, write: Merge | Replace, changes: FoldedChanges | None = None
) -> DataFrame:
    """Folded changes, those of the write unless told: marks, the mirror's columns as a changelog
    spells them, and what the fold says of them."""
    schema, changes = write.target.schema, changes or write.changes
    marks = ["_change_type"]
    marks += ["_committed_at"] if write.target.soft else []
    marks += ["_sequence"] if isinstance(write, Merge) and write.completion is not None else []
    told = [
        pa.field(mark, pa.bool_())
        for mark in (*keep_marks(schema, changes).values(), *_lack_marks(schema, changes).values())
    ]
    told += [schema.field(name).with_name(mark) for name, mark in _origins(write, changes).items()]
    return read_files(
        session, changes.files, pa.schema([*map(MARKS.field, marks), *_spelled(schema), *told])
    )


def images_of(session: SparkSession, parts: Sequence[StagedFiles], schema: pa.Schema) -> DataFrame:
    """The row images of all parts: `_change_type`, and the mirror's columns as a changelog spells
    them."""
    from pyspark.sql import functions as f

    names = changelog_names(schema.names)
    frames = []
    for part in parts:
        numbered = part.above or part.through is not None
        marks = ["_change_type", *(["_sequence"] if numbered else [])]
        frame = _read_part(session, part, [MARKS.field(mark) for mark in marks])
        if part.above:
            frame = frame.where(f.col("_sequence") > part.above)
        if part.through is not None:
            frame = frame.where(f.col("_sequence") <= part.through)
        images = frame.where(f.col("_change_type").isin([kind.value for kind in CHANGE_TYPES]))
        frames.append(images.select(f.col("_change_type"), *_columns(part, schema, names)))
    none = pa.schema([MARKS.field("_change_type"), *_spelled(schema)])
    return reduce(lambda one, other: one.union(other), frames or [empty_rows(session, none)])


def rows_of(session: SparkSession, parts: Snapshot, schema: pa.Schema, lake: LakePath) -> DataFrame:
    """The rows of a snapshot or of a completion under the mirror's own names, NULL where they do
    not know a column. `lake`: any place of the lake that the parts are in."""
    frames = []
    for part in parts:
        if isinstance(part, MirrorRows):
            rows = mirror_frame(session, file_named(lake, part.path), part.version)
            if DELETED_AT.name in rows.columns and not _reads(part, DELETED_AT.name):
                rows = rows.where(column(DELETED_AT.name).isNull())
        elif part.files:
            rows = _read_part(session, part, ())
        else:
            continue
        frames.append(rows.select(_columns(part, schema, schema.names)))
    return reduce(lambda one, other: one.union(other), frames or [empty_rows(session, schema)])


def _reads(part: MirrorRows, name: str) -> bool:
    """Whether a column of that name is one of the table's own."""
    return any(column.source == name for column in part.columns)


def empty_rows(session: SparkSession, schema: pa.Schema) -> DataFrame:
    from pyspark.sql import functions as f

    # Of a list, however empty, Spark makes rows in a Python process that it starts for them.
    columns = [f.lit(None).cast(sql_type(field.type)).alias(field.name) for field in schema]
    return session.range(0).select(*columns)


def _spelled(schema: pa.Schema) -> list[pa.Field]:
    """The mirror's columns as a changelog spells them."""
    names = changelog_names(schema.names)
    return [field.with_name(name) for field, name in zip(schema, names, strict=True)]


def _read_part(session: SparkSession, part: StagedFiles, more: Sequence[pa.Field]) -> DataFrame:
    columns = {field.name: field.type for field in more}
    columns |= {one.source: one.type for one in part.columns if one.source is not None}
    return read_files(session, part.files, pa.schema(columns))


def read_files(session: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    """The rows of Parquet files that have these columns."""
    if not files:
        return empty_rows(session, schema)
    reader = session.read.schema(spark_schema(schema))
    return reader.option("recursiveFileLookup", "true").parquet(*files)


def mirror_frame(session: SparkSession, path: LakePath, version: int | None = None) -> DataFrame:
    """A mirror's rows, with the names that the source has for its columns; `version`: None for the
    newest."""
    reader = session.read.format("delta")
    if version is not None:
        session.conf.set(BY_AGE, "false")
        reader = reader.option("versionAsOf", version)
    own = column_names(delta_table(path, version))
    rows = reader.load(str(path))
    return rows.select(*(column(there).alias(name) for name, there in own.items()))


def _columns(
    part: StagedFiles | MirrorRows, schema: pa.Schema, names: Sequence[str]
) -> list[Column]:
    return [
        column_from(column, field.type).alias(name)
        for column, field, name in zip(part.columns, schema, names, strict=True)
    ]


def column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))


_BOX = "_derived"
"""Named like a mark, so that no column is called so."""


def boxed(rows: DataFrame, names: Sequence[str]) -> tuple[DataFrame, Column, dict[str, Column]]:
    """Rows as one column of structs, so that a join gives no name twice; that column, which is NULL
    where the join found no row, and by their names the columns in it."""
    from pyspark.sql import functions as f

    fields = [column(name).alias(f"c{at}") for at, name in enumerate(names)]
    row = f.col(_BOX)
    columns = {name: row.getField(f"c{at}") for at, name in enumerate(names)}
    return rows.select(f.struct(*fields).alias(_BOX)), row, columns


def column_from(part_column: PartColumn, kind: pa.DataType) -> Column:
    """The expression of a `PartColumn` in a frame that has its source."""
    from pyspark.sql import functions as f

    if part_column.source is None:
        value = pa.scalar(None, kind) if part_column.value is None else part_column.value
        return f.expr(literal(value)).cast(sql_type(kind))
    found = column(part_column.source)
    return found if part_column.type == kind else found.cast(sql_type(kind))


def completed(
    session: SparkSession, changes: DataFrame, write: Merge, part: StagedFiles
) -> DataFrame:
    """Folded changes, which have `_sequence`, with what was read in the columns that they do
    not speak of; and a row of `_change_type` COMPLETE for each key that has no change."""
    from pyspark.sql import functions as f

    schema = write.target.schema
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    told = write.completed
    frame = _read_part(session, part, ()).select(_columns(part, schema, schema.names))
    read, row, place = boxed(frame, (*write.key, *told))
    condition = f.lit(True)
    values = {"_change_type": f.coalesce(f.col("_change_type"), f.lit(COMPLETE))}
    for name in write.key:
        own = column(spelled[name])
        condition &= own == place[name]
        values[spelled[name]] = f.coalesce(own, place[name])
    number = f.col("_sequence")
    taken = row.isNotNull() & (number.isNull() | (number <= part.above))
    for name in told:
        own = column(spelled[name])
        values[spelled[name]] = f.when(taken, place[name]).otherwise(own)
    return changes.join(read, condition, "full_outer").select(
        *(
            values.get(name, column(name)).alias(name)
            for name in changes.columns
            if name != "_sequence"
        )
    )


@contextmanager
def looked_up(
    session: SparkSession,
    changes: DataFrame,
    write: Merge | Replace,
    rows: DataFrame,
    staging: Staging,
) -> Iterator[DataFrame]:
    """Folded changes with every value there; they last as long as the context. `rows`: the
    mirror's columns under their own names.

    `TableError` for a change whose row is not there: no value is ever made up. What a delete
    leaves out of a row that is not in a snapshot is not asked for.
    """
    if not write.changes.lacking:
        yield changes
        return
    with staging.folder() as folder:
        joined = _joined(changes, write, rows)
        joined.write.mode("overwrite").option("compression", "snappy").parquet(folder)
        found = session.read.schema(joined.schema).parquet(folder)
        lost = found.where(f"not {_BOX}")
        if isinstance(write, Replace):
            lost = lost.where(f"_change_type not in ('delete', '{KEPT}')")
            found = found.where(_BOX)
        if lost.limit(1).count():
            raise TableError(LOST, hint=HINT)
        yield found.drop(_BOX)


def _joined(changes: DataFrame, write: Merge | Replace, rows: DataFrame) -> DataFrame:
    """The changes with what they lack, without marks and origins; and in `_BOX` whether the row of
    each is there."""
    from pyspark.sql import functions as f

    schema = write.target.schema
    lacks, keys = _lack_marks(schema, write.changes), _origins(write, write.changes)
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    there, _, place = boxed(rows, (*keys, *lacks))
    asks = f.lit(False)
    for mark in lacks.values():
        asks |= f.col(mark)
    condition = asks
    for name, origin in keys.items():
        condition &= f.col(origin) == place[name]
    taken = {spelled[name]: (f.col(mark), place[name]) for name, mark in lacks.items()}
    columns = []
    for name in changes.columns:
        if name in taken:
            lacked, value = taken[name]
            columns.append(f.when(lacked, value).otherwise(column(name)).alias(name))
        elif name not in (*lacks.values(), *keys.values()):
            columns.append(column(name))
    found = ~asks | place[write.key[0]].isNotNull()
    return changes.join(there, condition, "left").select(*columns, found.alias(_BOX))
