"""A changelog (all changes of a table) read as one table: either the files of a
delivery (batches that a consumer reads together), or all generations (the Delta tables
of which it consists).

For a delivery, Spark is given the files, which `pipeline.mirror.delivered` chooses, and
their columns. So Spark need not list folders or infer columns, takes no folder's name
for a partition, and needs no Delta extension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable

from lockstep.pipeline.mirror.delivered import LOST_FILE_CURE, DeliveredPart, DeliveredTable
from lockstep.pipeline.mirror.generations import SharedColumn, one_table, sorted_by_sequence
from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import LakeUnavailable, SegmentsLost
from lockstep.pipeline.values.table import TableName
from lockstep.resources.lake.delta.columns import mirror_schema
from lockstep.resources.lake.delta.delta_log import newest_version
from lockstep.resources.lake.delta.statement import quoted
from lockstep.resources.lake.delta.versions import AGE_LIMIT_SETTING
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table, file_paths, lake_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def changes_frame(session: SparkSession, lake: LakePath, table: DeliveredTable) -> DataFrame:
    """Return the row images of a delivery in no particular order. A column that a file
    lacks is NULL. Files whose columns have the names and types of `table.columns` are
    read together.
    """
    alike_parts: list[DeliveredPart] = []
    frames: list[DataFrame] = []
    for index, part in enumerate(table.parts):
        if _is_alike(table, index):
            alike_parts.append(part)
        else:
            rows = _read_parts(session, lake, [part], part.schema)
            frames.append(with_shared_columns(rows, table.columns, index))
    if alike_parts or not frames:
        frames.insert(0, _read_parts(session, lake, alike_parts, table.schema))
    return union_of(frames)


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of frames with the same columns; there is at least one frame."""
    return reduce(lambda rows, more: rows.unionByName(more), frames)


def _is_alike(table: DeliveredTable, index: int) -> bool:
    """Return whether all columns of a part have the table's names and types."""
    schema = table.parts[index].schema
    pairs = [(column, column.sources[index]) for column in table.columns]
    return all(
        source is None or (source == column.name and schema.field(source).type == column.type)
        for column, source in pairs
    )


def with_shared_columns(rows: DataFrame, columns: Sequence[SharedColumn], index: int) -> DataFrame:
    """Return the rows of the part or generation with this index under the shared
    columns. A column that it lacks is NULL."""
    from pyspark.sql import functions as f

    selected = []
    for column in columns:
        source = column.sources[index]
        value = f.lit(None) if source is None else f.col(quoted(source))
        selected.append(value.cast(sql_type(column.type)).alias(column.name))
    return rows.select(*selected)


def _read_parts(
    session: SparkSession, lake: LakePath, parts: list[DeliveredPart], schema: pa.Schema
) -> DataFrame:
    paths = [str(lake / part.folder / file.path) for part in parts for file in part.files]
    return read_files(session, paths, schema)


def read_files(session: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Return the rows of Parquet files with these columns."""
    if not files:
        return empty_rows(session, schema)
    reader = session.read.schema(spark_schema(schema))
    return reader.option("recursiveFileLookup", "true").parquet(*files)


def empty_rows(session: SparkSession, schema: pa.Schema) -> DataFrame:
    """Return a DataFrame with these columns and no rows."""
    from pyspark.sql import functions as f

    # `createDataFrame([])` would make Spark start a Python process. The types are given by
    # name: over Spark Connect, `cast(StringType())` becomes `string collate UTF8_BINARY`,
    # a type that delta-rs cannot read in a Delta table.
    columns = [f.lit(None).cast(sql_type(field.type)).alias(field.name) for field in schema]
    return session.range(0).select(*columns)


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the same columns with Spark's types; a timestamp without zone becomes
    TIMESTAMP_NTZ."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    types = (from_arrow_type(field.type, prefer_timestamp_ntz=True) for field in schema)
    return StructType([*map(StructField, schema.names, types)])


@dataclass(frozen=True, slots=True)
class PublishedGeneration:
    """A generation of a changelog whose Delta table exists: its number, the folder's
    absolute path, its columns, and the Delta version to read."""

    number: int
    path: LakePath
    schema: pa.Schema
    delta_version: int


def published_generations(
    lake: LakePath, source: str, table: TableName, newest_number: int
) -> tuple[PublishedGeneration, ...]:
    """Return the generations up to the number `newest_number` whose Delta table exists,
    oldest first."""
    generations = []
    for number in range(1, newest_number + 1):
        path = lake / changelog_path(source, table, number)
        version = newest_version(path)
        if version is not None:
            schema = mirror_schema(path, version)
            generations.append(PublishedGeneration(number, path, schema, version))
    return tuple(generations)


def read_generations(
    generations: Sequence[PublishedGeneration], columns: Sequence[SharedColumn]
) -> pa.Table:
    """Return all changes in the order of `_sequence`. `columns`: the shared columns of
    these generations, in the same order (`mirror.generations.shared_columns`)."""
    if not generations:
        return pa.schema([(column.name, column.type) for column in columns]).empty_table()
    return sorted_by_sequence(
        one_table([_published_rows(generation) for generation in generations], columns)
    )


def _published_rows(generation: PublishedGeneration) -> pa.Table:
    with lake_errors(generation.path):
        table = delta_table(generation.path, generation.delta_version)
    try:
        with lake_errors(generation.path):
            return table.to_pyarrow_table(columns=generation.schema.names).cast(generation.schema)
    except LakeUnavailable as error:
        missing = _missing_file(table, generation.path)
        if missing is None:
            raise
        raise SegmentsLost(f"{missing} is missing", hint=LOST_FILE_CURE) from error


def _missing_file(table: DeltaTable, path: LakePath) -> LakePath | None:
    """Return a file that a changelog lists and that is missing; None if there is none."""
    with lake_errors(path):
        files = (path / name for name in file_paths(table))
        return next((file for file in files if not file.is_file()), None)


def generations_frame(
    session: SparkSession,
    generations: Sequence[PublishedGeneration],
    columns: Sequence[SharedColumn],
) -> DataFrame:
    """Return all changes as a DataFrame, in no particular order; the session must have
    Delta. `AGE_LIMIT_SETTING` is switched off for the whole session, as in
    `versions.version_frame`."""
    session.conf.set(AGE_LIMIT_SETTING, "false")
    frames: list[DataFrame] = []
    for index, generation in enumerate(generations):
        reader = session.read.format("delta").option("versionAsOf", generation.delta_version)
        frames.append(with_shared_columns(reader.load(str(generation.path)), columns, index))
    return union_of(frames)
