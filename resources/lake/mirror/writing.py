"""Commits writes to a mirror (the Delta table with a table's present rows) by Spark
queries. Each `MirrorWrite` is one commit.

In a mirror without a key, rows are compared by all their values, and equal rows are
counted. -0.0 and 0.0 are equal in a comparison, so a MERGE removes rows with either.
They are counted separately, by their text, and the remaining rows are inserted again
bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from lockstep.pipeline.mirror.evolution import MAPPING
from lockstep.pipeline.mirror.layout import DELETED_AT, changelog_names, changelog_spelling
from lockstep.pipeline.mirror.widening import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    CountedMerge,
    CountedReplace,
    Fill,
    FoldedChanges,
    Merge,
    MirrorTarget,
    MirrorWrite,
    PartColumn,
    Replace,
    Rewrite,
    StagedFiles,
)
from lockstep.pipeline.schema.types import folded, is_mergeable, is_refused, sql_type
from lockstep.pipeline.values.policies import Readers, Retention
from lockstep.pipeline.values.segment import ChangeType
from lockstep.resources.lake.delta.columns import VECTORS_PROPERTY, Spelling, mirror_schema
from lockstep.resources.lake.delta.delta_log import newest_version
from lockstep.resources.lake.delta.statement import (
    COMPLETION,
    keyless_merge_statement,
    literal,
    merge_statement,
    quoted,
)
from lockstep.resources.lake.mirror.parts import (
    boxed,
    changes_of,
    column,
    column_from,
    completed,
    empty_rows,
    images_of,
    keep_marks,
    looked_up,
    mirror_frame,
    read_files,
    rows_of,
)
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession


def properties(target: MirrorTarget, keep: timedelta) -> Mapping[str, str]:
    """Return the table properties of a new mirror. `keep`: how long each version stays
    readable."""
    for_any = target.readers == Readers.ANY
    mapped = not for_any and any(map(is_refused, target.schema.names))
    return {
        VECTORS_PROPERTY: "false" if for_any else "true",
        "delta.enableInCommitTimestamps": "true",
        **Retention.promising(keep).properties(),
        **dict([MAPPING] if mapped else []),
    }


def commit(
    session: SparkSession,
    write: MirrorWrite,
    path: LakePath,
    staging: Staging,
    created: Mapping[str, str] | None,
    spell: Spelling,
) -> None:
    """Make the write's one commit to the mirror at `path`. `spell` turns a column's
    name at the source into its name in the mirror. `created`: the properties of a new
    mirror; None if the mirror exists."""
    destination = _Destination(path, created, spell)
    match write:
        case Append(target, parts):
            images = images_of(session, parts, target.schema)
            destination.append(_present_rows(images, target))
        case Merge():
            _merge(session, write, destination, staging)
        case CountedMerge(target, parts):
            _merge_counted(session, target, parts, destination, staging)
        case Replace():
            with _replaced(session, write, path, created is None, staging) as rows:
                destination.replace(rows, new_columns=True)
        case CountedReplace(target, parts, snapshot):
            rows = rows_of(session, snapshot, target.schema, path)
            destination.replace(_recounted(session, target.schema, parts, rows), new_columns=True)
        case _:
            assert_never(write)


@dataclass(frozen=True, slots=True)
class _Destination:
    """The mirror to which rows are written. If it is missing, the same commit creates
    it, with the properties `created`. The rows have the source's column names."""

    path: LakePath
    created: Mapping[str, str] | None
    spell: Spelling

    def append(self, rows: DataFrame) -> None:
        self._writer(rows).mode("append").save(str(self.path))

    def replace(self, rows: DataFrame, *, new_columns: bool = False) -> None:
        """Replace all rows. `new_columns`: the mirror gets the columns of the new rows."""
        writer = self._writer(rows).mode("overwrite")
        writer = writer.option("overwriteSchema", "true") if new_columns else writer
        writer.save(str(self.path))

    def _writer(self, rows: DataFrame) -> DataFrameWriter:
        writer = rows.toDF(*map(self.spell, rows.columns)).write.format("delta")
        return writer.options(**(self.created or {}))


