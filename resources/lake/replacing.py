"""The rows that a write leaves of itself, and those that replace a mirror's.

Belongs here: Spark's frames of whole rows. Does not: committing them (`writing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.changes.layout import DELETED_AT, changelog_names
from pipeline.changes.widening import TypeChange, type_change
from pipeline.ports.mirror_writes import MirrorWrite
from resources.lake.counting import net_changes, with_changes
from resources.lake.delta_log import newest_version
from resources.lake.folding import folded
from resources.lake.looking_up import looked_up
from resources.lake.parts import (
    empty_rows,
    merged_changes,
    refuse_partial,
    snapshot_of,
    whole_parts,
)
from resources.lake.scan import mirror_schema
from resources.lake.statement import literal, quoted, sql_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_MOMENT = DELETED_AT.type


def present_rows(changes: DataFrame, write: MirrorWrite) -> DataFrame:
    """The rows that folded changes or inserts leave of themselves."""
    from pyspark.sql import functions as f

    gone = f.col("_change_type") == "delete"
    if write.deletes != "soft":
        return named_rows(changes.where(~gone), write)
    moment = f.when(gone, f.col("_committed_at")) if "_committed_at" in changes.columns else None
    mark = f.lit(None) if moment is None else moment
    return named_rows(changes, write, mark.cast("timestamp").alias(DELETED_AT.name))


def named_rows(changes: DataFrame, write: MirrorWrite, *more: Column) -> DataFrame:
    names = write.schema.names
    pairs = zip(names, changelog_names(names), strict=True)
    return changes.select(*(column(spelled).alias(name) for name, spelled in pairs), *more)


@contextmanager
def replaced(
    session: SparkSession, write: MirrorWrite, before: str | None, staging: Path
) -> Iterator[DataFrame]:
    """The snapshot's rows, changed, as long as the context lasts; `before`: the mirror's path
    where there is one."""
    snapshot = snapshot_of(session, write)
    changed = any(part.files for part in whole_parts(write))
    if not write.key:
        refuse_partial(write)
        yield _recounted(session, write, snapshot, changed)
    elif not changed:
        rows = empty_rows(session, write.schema) if snapshot is None else snapshot
        yield _with_gone(session, write, before, _with_mark(rows, write))
    else:
        folds = merged_changes if write.folded else folded
        changes = folds(session, write)
        with looked_up(session, changes, write, snapshot, staging) as whole:
            rows = present_rows(whole, write)
            if snapshot is not None:
                touched = named_rows(changes, write).select(*map(column, write.key))
                kept = _without(snapshot, touched, write.key)
                rows = _with_mark(kept, write).unionByName(rows)
            yield _with_gone(session, write, before, rows)


def _with_gone(
    session: SparkSession, write: MirrorWrite, before: str | None, rows: DataFrame
) -> DataFrame:
    if write.deletes != "soft" or before is None:
        return rows
    return rows.unionByName(_gone(session, write, before, rows))


def _recounted(
    session: SparkSession, write: MirrorWrite, snapshot: DataFrame | None, changed: bool
) -> DataFrame:
    names = write.schema.names
    columns = changelog_names(names)
    if not changed:
        return empty_rows(session, write.schema) if snapshot is None else snapshot
    there = None
    if snapshot is not None:
        pairs = zip(names, columns, strict=True)
        there = snapshot.select(*(column(name).alias(spelled) for name, spelled in pairs))
    return named_rows(with_changes(there, net_changes(session, write), columns), write)


def _with_mark(rows: DataFrame, write: MirrorWrite) -> DataFrame:
    from pyspark.sql import functions as f

    if write.deletes != "soft":
        return rows
    return rows.withColumn(DELETED_AT.name, f.lit(None).cast("timestamp"))


def _gone(session: SparkSession, write: MirrorWrite, path: str, rows: DataFrame) -> DataFrame:
    """Rows of the mirror whose key is not among `rows`, marked as deleted; none where they
    have no such key."""
    from pyspark.sql import functions as f

    mirror = session.read.format("delta").load(path)
    stays = _staying(path, write)
    if not stays >= {*write.key}:
        return _with_mark(empty_rows(session, write.schema), write)
    columns = [
        (column(field.name) if field.name in stays else f.lit(None))
        .cast(sql_type(field.type))
        .alias(field.name)
        for field in write.schema
    ]
    marked = f.col(DELETED_AT.name) if DELETED_AT.name in mirror.columns else f.lit(None)
    told = write.moment
    moment = f.current_timestamp() if told is None else f.expr(literal(pa.scalar(told, _MOMENT)))
    mark = f.coalesce(marked.cast("timestamp"), moment).alias(DELETED_AT.name)
    return _without(mirror.select(*columns, mark), rows, write.key)


def _staying(path: str, write: MirrorWrite) -> set[str]:
    """The write's columns that can hold what the mirror has under their names."""
    version = newest_version(Path(path))
    assert version is not None, "there is a mirror"
    have = {one.name.lower(): one.type for one in mirror_schema(Path(path), version)}
    return {
        one.name
        for one in write.schema
        if one.name.lower() in have
        and type_change(have[one.name.lower()], one.type) is not TypeChange.REREAD
    }


def _without(rows: DataFrame, others: DataFrame, key: tuple[str, ...]) -> DataFrame:
    from pyspark.sql import functions as f

    condition = f.lit(True)
    for name in key:
        condition &= f.col(f"r.{quoted(name)}") == f.col(f"o.{quoted(name)}")
    return rows.alias("r").join(others.alias("o"), condition, "left_anti")


def column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))
