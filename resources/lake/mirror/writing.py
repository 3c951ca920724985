"""Spark queries that write to a mirror (the Delta table with a table's current rows).
Each `MirrorWrite` is one commit.

In a mirror without a key, rows are compared by all their values, and equal rows are
counted. A MERGE takes -0.0 and 0.0 for equal, so its delete removes rows with either.
Rows are counted by their text, in which the two differ, and those that remain are
inserted again bit for bit.

Files are read with explicit schemas, because Spark would need a job of its own to infer
a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from lockstep.pipeline.mirror.coalescing import LOST_ROW_REASON, RESUME_HINT
from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY
from lockstep.pipeline.mirror.layout import (
    DELETED_AT,
    MARKS,
    changelog_names,
    changelog_spelling,
    keep_flag_names,
    lack_flag_names,
    origin_names,
)
from lockstep.pipeline.mirror.mapping import KEPT_CHANGE_TYPE
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    Fill,
    FoldedChanges,
    Inputs,
    Merge,
    MirrorRows,
    MirrorTarget,
    MirrorWrite,
    Replace,
    Rewrite,
    StagedFiles,
)
from lockstep.pipeline.schema.types import comparable_name, is_mergeable, is_refused, sql_type
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.policies import Readers
from lockstep.pipeline.values.retention import Retention
from lockstep.pipeline.values.row_images import CHANGE_TYPES
from lockstep.pipeline.values.segment import ChangeType
from lockstep.resources.lake.changelog.frame import empty_rows, read_files, union_of
from lockstep.resources.lake.delta.columns import (
    VECTORS_PROPERTY,
    Spelling,
    mirror_schema,
    table_spelling,
)
from lockstep.resources.lake.delta.delta_log import newest_version
from lockstep.resources.lake.delta.statement import (
    CHANGES_VIEW,
    COMPLETION,
    keyless_merge_statement,
    literal,
    merge_statement,
    quoted,
)
from lockstep.resources.lake.delta.versions import AGE_LIMIT_SETTING
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import delta_table, file_named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession


def new_table_properties(target: MirrorTarget, keep: timedelta) -> Mapping[str, str]:
    """Return the table properties of a new mirror. `keep`: how long each version stays
    readable."""
    is_for_every_reader = target.policies.readers == Readers.ANY
    needs_mapping = not is_for_every_reader and any(map(is_refused, target.schema.names))
    properties = {
        VECTORS_PROPERTY: "false" if is_for_every_reader else "true",
        "delta.enableInCommitTimestamps": "true",
        **Retention.for_keep(keep).properties(),
    }
    return properties | dict([MAPPING_PROPERTY]) if needs_mapping else properties


def commit_write(
    session: SparkSession,
    write: MirrorWrite,
    path: LakePath,
    staging: Staging,
    new_properties: Mapping[str, str] | None,
    spell: Spelling,
) -> None:
    """Make the write's one commit to the mirror at `path`. `spell` turns a column's
    name at the source into its name in the mirror. `new_properties`: the properties of
    a new mirror; None if the mirror exists."""
    destination = _Destination(path, new_properties, spell)
    match write:
        case Append(target, parts):
            images = _read_images(session, parts, target.schema)
            destination.append(_present_rows(images, target))
        case Merge():
            _merge(session, write, destination, staging)
        case CountedMerge(target, parts):
            _merge_counted(session, target, parts, destination, staging)
        case Replace():
            with _new_rows(session, write, destination, staging) as rows:
                destination.replace(rows, replace_columns=True)
        case CountedReplace(target, parts, snapshot):
            rows = _read_snapshot(session, snapshot, target.schema, path)
            destination.replace(
                _snapshot_after_images(session, target.schema, parts, rows), replace_columns=True
            )
        case _:
            assert_never(write)


@dataclass(frozen=True, slots=True)
class _Destination:
    """The mirror to which rows are written. If it is missing, the same commit creates
    it, with the properties `new_properties`. The rows have the source's column
    names."""

    path: LakePath
    new_properties: Mapping[str, str] | None
    spell: Spelling

    @property
    def exists(self) -> bool:
        return self.new_properties is None

    def append(self, rows: DataFrame) -> None:
        self._writer(rows).mode("append").save(str(self.path))

    def replace(self, rows: DataFrame, *, replace_columns: bool = False) -> None:
        """Replace all rows. `replace_columns`: the mirror gets the columns of the new
        rows."""
        writer = self._writer(rows).mode("overwrite")
        writer = writer.option("overwriteSchema", "true") if replace_columns else writer
        writer.save(str(self.path))

    def _writer(self, rows: DataFrame) -> DataFrameWriter:
        writer = rows.toDF(*map(self.spell, rows.columns)).write.format("delta")
        return writer.options(**(self.new_properties or {}))


def _merge(
    session: SparkSession, write: Merge, destination: _Destination, staging: Staging
) -> None:
    if destination.exists:
        rows = _within_bounds(_mirror_frame(session, destination.path), write)
    else:
        rows = empty_rows(session, write.target.schema)
    with _look_up_values(session, _read_changes(session, write), write, rows, staging) as changes:
        if write.completion is not None:
            changes = _with_completion(session, changes, write, write.completion)
        if not destination.exists:
            changes = changes.where(f"_change_type <> '{COMPLETION}'")
            destination.append(_present_rows(changes, write.target))
        elif is_mergeable(write.target.schema.names):
            _merge_into(session, changes, write, destination)
        else:
            mirror = _mirror_frame(session, destination.path)
            destination.replace(
                _merged_rows(mirror, changes, write, write.changes, write.completed_columns)
            )


def _within_bounds(rows: DataFrame, write: Merge) -> DataFrame:
    """Return the rows within the write's bounds."""
    for name, least, greatest in write.bounds:
        rows = rows.where(f"{quoted(name)} between {least} and {greatest}")
    return rows


