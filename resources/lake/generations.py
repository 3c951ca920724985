"""The generations of a changelog that are in a lake, and reading them as one relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.changes.generations import SharedColumn, gathered, in_order
from pipeline.changes.layout import changelog_path
from pipeline.table import TableName
from resources.lake.columns import mirror_schema
from resources.lake.delta_log import newest_version
from resources.lake.frame import shared, together
from resources.lake.paths import LakePath
from resources.lake.storage import delta_table, lake_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class PublishedGeneration:
    """A generation with a Delta table: its number, absolute folder, columns and version."""

    number: int
    path: LakePath
    schema: pa.Schema
    delta_version: int


def published_generations(
    lake: LakePath, source: str, table: TableName, newest: int
) -> tuple[PublishedGeneration, ...]:
    """Those up to `newest` that have rows, oldest first."""
    found = []
    for number in range(1, newest + 1):
        path = lake / changelog_path(source, table, number)
        version = newest_version(path)
        if version is not None:
            schema = mirror_schema(path, version)
            found.append(PublishedGeneration(number, path, schema, version))
    return tuple(found)


def read_generations(
    generations: Sequence[PublishedGeneration], columns: Sequence[SharedColumn]
) -> pa.Table:
    """All changes in the order of `_sequence`, under `columns`, which have a source for each
    of `generations`."""
    if not generations:
        return pa.schema([(column.name, column.type) for column in columns]).empty_table()
    return in_order(gathered([_read(generation) for generation in generations], columns))


def _read(generation: PublishedGeneration) -> pa.Table:
    with lake_errors(generation.path):
        table = delta_table(generation.path, generation.delta_version)
        return table.to_pyarrow_table(columns=generation.schema.names).cast(generation.schema)


def generations_frame(
    session: SparkSession,
    generations: Sequence[PublishedGeneration],
    columns: Sequence[SharedColumn],
) -> DataFrame:
    """The same as a DataFrame of a session that knows Delta, in no particular order."""
    frames: list[DataFrame] = []
    for number, generation in enumerate(generations):
        reader = session.read.format("delta").option("versionAsOf", generation.delta_version)
        frames.append(shared(reader.load(str(generation.path)), columns, number))
    return together(frames)