def _merge(
    session: SparkSession, write: Merge, destination: _Destination, staging: Staging
) -> None:
    if destination.created is None:
        rows = _between(mirror_frame(session, destination.path), write)
    else:
        rows = empty_rows(session, write.target.schema)
    with looked_up(session, changes_of(session, write), write, rows, staging) as changes:
        if write.completion is not None:
            changes = completed(session, changes, write, write.completion)
        if destination.created is None and is_mergeable(write.target.schema.names):
            _merge_into(session, changes, write, destination)
        elif destination.created is None:
            mirror = mirror_frame(session, destination.path)
            destination.replace(_merged(mirror, changes, write, write.changes, write.completed))
        else:
            changes = changes.where(f"_change_type <> '{COMPLETION}'")
            destination.append(_present_rows(changes, write.target))


def _between(rows: DataFrame, write: Merge) -> DataFrame:
    """Return the rows within the write's bounds."""
    for name, least, greatest in write.bounds:
        rows = rows.where(f"{quoted(name)} between {least} and {greatest}")
    return rows


def _merge_into(
    session: SparkSession, changes: DataFrame, write: Merge, destination: _Destination
) -> None:
    schema, spell = write.target.schema, destination.spell
    statement = merge_statement(
        mirror=str(destination.path),
        source="changes",
        columns=list(map(spell, schema.names)),
        source_columns=changelog_names(schema.names),
        key=list(map(spell, write.key)),
        bounds=[(spell(name), least, greatest) for name, least, greatest in write.bounds],
        keep_marks={spell(name): mark for name, mark in keep_marks(schema, write.changes).items()},
        soft=write.target.soft,
        completed_columns=list(map(spell, write.completed)),
    )
    _run(session, changes, statement)


def _merge_counted(
    session: SparkSession,
    target: MirrorTarget,
    parts: Sequence[StagedFiles],
    destination: _Destination,
    staging: Staging,
) -> None:
    names = target.schema.names
    columns = changelog_names(names)
    net = _net_changes(images_of(session, parts, target.schema), columns)
    if destination.created is not None:
        destination.append(_named_rows(_repeated(net, columns), names))
        return
    mirror = mirror_frame(session, destination.path)
    rows = mirror.select(
        *(column(name).alias(spelled) for name, spelled in zip(names, columns, strict=True))
    )
    if not is_mergeable(names):
        destination.replace(_named_rows(_with_changes(rows, net, columns), names))
        return
    with staging.folder() as counted, staging.folder() as folder:
        # The counts are stored, since the MERGE would otherwise execute their plan five
        # times.
        net.write.mode("overwrite").parquet(counted)
        net = session.read.schema(net.schema).parquet(counted)
        source = _merge_source(net, rows, columns)
        source.write.mode("overwrite").parquet(folder)
        source = session.read.schema(source.schema).parquet(folder)
        statement = keyless_merge_statement(
            mirror=str(destination.path),
            source="changes",
            columns=list(map(destination.spell, names)),
            source_columns=columns,
        )
        _run(session, source, statement)


def _run(session: SparkSession, changes: DataFrame, statement: str) -> None:
    """Execute a statement that reads the changes as the view `changes`."""
    changes.createOrReplaceTempView("changes")
    try:
        session.sql(statement)
    finally:
        session.catalog.dropTempView("changes")


def write_rows(
    session: SparkSession,
    path: LakePath,
    rows: pa.Table,
    staging: Staging,
    *,
    replaces: bool,
    new_columns: bool,
    created: Mapping[str, str] | None,
) -> None:
    """Commit the rows of an Arrow table by a Spark query. This is for a Spark whose
    Java this process cannot call; otherwise `direct.commit_rows`, which describes the
    parameters, does the same."""
    file = staging.stage("few", rows)
    try:
        frame = read_files(session, (file,), rows.schema)
        destination = _Destination(path, created, str)
        if new_columns or (replaces and created is None):
            destination.replace(frame, new_columns=new_columns)
        else:
            destination.append(frame)
    finally:
        staging.unstage(file)


