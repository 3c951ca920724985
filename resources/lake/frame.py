"""A changelog's files as a Spark DataFrame, in whatever session a reader has.

Spark is given the files and their columns, so nothing is listed, inferred or taken for a
partition, and no Delta extension is needed. Which files is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def changes_frame(session: SparkSession, paths: Sequence[Path], schema: pa.Schema) -> DataFrame:
    """The files' row images in no particular order; NULL where a file lacks a column."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = [
        StructField(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
        for field in schema
    ]
    if not paths:
        return session.createDataFrame([], StructType(fields))
    reader = session.read.schema(StructType(fields)).option("recursiveFileLookup", "true")
    return reader.parquet(*(str(path) for path in paths))