def _merge_into(
    session: SparkSession, changes: DataFrame, write: Merge, destination: _Destination
) -> None:
    schema = write.target.schema
    spell = destination.spell
    statement = merge_statement(
        mirror=str(destination.path),
        columns=list(map(spell, schema.names)),
        source_columns=changelog_names(schema.names),
        key=list(map(spell, write.key)),
        bounds=[(spell(name), least, greatest) for name, least, greatest in write.bounds],
        keep_marks={spell(name): mark for name, mark in _keep_marks(schema, write.changes).items()},
        soft=write.target.policies.marks_deleted,
        completed_columns=list(map(spell, write.completed_columns)),
    )
    _execute_on_changes(session, changes, statement)


def _merge_counted(
    session: SparkSession,
    target: MirrorTarget,
    parts: Sequence[StagedFiles],
    destination: _Destination,
    staging: Staging,
) -> None:
    names = target.schema.names
    columns = changelog_names(names)
    net_changes = _net_changes(_read_images(session, parts, target.schema), columns)
    if not destination.exists:
        destination.append(_with_source_names(_repeat_by_count(net_changes, columns), names))
        return
    mirror = _mirror_frame(session, destination.path)
    rows = mirror.select(
        *(_column(name).alias(spelled) for name, spelled in zip(names, columns, strict=True))
    )
    if not is_mergeable(names):
        destination.replace(
            _with_source_names(_with_net_changes(rows, net_changes, columns), names)
        )
        return
    with staging.new_folder() as counts_folder, staging.new_folder() as source_folder:
        # The counts are stored, because the MERGE would otherwise execute their plan
        # five times.
        net_changes.write.mode("overwrite").parquet(counts_folder)
        net_changes = session.read.schema(net_changes.schema).parquet(counts_folder)
        merge_source = _merge_source(net_changes, rows, columns)
        merge_source.write.mode("overwrite").parquet(source_folder)
        merge_source = session.read.schema(merge_source.schema).parquet(source_folder)
        statement = keyless_merge_statement(
            mirror=str(destination.path),
            columns=list(map(destination.spell, names)),
            source_columns=columns,
        )
        _execute_on_changes(session, merge_source, statement)


def _execute_on_changes(session: SparkSession, changes: DataFrame, statement: str) -> None:
    """Execute a statement that reads the changes as the view `CHANGES_VIEW`."""
    changes.createOrReplaceTempView(CHANGES_VIEW)
    try:
        session.sql(statement)
    finally:
        session.catalog.dropTempView(CHANGES_VIEW)