def rewrite(session: SparkSession, path: LakePath, step: Rewrite | Fill, spell: Spelling) -> None:
    """Write all rows of the mirror again, with other columns, or with a value in some
    columns. Delta's UPDATE is not used for the values: it rewrites as many rows, and
    writes NULL to a column that is called `__condition__`, which it takes for its
    own."""
    rows = mirror_frame(session, path)
    if isinstance(step, Rewrite):
        pairs = zip(step.columns, step.schema, strict=True)
        chosen = [column_from(part, field.type).alias(field.name) for part, field in pairs]
    else:
        values = {name: column_from(PartColumn(value=v), v.type) for name, v in step.values}
        chosen = [values.get(name, column(name)).alias(name) for name in rows.columns]
    _Destination(path, None, spell).replace(
        rows.select(*chosen), new_columns=isinstance(step, Rewrite)
    )


def copy_rows(
    session: SparkSession, path: LakePath, columns: Sequence[str], version: int, folder: str
) -> None:
    """Copy a mirror's rows at a version to Parquet files in `folder`, with columns c0,
    c1, …."""
    rows = mirror_frame(session, path, version)
    chosen = rows.select(*(column(name).alias(f"c{at}") for at, name in enumerate(columns)))
    chosen.write.mode("overwrite").option("compression", "snappy").parquet(folder)


def _present_rows(changes: DataFrame, target: MirrorTarget) -> DataFrame:
    """Return the rows that an empty mirror has after these folded changes or inserts."""
    from pyspark.sql import functions as f

    names = target.schema.names
    gone = f.col("_change_type") == "delete"
    if not target.soft:
        return _named_rows(changes.where(~gone), names)
    mark = f.lit(None)
    if "_committed_at" in changes.columns:
        changes = changes.where(~gone | f.col("_committed_at").isNotNull())
        mark = f.when(gone, f.col("_committed_at"))
    return _named_rows(changes, names, mark.cast("timestamp").alias(DELETED_AT.name))


def _named_rows(changes: DataFrame, names: list[str], *more: Column) -> DataFrame:
    pairs = zip(names, changelog_names(names), strict=True)
    return changes.select(*(column(spelled).alias(name) for name, spelled in pairs), *more)


def _merged(
    mirror: DataFrame,
    changes: DataFrame,
    write: Merge | Replace,
    folded: FoldedChanges,
    completed: Sequence[str] = (),
) -> DataFrame:
    """Return the mirror's rows after the changes, by a join. The result is that of
    `statement.merge_statement`, which cannot be used if the rows are not in a table
    yet, or if a column has a name that Delta's MERGE reserves. `folded`: the
    description of `changes`.
    """
    from pyspark.sql import functions as f

    target = write.target
    names = target.schema.names
    spelled = changelog_spelling(names)
    mark = [DELETED_AT.name] if target.soft else []
    rows, row, own = boxed(mirror, (*names, *mark))
    condition = f.lit(True)
    for name in write.key:
        condition &= column(spelled[name]) == own[name]
    kind = f.col("_change_type")
    gone, completes = kind == "delete", kind == COMPLETION
    stays = kind.isNull() | (~(completes & row.isNull()) & (f.lit(target.soft) | ~gone))
    keeps = keep_marks(target.schema, folded)
    columns = []
    for name in names:
        kept = kind.isNull()
        if name not in completed:
            kept |= completes
        if name in keeps:
            kept |= row.isNotNull() & f.col(keeps[name])
        value = f.when(kept, own[name]).otherwise(column(spelled[name]))
        columns.append(value.alias(name))
    for name in mark:
        moment = f.when(gone, f.col("_committed_at"))
        kept = f.when(kind.isNull() | completes, own[name]).otherwise(moment)
        columns.append(kept.alias(name))
    return changes.join(rows, condition, "full_outer").where(stays).select(*columns)


@contextmanager
def _replaced(
    session: SparkSession, write: Replace, path: LakePath, exists: bool, staging: Staging
) -> Iterator[DataFrame]:
    """Yield the rows of the write's snapshot after its changes; they can be read only
    inside the context. `path`: the mirror's folder; `exists`: the mirror exists
    already."""
    target, before = write.target, path if exists else None
    snapshot = rows_of(session, write.snapshot, target.schema, path)
    if not write.changes.files:
        yield _with_gone(session, write, before, _with_mark(snapshot, target), None)
        return
    changes = changes_of(session, write)
    with looked_up(session, changes, write, snapshot, staging) as whole:
        touched = _named_rows(changes, target.schema.names).select(*map(column, write.key))
        kept = _with_mark(_without(snapshot, touched, write.key), target)
        rows = kept.unionByName(_present_rows(whole, target))
        yield _with_gone(session, write, before, rows, changes)


