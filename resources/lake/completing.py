"""Columns that were read from the source by key, among the changes of a MERGE.

Belongs here: joining folded changes with those rows. Does not: what the MERGE does with them
(`statement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.changes.layout import changelog_names
from pipeline.ports.mirror_writes import Merge, StagedFiles
from resources.lake.parts import empty_rows, rows_of
from resources.lake.statement import COMPLETE, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READ = "_derived"
"""Named like a mark, so that no column is called so."""


def completed(
    session: SparkSession, changes: DataFrame, write: Merge, part: StagedFiles
) -> DataFrame:
    """Folded changes, which have `_sequence`, with what was read in the columns that they do
    not speak of; and a row of `_change_type` COMPLETE for each key that has no change."""
    from pyspark.sql import functions as f

    schema = write.target.schema
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    told = write.completed
    rows = rows_of(session, [part], schema) or empty_rows(session, schema)
    fields = [f.col(quoted(name)).alias(f"c{at}") for at, name in enumerate((*write.key, *told))]
    read = rows.select(f.struct(*fields).alias(_READ))
    place = {name: f.col(_READ).getField(f"c{at}") for at, name in enumerate((*write.key, *told))}
    condition = f.lit(True)
    values = {"_change_type": f.coalesce(f.col("_change_type"), f.lit(COMPLETE))}
    for name in write.key:
        own = f.col(quoted(spelled[name]))
        condition &= own == place[name]
        values[spelled[name]] = f.coalesce(own, place[name])
    number = f.col("_sequence")
    taken = f.col(_READ).isNotNull() & (number.isNull() | (number <= part.above))
    for name in told:
        own = f.col(quoted(spelled[name]))
        values[spelled[name]] = f.when(taken, place[name]).otherwise(own)
    return changes.join(read, condition, "full_outer").select(
        *(
            values.get(column, f.col(quoted(column))).alias(column)
            for column in changes.columns
            if column != "_sequence"
        )
    )
