"""The rows that a write leaves of itself, and those that replace a mirror's.

Belongs here: Spark's frames of whole rows. Does not: committing them (`writing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.changes.layout import DELETED_AT, changelog_names
from pipeline.changes.widening import TypeChange, type_change
from pipeline.ports.mirror_writes import Merge, MirrorTarget, Replace, StagedFiles
from pipeline.schema.column_names import folded
from resources.lake.columns import mirror_schema
from resources.lake.counting import net_changes, with_changes
from resources.lake.delta_log import newest_version
from resources.lake.looking_up import looked_up
from resources.lake.parts import (
    changes_of,
    empty_rows,
    images_of,
    keep_marks,
    mirror_frame,
    rows_of,
)
from resources.lake.paths import LakePath
from resources.lake.staging import Staging
from resources.lake.statement import COMPLETE, literal, quoted, sql_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_MOMENT = DELETED_AT.type

_THERE = "_derived"
"""The mirror's row; named like a mark, so that no column is called so."""


def present_rows(changes: DataFrame, target: MirrorTarget) -> DataFrame:
    """The rows that folded changes or inserts leave of themselves."""
    from pyspark.sql import functions as f

    names = target.schema.names
    gone = f.col("_change_type") == "delete"
    if not target.soft:
        return named_rows(changes.where(~gone), names)
    moment = f.when(gone, f.col("_committed_at")) if "_committed_at" in changes.columns else None
    mark = f.lit(None) if moment is None else moment
    return named_rows(changes, names, mark.cast("timestamp").alias(DELETED_AT.name))


def named_rows(changes: DataFrame, names: list[str], *more: Column) -> DataFrame:
    pairs = zip(names, changelog_names(names), strict=True)
    return changes.select(*(column(spelled).alias(name) for name, spelled in pairs), *more)


def merged(mirror: DataFrame, changes: DataFrame, write: Merge) -> DataFrame:
    """The mirror's rows behind the changes of a write, as `statement.merge_statement` says it, by a
    join: for columns that Delta's MERGE takes for its own."""
    from pyspark.sql import functions as f

    target = write.target
    names = target.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    mark = [DELETED_AT.name] if target.soft else []
    fields = [column(name).alias(f"c{at}") for at, name in enumerate((*names, *mark))]
    there = mirror.select(f.struct(*fields).alias(_THERE))
    row = f.col(_THERE)
    own = {name: row.getField(f"c{at}") for at, name in enumerate((*names, *mark))}
    condition = f.lit(True)
    for name in write.key:
        condition &= column(spelled[name]) == own[name]
    kind = f.col("_change_type")
    gone, completes = kind == "delete", kind == COMPLETE
    stays = kind.isNull() | (~(completes & row.isNull()) & (f.lit(target.soft) | ~gone))
    keeps = keep_marks(target.schema, write.changes)
    columns = []
    for name in names:
        kept = kind.isNull()
        if name not in write.completed:
            kept |= completes
        if name in keeps:
            kept |= row.isNotNull() & f.col(keeps[name])
        value = f.when(kept, own[name]).otherwise(column(spelled[name]))
        columns.append(value.alias(name))
    for name in mark:
        moment = f.when(gone, f.col("_committed_at"))
        kept = f.when(kind.isNull() | completes, own[name]).otherwise(moment)
        columns.append(kept.alias(name))
    return changes.join(there, condition, "full_outer").where(stays).select(*columns)


@contextmanager
def replaced(
    session: SparkSession, write: Replace, before: LakePath | None, staging: Staging
) -> Iterator[DataFrame]:
    """The snapshot's rows, changed, as long as the context lasts; `before`: the mirror's path
    where there is one."""
    target = write.target
    snapshot = rows_of(session, write.snapshot, target.schema)
    if not write.changes.files:
        rows = empty_rows(session, target.schema) if snapshot is None else snapshot
        yield _with_gone(session, write, before, _with_mark(rows, target))
        return
    changes = changes_of(session, write)
    with looked_up(session, changes, write, snapshot, staging) as whole:
        rows = present_rows(whole, target)
        if snapshot is not None:
            touched = named_rows(changes, target.schema.names).select(*map(column, write.key))
            kept = _without(snapshot, touched, write.key)
            rows = _with_mark(kept, target).unionByName(rows)
        yield _with_gone(session, write, before, rows)