def _with_gone(
    session: SparkSession,
    write: Replace,
    before: LakePath | None,
    rows: DataFrame,
    changes: DataFrame | None,
) -> DataFrame:
    """Return the new rows together with the rows that stay although the source has
    deleted them. `before`: the mirror with the earlier rows; None if there is none.
    `changes`: the changes that are already in `rows`."""
    target = write.target
    if write.forgets:
        before = None
    if not target.keeps or (before is None and not write.gone.files):
        return rows
    if before is None:
        gone = _with_mark(empty_rows(session, target.schema), target)
    else:
        gone = _earlier_rows(session, write, before)
    if write.gone.files:
        gone = _merged(gone, changes_of(session, write, write.gone), write, write.gone)
    if changes is not None and not target.soft:
        # A "delete" among the changes always removes the row: either only TRUNCATE is
        # ignored, or the row moved to another key. An ignored DELETE has another
        # `_change_type`.
        deleted = _named_rows(changes.where("_change_type = 'delete'"), target.schema.names)
        gone = _without(gone, deleted, write.key)
    return rows.unionByName(_without(gone, rows, write.key))


def _recounted(
    session: SparkSession,
    schema: pa.Schema,
    parts: Sequence[StagedFiles],
    rows: DataFrame,
) -> DataFrame:
    """Return the rows of a snapshot after the row images of `parts`; equal rows are
    counted."""
    names = schema.names
    columns = changelog_names(names)
    if not parts:
        return rows
    pairs = zip(names, columns, strict=True)
    spelled_rows = rows.select(*(column(name).alias(spelled) for name, spelled in pairs))
    net = _net_changes(images_of(session, parts, schema), columns)
    return _named_rows(_with_changes(spelled_rows, net, columns), names)


def _with_mark(rows: DataFrame, target: MirrorTarget) -> DataFrame:
    """Return the rows, none of which is deleted, with `_deleted_at` if the mirror has
    it."""
    from pyspark.sql import functions as f

    if not target.soft:
        return rows
    return rows.withColumn(DELETED_AT.name, f.lit(None).cast("timestamp"))


def _earlier_rows(session: SparkSession, write: Replace, path: LakePath) -> DataFrame:
    """Return the mirror's earlier rows in the write's columns, marked as deleted if
    deletes are "soft"; no rows if the mirror lacks a column of the key.
    `write.emptied`, the change that removed all rows, such as TRUNCATE, gives the
    moment of the marks, and the stamps."""
    from pyspark.sql import functions as f

    mirror = mirror_frame(session, path)
    schema = write.target.schema
    stays = _staying(path, schema)
    if not stays >= {*write.key}:
        return _with_mark(empty_rows(session, schema), write.target)
    marked = f.col(DELETED_AT.name) if DELETED_AT.name in mirror.columns else f.lit(None)
    emptied = write.emptied
    columns = []
    for field in schema:
        own = column(field.name) if field.name in stays else f.lit(None)
        own = own.cast(sql_type(field.type))
        if write.target.soft and emptied is not None and field.name in write.target.stamps:
            own = f.when(marked.isNull(), f.expr(literal(emptied.value(field.name)))).otherwise(own)
        columns.append(own.alias(field.name))
    if not write.target.soft:
        return mirror.select(*columns)
    moment = (
        f.current_timestamp()
        if emptied is None
        else f.expr(literal(emptied.value("_committed_at")))
    )
    mark = f.coalesce(marked.cast("timestamp"), moment).alias(DELETED_AT.name)
    return mirror.select(*columns, mark)


def _staying(path: LakePath, schema: pa.Schema) -> set[str]:
    """Return the write's columns that can take the values of the mirror's column with
    the same name."""
    version = newest_version(path)
    assert version is not None, "there is a mirror"
    present = {folded(field.name): field.type for field in mirror_schema(path, version)}
    return {
        field.name
        for field in schema
        if folded(field.name) in present
        and type_change(present[folded(field.name)], field.type) is not TypeChange.REREAD
    }