def write_rows(
    session: SparkSession,
    path: LakePath,
    rows: pa.Table,
    staging: Staging,
    *,
    replace_rows: bool,
    replace_columns: bool,
    new_properties: Mapping[str, str] | None,
) -> None:
    """Commit the rows of an Arrow table by a Spark query. This is for a Spark whose
    Java this process cannot call; otherwise `direct.commit_rows`, which describes the
    parameters, does the same."""
    file = staging.stage("few", rows)
    try:
        frame = read_files(session, (file,), rows.schema)
        destination = _Destination(path, new_properties, str)
        if replace_columns or (replace_rows and destination.exists):
            destination.replace(frame, replace_columns=replace_columns)
        else:
            destination.append(frame)
    finally:
        staging.unstage(file)


def rewrite(session: SparkSession, path: LakePath, step: Rewrite | Fill, spell: Spelling) -> None:
    """Write all rows of the mirror again, with other columns, or with a value in some
    columns. Delta's UPDATE is not used for the values: it rewrites as many rows, and
    writes NULL to a column that is called `__condition__`, which it takes for its
    own."""
    rows = _mirror_frame(session, path)
    if isinstance(step, Rewrite):
        pairs = zip(step.columns, step.schema, strict=True)
        columns = [_column_from(origin, field.type).alias(field.name) for origin, field in pairs]
    else:
        values = {name: _column_from(ColumnOrigin(value=v), v.type) for name, v in step.values}
        columns = [values.get(name, _column(name)).alias(name) for name in rows.columns]
    _Destination(path, None, spell).replace(
        rows.select(*columns), replace_columns=isinstance(step, Rewrite)
    )


def copy_rows(
    session: SparkSession, path: LakePath, columns: Sequence[str], version: int, folder: str
) -> None:
    """Copy a mirror's rows at a version to Parquet files in `folder`, with columns c0,
    c1, …."""
    rows = _mirror_frame(session, path, version)
    copy = rows.select(*(_column(name).alias(f"c{index}") for index, name in enumerate(columns)))
    copy.write.mode("overwrite").option("compression", "snappy").parquet(folder)


def _present_rows(changes: DataFrame, target: MirrorTarget) -> DataFrame:
    """Return the rows that an empty mirror has after these folded changes or inserts."""
    from pyspark.sql import functions as f

    names = target.schema.names
    is_delete = f.col("_change_type") == "delete"
    if not target.policies.marks_deleted:
        return _with_source_names(changes.where(~is_delete), names)
    mark = f.lit(None)
    if "_committed_at" in changes.columns:
        # A delete without a time is of a row that does not stay (`Fold.unmarked_through`).
        changes = changes.where(~is_delete | f.col("_committed_at").isNotNull())
        mark = f.when(is_delete, f.col("_committed_at"))
    return _with_source_names(changes, names, mark.cast("timestamp").alias(DELETED_AT.name))


def _with_source_names(changes: DataFrame, names: list[str], *more: Column) -> DataFrame:
    pairs = zip(names, changelog_names(names), strict=True)
    return changes.select(*(_column(spelled).alias(name) for name, spelled in pairs), *more)