def _with_gone(
    session: SparkSession, write: Replace, before: LakePath | None, rows: DataFrame
) -> DataFrame:
    if not write.target.soft:
        return rows
    there = None if before is None else _left(session, write, before)
    gone = _with_taken(session, write, there)
    return rows if gone is None else rows.unionByName(_without(gone, rows, write.key))


def _with_taken(session: SparkSession, write: Replace, left: DataFrame | None) -> DataFrame | None:
    """The mirror's rows, with what images say of those that went since; None for none."""
    from pyspark.sql import functions as f

    if not write.gone.files:
        return left
    names = write.target.schema.names
    taken = changes_of(session, write, write.gone)
    if left is None:
        return present_rows(taken, write.target)
    keeps = keep_marks(write.target.schema, write.gone)
    spelled = dict(zip(names, changelog_names(names), strict=True))
    if keeps:
        fields = [column(name).alias(f"c{at}") for at, name in enumerate(names)]
        there = left.select(f.struct(*fields).alias(_THERE))
        own = {name: f.col(_THERE).getField(f"c{at}") for at, name in enumerate(names)}
        condition = f.lit(True)
        for name in write.key:
            condition &= column(spelled[name]) == own[name]
        taken = taken.join(there, condition, "left")
        for name, mark in keeps.items():
            value = f.when(f.col(mark), own[name]).otherwise(column(spelled[name]))
            taken = taken.withColumn(spelled[name], value)
    rows = present_rows(taken, write.target)
    return _without(left, rows, write.key).unionByName(rows)


def recounted(
    session: SparkSession,
    schema: pa.Schema,
    parts: Sequence[StagedFiles],
    snapshot: Sequence[StagedFiles],
) -> DataFrame:
    """The snapshot's rows, each as often as it is there and the row images leave it."""
    names = schema.names
    columns = changelog_names(names)
    there = rows_of(session, snapshot, schema)
    if not parts:
        return empty_rows(session, schema) if there is None else there
    if there is not None:
        pairs = zip(names, columns, strict=True)
        there = there.select(*(column(name).alias(spelled) for name, spelled in pairs))
    net = net_changes(images_of(session, parts, schema), columns)
    return named_rows(with_changes(there, net, columns), names)


def _with_mark(rows: DataFrame, target: MirrorTarget) -> DataFrame:
    from pyspark.sql import functions as f

    if not target.soft:
        return rows
    return rows.withColumn(DELETED_AT.name, f.lit(None).cast("timestamp"))


def _left(session: SparkSession, write: Replace, path: LakePath) -> DataFrame:
    """The mirror's rows, marked as deleted; none where they lack the key."""
    from pyspark.sql import functions as f

    mirror = mirror_frame(session, path)
    schema = write.target.schema
    stays = _staying(path, schema)
    if not stays >= {*write.key}:
        return _with_mark(empty_rows(session, schema), write.target)
    columns = [
        (column(field.name) if field.name in stays else f.lit(None))
        .cast(sql_type(field.type))
        .alias(field.name)
        for field in schema
    ]
    marked = f.col(DELETED_AT.name) if DELETED_AT.name in mirror.columns else f.lit(None)
    told = write.moment
    moment = f.current_timestamp() if told is None else f.expr(literal(pa.scalar(told, _MOMENT)))
    mark = f.coalesce(marked.cast("timestamp"), moment).alias(DELETED_AT.name)
    return mirror.select(*columns, mark)


def _staying(path: LakePath, schema: pa.Schema) -> set[str]:
    """The write's columns that can hold what the mirror has under their names."""
    version = newest_version(path)
    assert version is not None, "there is a mirror"
    have = {folded(field.name): field.type for field in mirror_schema(path, version)}
    return {
        field.name
        for field in schema
        if folded(field.name) in have
        and type_change(have[folded(field.name)], field.type) is not TypeChange.REREAD
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
