"""A changelog's files as a Spark DataFrame, in whatever session a reader has.

Spark is given the files and their columns, so nothing is listed, inferred or taken for a
partition, and no Delta extension is needed. Which files is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline.changes.delivered import DeliveredPart, DeliveredTable
from resources.lake.paths import LakePath
from resources.lake.statement import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


def changes_frame(session: SparkSession, lake: LakePath, table: DeliveredTable) -> DataFrame:
    """The row images of the files in no particular order; NULL where a file lacks a column.

    Files whose columns are the table's, or some of them, are read together.
    """
    plain: list[DeliveredPart] = []
    frames: list[DataFrame] = []
    for number, part in enumerate(table.parts):
        if _fits(table, number):
            plain.append(part)
        else:
            frames.append(_converted(session, lake, table, number))
    if plain or not frames:
        frames.insert(0, _read(session, lake, plain, table.schema))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def _fits(table: DeliveredTable, number: int) -> bool:
    """Whether the part has no column under another name or type than the table."""
    schema = table.parts[number].schema
    return all(
        source is None or (source == column.name and schema.field(source).type == column.type)
        for column in table.columns
        for source in [column.sources[number]]
    )


def _converted(
    session: SparkSession, lake: LakePath, table: DeliveredTable, number: int
) -> DataFrame:
    from pyspark.sql import functions as f

    part = table.parts[number]
    frame = _read(session, lake, [part], part.schema)
    columns: list[Any] = []
    for column in table.columns:
        source = column.sources[number]
        value = f.lit(None) if source is None else f.col(quoted(source))
        columns.append(value.cast(spark_type(column.type)).alias(column.name))
    return frame.select(*columns)


def _read(
    session: SparkSession, lake: LakePath, parts: list[DeliveredPart], schema: pa.Schema
) -> DataFrame:
    kind = _struct(schema)
    paths = [str(lake / part.folder / file.path) for part in parts for file in part.files]
    if not paths:
        return session.createDataFrame([], kind)
    return session.read.schema(kind).option("recursiveFileLookup", "true").parquet(*paths)


def _struct(schema: pa.Schema) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, spark_type(field.type)) for field in schema])


def spark_type(kind: pa.DataType) -> DataType:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind, prefer_timestamp_ntz=True)