def _without(rows: DataFrame, others: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return the rows whose key is not among `others`."""
    from pyspark.sql import functions as f

    condition = f.lit(True)
    for name in key:
        condition &= f.col(f"r.{quoted(name)}") == f.col(f"o.{quoted(name)}")
    return rows.alias("r").join(others.alias("o"), condition, "left_anti")


_COUNT = "_sequence"
"""The column that counts equal rows. Its name is reserved in a changelog, so no column
that is spelled as in a changelog has it."""

_COMES = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)


def _net_changes(images: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return each distinct row of the images, with the number of times that it is added
    minus the number of times that it is removed (`_COUNT`). Rows for which this is 0
    are left out."""
    from pyspark.sql import functions as f

    sign = f.when(f.col("_change_type").isin(*_COMES), 1).otherwise(-1)
    signed = images.select(*map(column, columns), sign.alias(_COUNT))
    return _counted(signed, columns).where(f.col(_COUNT) != 0)


def _merge_source(net: DataFrame, mirror: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the source of `keyless_merge_statement`: `_change_type` and the columns.
    If a row is removed more often than it is added, a "delete" removes all its copies
    from the mirror, and the copies that should remain are inserted again. `mirror`: its
    rows, with the same column names."""
    from pyspark.sql import functions as f

    gone = net.where(f.col(_COUNT) < 0).select(*map(column, columns)).distinct()
    copies = _alike(mirror, gone, columns, "left_semi").withColumn(_COUNT, f.lit(1).cast("bigint"))
    touched = _alike(net, gone, columns, "left_semi")
    remain = _counted(copies.select(*map(column, touched.columns)).union(touched), columns)
    others = _alike(net, gone, columns, "left_anti")
    inserted = _repeated(remain.union(others.select(*map(column, remain.columns))), columns)
    return inserted.withColumn("_change_type", f.lit("insert")).union(
        gone.withColumn("_change_type", f.lit("delete"))
    )


def _with_changes(rows: DataFrame, net: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the rows after the net changes; equal rows are counted. Both arguments
    have the same column names."""
    from pyspark.sql import functions as f

    copies = rows.select(*map(column, columns), f.lit(1).cast("bigint").alias(_COUNT))
    return _repeated(
        _counted(copies.union(net.select(*map(column, copies.columns))), columns), columns
    )


def _repeated(counted: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return each row as many times as its count. A row with a count below 1 is left
    out. Counts below 0 mean that the source removed copies that the mirror never
    had."""
    from pyspark.sql import functions as f

    times = f.explode(f.sequence(f.lit(1), f.col(_COUNT).cast("int")))
    present = counted.where(f.col(_COUNT) > 0)
    return present.select(*map(column, columns), times.alias(_COUNT)).drop(_COUNT)


def _counted(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return one row for all rows that are equal bit for bit, with the sum of their
    counts."""
    from pyspark.sql import functions as f

    floating = [name for name, kind in rows.dtypes if name in columns and _floating(kind)]
    by = [column(name) for name in columns if name not in floating]
    texts = [column(n).cast("string").alias(f"_text_{at}") for at, n in enumerate(floating)]
    firsts = [f.first(quoted(name)).alias(name) for name in floating]
    grouped = rows.groupBy(*by, *texts).agg(f.sum(_COUNT).alias(_COUNT), *firsts)
    return grouped.select(*map(column, columns), _COUNT)


def _floating(kind: str) -> bool:
    return kind in ("float", "double") or kind.startswith("array")


def _alike(rows: DataFrame, images: DataFrame, columns: Sequence[str], how: str) -> DataFrame:
    """Return the rows that are among `images` (`how`: "left_semi") or are not
    ("left_anti"). NULL equals NULL, and 0.0 equals -0.0."""
    from pyspark.sql import functions as f

    condition = f.lit(True)
    for name in columns:
        condition &= f.col(f"r.{quoted(name)}").eqNullSafe(f.col(f"i.{quoted(name)}"))
    return rows.alias("r").join(images.alias("i"), condition, how)