def _merged_rows(
    mirror: DataFrame,
    changes: DataFrame,
    write: Merge | Replace,
    folded: FoldedChanges,
    completed_columns: Sequence[str] = (),
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
    mark_columns = [DELETED_AT.name] if target.policies.marks_deleted else []
    rows, mirror_row, mirror_fields = _pack(mirror, (*names, *mark_columns))
    condition = f.lit(True)
    for name in write.key:
        condition &= _column(spelled[name]) == mirror_fields[name]
    kind = f.col("_change_type")
    is_delete, is_completion = kind == "delete", kind == COMPLETION
    is_in_result = kind.isNull() | (
        ~(is_completion & mirror_row.isNull()) & (f.lit(target.policies.marks_deleted) | ~is_delete)
    )
    marks = _keep_marks(target.schema, folded)
    columns = []
    for name in names:
        keeps_mirror_value = kind.isNull()
        if name not in completed_columns:
            keeps_mirror_value |= is_completion
        if name in marks:
            keeps_mirror_value |= mirror_row.isNotNull() & f.col(marks[name])
        value = f.when(keeps_mirror_value, mirror_fields[name]).otherwise(_column(spelled[name]))
        columns.append(value.alias(name))
    for name in mark_columns:
        moment = f.when(is_delete, f.col("_committed_at"))
        value = f.when(kind.isNull() | is_completion, mirror_fields[name]).otherwise(moment)
        columns.append(value.alias(name))
    return changes.join(rows, condition, "full_outer").where(is_in_result).select(*columns)


@contextmanager
def _new_rows(
    session: SparkSession, write: Replace, destination: _Destination, staging: Staging
) -> Iterator[DataFrame]:
    """Yield the rows of the write's snapshot after its changes; they can be read only
    inside the context."""
    target = write.target
    earlier_mirror = destination.path if destination.exists else None
    snapshot = _read_snapshot(session, write.snapshot, target.schema, destination.path)
    if not write.changes.files:
        yield _with_kept_rows(
            session, write, earlier_mirror, _with_deleted_at(snapshot, target), None
        )
        return
    changes = _read_changes(session, write)
    with _look_up_values(session, changes, write, snapshot, staging) as complete_changes:
        changed_keys = _with_source_names(changes, target.schema.names).select(
            *map(_column, write.key)
        )
        unchanged_rows = _with_deleted_at(_without(snapshot, changed_keys, write.key), target)
        rows = unchanged_rows.unionByName(_present_rows(complete_changes, target))
        yield _with_kept_rows(session, write, earlier_mirror, rows, changes)


def _with_kept_rows(
    session: SparkSession,
    write: Replace,
    earlier_mirror: LakePath | None,
    rows: DataFrame,
    changes: DataFrame | None,
) -> DataFrame:
    """Return the new rows together with the rows that stay although the source has
    deleted them. `earlier_mirror`: the mirror with the earlier rows; None if there is
    none. `changes`: the changes that are already in `rows`."""
    target = write.target
    if write.drops_earlier_rows:
        earlier_mirror = None
    if not target.policies.keeps_rows or (earlier_mirror is None and not write.deleted_rows.files):
        return rows
    if earlier_mirror is None:
        kept_rows = _with_deleted_at(empty_rows(session, target.schema), target)
    else:
        kept_rows = _earlier_rows(session, write, earlier_mirror)
    if write.deleted_rows.files:
        kept_rows = _merged_rows(
            kept_rows, _read_changes(session, write, write.deleted_rows), write, write.deleted_rows
        )
    if changes is not None and not target.policies.marks_deleted:
        # A row with a "delete" does not stay: this mirror ignores only TRUNCATE, or the
        # row moved to another key. An ignored DELETE has another `_change_type`.
        removed_rows = _with_source_names(
            changes.where("_change_type = 'delete'"), target.schema.names
        )
        kept_rows = _without(kept_rows, removed_rows, write.key)
    return rows.unionByName(_without(kept_rows, rows, write.key))


def _snapshot_after_images(
    session: SparkSession,
    schema: pa.Schema,
    parts: Sequence[StagedFiles],
    rows: DataFrame,
) -> DataFrame:
    """Return the rows of a snapshot after the row images of `parts`; equal rows are
    counted."""
    if not parts:
        return rows
    names = schema.names
    columns = changelog_names(names)
    pairs = zip(names, columns, strict=True)
    spelled_rows = rows.select(*(_column(name).alias(spelled) for name, spelled in pairs))
    net_changes = _net_changes(_read_images(session, parts, schema), columns)
    return _with_source_names(_with_net_changes(spelled_rows, net_changes, columns), names)


def _with_deleted_at(rows: DataFrame, target: MirrorTarget) -> DataFrame:
    """Return the rows, none of which is deleted, with `_deleted_at` if the mirror has
    it."""
    from pyspark.sql import functions as f

    if not target.policies.marks_deleted:
        return rows
    return rows.withColumn(DELETED_AT.name, f.lit(None).cast("timestamp"))


def _earlier_rows(session: SparkSession, write: Replace, path: LakePath) -> DataFrame:
    """Return the mirror's earlier rows in the write's columns, marked as deleted if
    deletes are "soft"; no rows if the mirror lacks a column of the key. The marks and
    stamps are those of `write.emptied_by`, the change that removed all rows, such as a
    TRUNCATE."""
    from pyspark.sql import functions as f

    mirror = _mirror_frame(session, path)
    schema = write.target.schema
    reusable_columns = _reusable_columns(path, schema)
    if not reusable_columns >= {*write.key}:
        return _with_deleted_at(empty_rows(session, schema), write.target)
    former_mark = f.col(DELETED_AT.name) if DELETED_AT.name in mirror.columns else f.lit(None)
    emptied = write.emptied_by
    columns = []
    for field in schema:
        own_column = _column(field.name) if field.name in reusable_columns else f.lit(None)
        own_column = own_column.cast(sql_type(field.type))
        if (
            write.target.policies.marks_deleted
            and emptied is not None
            and field.name in write.target.policies.stamps
        ):
            own_column = f.when(
                former_mark.isNull(), f.expr(literal(emptied.value(field.name)))
            ).otherwise(own_column)
        columns.append(own_column.alias(field.name))
    if not write.target.policies.marks_deleted:
        return mirror.select(*columns)
    moment = (
        f.current_timestamp()
        if emptied is None
        else f.expr(literal(emptied.value("_committed_at")))
    )
    mark = f.coalesce(former_mark.cast("timestamp"), moment).alias(DELETED_AT.name)
    return mirror.select(*columns, mark)


def _reusable_columns(path: LakePath, schema: pa.Schema) -> set[str]:
    """Return the write's columns that can take the values of the mirror's column with
    the same name."""
    version = newest_version(path)
    assert version is not None, "there is a mirror"
    present_types = {
        comparable_name(field.name): field.type for field in mirror_schema(path, version)
    }
    return {
        field.name
        for field in schema
        if comparable_name(field.name) in present_types
        and type_change(present_types[comparable_name(field.name)], field.type)
        is not TypeChange.REREAD
    }


def _without(rows: DataFrame, excluded_rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return the rows whose key is not among `excluded_rows`."""
    from pyspark.sql import functions as f

    condition = f.lit(True)
    for name in key:
        condition &= f.col(f"r.{quoted(name)}") == f.col(f"o.{quoted(name)}")
    return rows.alias("r").join(excluded_rows.alias("o"), condition, "left_anti")


_COUNT_COLUMN = "_sequence"
"""The column that counts equal rows. A changelog reserves this name, so no column of
the table has it once names are spelled as in a changelog."""

_INSERT_TYPES = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)


def _net_changes(images: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return each distinct row of the images, with the number of times that it is added
    minus the number of times that it is removed (`_COUNT_COLUMN`). Rows for which this
    is 0 are left out."""
    from pyspark.sql import functions as f

    sign = f.when(f.col("_change_type").isin(*_INSERT_TYPES), 1).otherwise(-1)
    signed_rows = images.select(*map(_column, columns), sign.alias(_COUNT_COLUMN))
    return _sum_counts(signed_rows, columns).where(f.col(_COUNT_COLUMN) != 0)


def _merge_source(net_changes: DataFrame, mirror: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the source of `keyless_merge_statement`: `_change_type` and the columns.
    If a row is removed more often than it is added, a "delete" removes all its copies
    from the mirror, and the copies that should remain are inserted again. `mirror`: its
    rows, with the same column names."""
    from pyspark.sql import functions as f

    removed_rows = (
        net_changes.where(f.col(_COUNT_COLUMN) < 0).select(*map(_column, columns)).distinct()
    )
    copies = _join_equal_rows(mirror, removed_rows, columns, "left_semi").withColumn(
        _COUNT_COLUMN, f.lit(1).cast("bigint")
    )
    changed_counts = _join_equal_rows(net_changes, removed_rows, columns, "left_semi")
    remaining = _sum_counts(
        copies.select(*map(_column, changed_counts.columns)).union(changed_counts), columns
    )
    other_changes = _join_equal_rows(net_changes, removed_rows, columns, "left_anti")
    inserted = _repeat_by_count(
        remaining.union(other_changes.select(*map(_column, remaining.columns))), columns
    )
    return inserted.withColumn("_change_type", f.lit("insert")).union(
        removed_rows.withColumn("_change_type", f.lit("delete"))
    )


def _with_net_changes(rows: DataFrame, net_changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the rows after the net changes; equal rows are counted. Both arguments
    have the same column names."""
    from pyspark.sql import functions as f

    copies = rows.select(*map(_column, columns), f.lit(1).cast("bigint").alias(_COUNT_COLUMN))
    return _repeat_by_count(
        _sum_counts(copies.union(net_changes.select(*map(_column, copies.columns))), columns),
        columns,
    )


def _repeat_by_count(counted: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return each row as many times as its count. A row with a count below 1 is left
    out. Counts below 0 mean that the source removed copies that the mirror never
    had."""
    from pyspark.sql import functions as f

    times = f.explode(f.sequence(f.lit(1), f.col(_COUNT_COLUMN).cast("int")))
    remaining = counted.where(f.col(_COUNT_COLUMN) > 0)
    return remaining.select(*map(_column, columns), times.alias(_COUNT_COLUMN)).drop(_COUNT_COLUMN)


def _sum_counts(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return one row for all rows that are equal bit for bit, with the sum of their
    counts."""
    from pyspark.sql import functions as f

    floating = [name for name, kind in rows.dtypes if name in columns and _is_floating(kind)]
    exact_columns = [_column(name) for name in columns if name not in floating]
    texts = [_column(n).cast("string").alias(f"_text_{index}") for index, n in enumerate(floating)]
    firsts = [f.first(quoted(name)).alias(name) for name in floating]
    grouped = rows.groupBy(*exact_columns, *texts).agg(
        f.sum(_COUNT_COLUMN).alias(_COUNT_COLUMN), *firsts
    )
    return grouped.select(*map(_column, columns), _COUNT_COLUMN)


def _is_floating(kind: str) -> bool:
    """Return whether values of this Spark type contain floating-point numbers. An array
    is a VECTOR."""
    return kind in ("float", "double") or kind.startswith("array")


def _join_equal_rows(
    rows: DataFrame, images: DataFrame, columns: Sequence[str], how: str
) -> DataFrame:
    """Return the rows that are among `images` (`how`: "left_semi") or are not
    ("left_anti"). NULL equals NULL, and 0.0 equals -0.0."""
    from pyspark.sql import functions as f

    condition = f.lit(True)
    for name in columns:
        condition &= f.col(f"r.{quoted(name)}").eqNullSafe(f.col(f"i.{quoted(name)}"))
    return rows.alias("r").join(images.alias("i"), condition, how)


def _keep_marks(schema: pa.Schema, changes: FoldedChanges) -> dict[str, str]:
    """Return for each column in which the mirror's value may stay the name of a boolean
    column, which is true in changes where the value stays."""
    marks = keep_flag_names(schema.names)
    return {name: marks[name] for name in changes.kept_columns}


def _read_changes(
    session: SparkSession, write: Merge | Replace, changes: FoldedChanges | None = None
) -> DataFrame:
    """Return folded changes (one row image per key), by default those of the write. The
    columns: those of `layout.MARKS` that the write needs, the mirror's columns as a
    changelog spells them, and the columns that folding adds (`keep_flag_names`,
    `lack_flag_names`, `origin_names`)."""
    schema = write.target.schema
    changes = changes or write.changes
    marks = ["_change_type"]
    marks += ["_committed_at"] if write.target.policies.marks_deleted else []
    marks += ["_sequence"] if isinstance(write, Merge) and write.completion is not None else []
    lack_marks, origins = lack_flag_names(schema.names), origin_names(schema.names)
    fold_marks = [
        *_keep_marks(schema, changes).values(),
        *(lack_marks[name] for name in changes.lacking_columns),
    ]
    fold_columns = [pa.field(mark, pa.bool_()) for mark in fold_marks]
    if changes.lacking_columns:
        fold_columns += [schema.field(name).with_name(origins[name]) for name in write.key]
    return read_files(
        session,
        changes.files,
        pa.schema([*map(MARKS.field, marks), *_spelled_fields(schema), *fold_columns]),
    )


def _read_images(
    session: SparkSession, parts: Sequence[StagedFiles], schema: pa.Schema
) -> DataFrame:
    """Return the row images of all parts: `_change_type`, and the mirror's columns as a
    changelog spells them."""
    from pyspark.sql import functions as f

    names = changelog_names(schema.names)
    frames = []
    for part in parts:
        needs_sequence = part.above or part.through is not None
        marks = ["_change_type", *(["_sequence"] if needs_sequence else [])]
        frame = _read_part(session, part, [MARKS.field(mark) for mark in marks])
        if part.above:
            frame = frame.where(f.col("_sequence") > part.above)
        if part.through is not None:
            frame = frame.where(f.col("_sequence") <= part.through)
        images = frame.where(f.col("_change_type").isin([kind.value for kind in CHANGE_TYPES]))
        frames.append(images.select(f.col("_change_type"), *_mapped_columns(part, schema, names)))
    no_images = pa.schema([MARKS.field("_change_type"), *_spelled_fields(schema)])
    return union_of(frames or [empty_rows(session, no_images)])


def _read_snapshot(
    session: SparkSession, parts: Inputs, schema: pa.Schema, lake: LakePath
) -> DataFrame:
    """Return a snapshot's rows under the source's column names; a column that a part
    lacks is NULL. `lake`: any path in the lake that has the parts."""
    frames = []
    for part in parts:
        if isinstance(part, MirrorRows):
            rows = _mirror_frame(session, file_named(lake, part.path), part.version)
            is_table_column = any(origin.source == DELETED_AT.name for origin in part.columns)
            if DELETED_AT.name in rows.columns and not is_table_column:
                rows = rows.where(_column(DELETED_AT.name).isNull())
        elif part.files:
            rows = _read_part(session, part, ())
        else:
            continue
        frames.append(rows.select(_mapped_columns(part, schema, schema.names)))
    return union_of(frames or [empty_rows(session, schema)])


def _spelled_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the mirror's columns as a changelog spells them."""
    names = changelog_names(schema.names)
    return [field.with_name(name) for field, name in zip(schema, names, strict=True)]


def _read_part(
    session: SparkSession, part: StagedFiles, more_columns: Sequence[pa.Field]
) -> DataFrame:
    columns = {field.name: field.type for field in more_columns}
    columns |= {origin.source: origin.type for origin in part.columns if origin.source is not None}
    return read_files(session, part.files, pa.schema(columns))


def _mirror_frame(session: SparkSession, path: LakePath, version: int | None = None) -> DataFrame:
    """Return a mirror's rows at a version, by default the newest, with its columns
    named as at the source."""
    reader = session.read.format("delta")
    if version is not None:
        session.conf.set(AGE_LIMIT_SETTING, "false")
        reader = reader.option("versionAsOf", version)
    spelled = table_spelling(delta_table(path, version))
    rows = reader.load(str(path))
    return rows.select(
        *(_column(spelled_name).alias(name) for name, spelled_name in spelled.items())
    )


def _mapped_columns(
    part: StagedFiles | MirrorRows, schema: pa.Schema, names: Sequence[str]
) -> list[Column]:
    return [
        _column_from(origin, field.type).alias(name)
        for origin, field, name in zip(part.columns, schema, names, strict=True)
    ]


def _column(name: str) -> Column:
    """Return the column with exactly this name, in which Spark interprets no
    characters."""
    from pyspark.sql import functions as f

    return f.col(quoted(name))


_PACKED = "_derived"
_IS_COMPLETE = "_derived"
"""The name of two temporary columns; no DataFrame has both. A changelog has a column
of its own with this name, so it spells no column of a table like this."""


def _pack(rows: DataFrame, names: Sequence[str]) -> tuple[DataFrame, Column, dict[str, Column]]:
    """Return the rows packed into one struct column, so that a join has no duplicate
    column names; that column, which is NULL after a join that found no row; and the
    struct's fields by name."""
    from pyspark.sql import functions as f

    fields = [_column(name).alias(f"c{index}") for index, name in enumerate(names)]
    row = f.col(_PACKED)
    columns = {name: row.getField(f"c{index}") for index, name in enumerate(names)}
    return rows.select(f.struct(*fields).alias(_PACKED)), row, columns


def _column_from(origin: ColumnOrigin, kind: pa.DataType) -> Column:
    """Return the expression for a `ColumnOrigin`, cast to the type `kind`. The
    DataFrame must have its source column."""
    from pyspark.sql import functions as f

    if origin.source is None:
        value = pa.scalar(None, kind) if origin.value is None else origin.value
        return f.expr(literal(value)).cast(sql_type(kind))
    source_column = _column(origin.source)
    return source_column if origin.type == kind else source_column.cast(sql_type(kind))


def _with_completion(
    session: SparkSession, changes: DataFrame, write: Merge, part: StagedFiles
) -> DataFrame:
    """Return the folded changes with the values of `write.completed_columns`, which
    were read from the source by key and are in `part`. A row of `part` whose key has no
    change is added with the `_change_type` COMPLETION.

    `changes` must have `_sequence`. A change with a number above `part.above` is newer
    than the reading and keeps its values.
    """
    from pyspark.sql import functions as f

    schema = write.target.schema
    spelled = changelog_spelling(schema.names)
    part_rows = _read_part(session, part, ()).select(_mapped_columns(part, schema, schema.names))
    packed, packed_row, packed_fields = _pack(part_rows, (*write.key, *write.completed_columns))
    condition = f.lit(True)
    values = {"_change_type": f.coalesce(f.col("_change_type"), f.lit(COMPLETION))}
    for name in write.key:
        own_column = _column(spelled[name])
        condition &= own_column == packed_fields[name]
        values[spelled[name]] = f.coalesce(own_column, packed_fields[name])
    sequence = f.col("_sequence")
    is_completed = packed_row.isNotNull() & (sequence.isNull() | (sequence <= part.above))
    for name in write.completed_columns:
        own_column = _column(spelled[name])
        values[spelled[name]] = f.when(is_completed, packed_fields[name]).otherwise(own_column)
    return changes.join(packed, condition, "full_outer").select(
        *(
            values.get(name, _column(name)).alias(name)
            for name in changes.columns
            if name != "_sequence"
        )
    )


@contextmanager
def _look_up_values(
    session: SparkSession,
    changes: DataFrame,
    write: Merge | Replace,
    rows: DataFrame,
    staging: Staging,
) -> Iterator[DataFrame]:
    """Yield the folded changes with the values that they lack, looked up in `rows`. The
    result can be read only inside the context.

    `rows`: the current rows of the mirror or of the snapshot, under the source's column
    names. Raise `TableError` if the row of a change is not among them. In a `Replace`,
    however, a delete whose row is not in the snapshot is left out.
    """
    if not write.changes.lacking_columns:
        yield changes
        return
    with staging.new_folder() as folder:
        joined = _join_rows(changes, write, rows)
        joined.write.mode("overwrite").option("compression", "snappy").parquet(folder)
        complete = session.read.schema(joined.schema).parquet(folder)
        changes_without_row = complete.where(f"not {_IS_COMPLETE}")
        if isinstance(write, Replace):
            changes_without_row = changes_without_row.where(
                f"_change_type not in ('delete', '{KEPT_CHANGE_TYPE}')"
            )
            complete = complete.where(_IS_COMPLETE)
        if changes_without_row.limit(1).count():
            raise TableError(LOST_ROW_REASON, hint=RESUME_HINT)
        yield complete.drop(_IS_COMPLETE)


def _join_rows(changes: DataFrame, write: Merge | Replace, rows: DataFrame) -> DataFrame:
    """Return the changes with the values that they lack, without the columns
    `lack_flag_names` and `origin_names`. The column `_IS_COMPLETE` is true for a change
    that now has all its values, because it lacked none or because the row with them was
    found."""
    from pyspark.sql import functions as f

    names = write.target.schema.names
    lacking_columns = write.changes.lacking_columns
    lack_marks, origins = lack_flag_names(names), origin_names(names)
    spelled = changelog_spelling(names)
    packed, packed_row, packed_fields = _pack(rows, (*write.key, *lacking_columns))
    is_lacking, has_same_key = f.lit(False), f.lit(True)
    for name in write.key:
        has_same_key &= f.col(origins[name]) == packed_fields[name]
    values = {}
    for name in lacking_columns:
        lack_mark, own_column = f.col(lack_marks[name]), _column(spelled[name])
        is_lacking |= lack_mark
        values[spelled[name]] = f.when(lack_mark, packed_fields[name]).otherwise(own_column)
    dropped_names = {
        *(lack_marks[name] for name in lacking_columns),
        *(origins[name] for name in write.key),
    }
    columns = [
        values.get(name, _column(name)).alias(name)
        for name in changes.columns
        if name not in dropped_names
    ]
    is_complete = ~is_lacking | packed_row.isNotNull()
    return changes.join(packed, is_lacking & has_same_key, "left").select(
        *columns, is_complete.alias(_IS_COMPLETE)
    )
