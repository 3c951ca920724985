"""What row images leave out, looked up in the rows that were there before.

Belongs here: joining folded changes with the mirror's rows, or a snapshot's, by the keys the
fold names. Does not: the fold (`pipeline.changes.coalescing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.changes.coalescing import HINT, LOST
from pipeline.changes.layout import changelog_names
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import Merge, Replace
from resources.lake.parts import empty_rows, lack_marks, origins
from resources.lake.staging import Staging
from resources.lake.statement import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOUND = "_derived"
"""Whether a row is there; named like a mark, so that no column is called so."""


@contextmanager
def looked_up(
    session: SparkSession,
    changes: DataFrame,
    write: Merge | Replace,
    rows: DataFrame | None,
    staging: Staging,
) -> Iterator[DataFrame]:
    """Folded changes with every value there; they last as long as the context. `rows`: the
    mirror's columns under their own names, None where there are none.

    `TableError` for a change whose row is not there: no value is ever made up. What a delete
    leaves out of a row that is not in a snapshot is not asked for.
    """
    if not write.changes.lacking:
        yield changes
        return
    with staging.folder() as folder:
        there = empty_rows(session, write.target.schema) if rows is None else rows
        joined = _joined(changes, write, there)
        joined.write.mode("overwrite").option("compression", "snappy").parquet(folder)
        found = session.read.schema(joined.schema).parquet(folder)
        lost = found.where(f"not {_FOUND}")
        if isinstance(write, Replace):
            lost, found = lost.where("_change_type <> 'delete'"), found.where(_FOUND)
        if lost.limit(1).count():
            raise TableError(LOST, hint=HINT)
        yield found.drop(_FOUND)


def _joined(changes: DataFrame, write: Merge | Replace, rows: DataFrame) -> DataFrame:
    """The changes with what they lack, without marks and origins, and with `_FOUND`."""
    from pyspark.sql import functions as f

    schema = write.target.schema
    lacks, keys = lack_marks(schema, write.changes), origins(write, write.changes)
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    fields = [f.col(quoted(name)).alias(f"c{at}") for at, name in enumerate((*keys, *lacks))]
    there = rows.select(f.struct(*fields).alias(_FOUND))
    place = {name: f.col(_FOUND).getField(f"c{at}") for at, name in enumerate((*keys, *lacks))}
    asks = f.lit(False)
    for mark in lacks.values():
        asks |= f.col(mark)
    condition = asks
    for name, origin in keys.items():
        condition &= f.col(origin) == place[name]
    taken = {spelled[name]: (f.col(mark), place[name]) for name, mark in lacks.items()}
    columns = []
    for column in changes.columns:
        if column in taken:
            lacked, value = taken[column]
            columns.append(f.when(lacked, value).otherwise(f.col(quoted(column))).alias(column))
        elif column not in (*lacks.values(), *keys.values()):
            columns.append(f.col(quoted(column)))
    found = ~asks | place[write.key[0]].isNotNull()
    return changes.join(there, condition, "left").select(*columns, found.alias(_FOUND))
