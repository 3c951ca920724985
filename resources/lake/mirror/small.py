"""The rows of a small mirror (the Delta table with a table's current rows) after a
write, computed in memory, because a Spark query is slow even for a few rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from lockstep.pipeline.mirror.coalescing import LOST_ROW_REASON, RESUME_HINT
from lockstep.pipeline.mirror.layout import (
    DELETED_AT,
    changelog_spelling,
    keep_flag_names,
    lack_flag_names,
    origin_names,
)
from lockstep.pipeline.mirror.mapping import (
    KEPT_CHANGE_TYPE,
    column_of,
    comparable,
    images_within,
    is_present,
)
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    FoldedChanges,
    Inputs,
    Merge,
    MirrorRows,
    MirrorWrite,
    Replace,
    StagedFiles,
    copied_mirrors,
    inputs_of,
)
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.segment import ChangeType
from lockstep.resources.lake.delta.versions import needs_spark, rows_at
from lockstep.resources.lake.mirror.direct import accepts_files
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table, file_named, lake_errors

ReadFile: TypeAlias = Callable[[str], pa.Table]

_INSERT_TYPES = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)
_DELETE_TYPES = (ChangeType.DELETE.value, ChangeType.UPDATE_PREIMAGE.value)
"""Change types of row images that add a row, and of those that remove one."""


def can_be_computed(path: LakePath, write: MirrorWrite, table: DeltaTable | None) -> bool:
    """Return whether the mirror's rows after a write can be computed without Spark.
    `table`: the mirror at `path`; None if there is none yet."""
    for rows in copied_mirrors(write):
        origin = file_named(path, rows.path)
        if needs_spark(origin, delta_table(origin, rows.version)):
            return False
    if not all(_casts_alike(part.columns, write.target.schema) for part in inputs_of(write)):
        return False
    if (
        isinstance(write, Replace)
        and write.target.policies.keeps_rows
        and (table is not None or write.deleted_rows.files)
    ):
        return False  # earlier rows stay; only the Spark query combines them with the new ones
    if table is None:
        return True
    return accepts_files(table) and not (reads_mirror(write) and needs_spark(path, table))


def reads_mirror(write: MirrorWrite) -> bool:
    """Return whether `rows_of_write` reads the mirror's rows before the write."""
    return isinstance(write, Merge | CountedMerge)


def rows_of_write(
    path: LakePath, write: MirrorWrite, version: int, read_file: ReadFile
) -> pa.Table:
    """Return the rows that an append adds, or all rows after any other write.
    `version`: the Delta version of the mirror before the write; -1 if there is no
    mirror. `read_file` returns the rows of a file that the write names."""
    schema = _all_columns(write)
    with lake_errors(path):
        match write:
            case Append(_, parts):
                return _with_deleted_at(
                    _read_images(read_file, parts, write.target.schema, _INSERT_TYPES), schema
                )
            case CountedMerge(_, parts):
                return _with_counted_images(read_file, _present_rows(path, schema, version), parts)
            case CountedReplace(_, parts, snapshot):
                return _with_counted_images(
                    read_file, _snapshot_rows(read_file, snapshot, schema, path), parts
                )
            case Merge():
                return _merged_rows(read_file, _present_rows(path, schema, version), write)
            case Replace():
                snapshot = _snapshot_rows(read_file, write.snapshot, write.target.schema, path)
                return _replaced_rows(read_file, _with_deleted_at(snapshot, schema), write)


def _all_columns(write: MirrorWrite) -> pa.Schema:
    """Return all columns of the mirror, including `_deleted_at` if deletes are "soft"."""
    schema = write.target.schema
    return schema.append(DELETED_AT) if write.target.policies.marks_deleted else schema


def _present_rows(path: LakePath, schema: pa.Schema, version: int) -> pa.Table:
    return rows_at(path, version, schema.names) if version >= 0 else schema.empty_table()


def _with_counted_images(
    read_file: ReadFile, rows: pa.Table, parts: Sequence[StagedFiles]
) -> pa.Table:
    inserted = _read_images(read_file, parts, rows.schema, _INSERT_TYPES)
    deleted = _read_images(read_file, parts, rows.schema, _DELETE_TYPES)
    return _without_deleted_copies(rows, inserted, deleted)


def _merged_rows(read_file: ReadFile, rows: pa.Table, write: Merge) -> pa.Table:
    changes = _read_changes(read_file, write.changes.files)
    soft = write.target.policies.marks_deleted
    if changes is not None:
        rows = apply_changes(rows, changes, write.key, write.changes, soft=soft)
    completion = write.completion
    if completion is None:
        return rows
    schema = write.target.schema
    spelled = changelog_spelling(schema.names)
    key_names = [spelled[name] for name in write.key]
    later_keys = (
        rows.schema.empty_table().select(write.key)
        if changes is None
        else images_within(changes, completion).select(key_names)
    )
    tables = [
        _mapped_columns(read_file(file), completion.columns, schema) for file in completion.files
    ]
    read_rows = pa.concat_tables([schema.empty_table(), *tables])
    return _with_completion(rows, read_rows, later_keys, write.key, write.completed_columns)


def _replaced_rows(read_file: ReadFile, rows: pa.Table, write: Replace) -> pa.Table:
    changes = _read_changes(read_file, write.changes.files)
    if changes is None:
        return rows
    soft = write.target.policies.marks_deleted
    return apply_changes(
        rows, changes, write.key, write.changes, soft=soft, ignore_missing_deletes=True
    )


def _with_deleted_at(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows, none of which is deleted, with `_deleted_at` if `schema` has it."""
    if len(schema) == rows.num_columns:
        return rows
    return rows.append_column(DELETED_AT, pa.nulls(rows.num_rows, DELETED_AT.type))


def _casts_alike(columns: Sequence[ColumnOrigin], schema: pa.Schema) -> bool:
    """Return whether every cast of the columns has the same result in Arrow and in
    Spark. Of a cast that `type_change` does not allow, this is unknown."""
    for column, field in zip(columns, schema, strict=True):
        value_type = None if column.value is None else column.value.type
        stored_type = column.type if column.source is not None else value_type
        if stored_type is not None and type_change(stored_type, field.type) is TypeChange.REREAD:
            return False
    return True


def _read_changes(read_file: ReadFile, files: Sequence[str]) -> pa.Table | None:
    return pa.concat_tables(read_file(file) for file in files) if files else None


def _read_images(
    read_file: ReadFile,
    parts: Sequence[StagedFiles],
    schema: pa.Schema,
    change_types: Sequence[str],
) -> pa.Table:
    tables = [schema.empty_table()]
    for part in parts:
        for file in part.files:
            images = images_within(read_file(file), part)
            images = images.filter(pc.is_in(images["_change_type"], pa.array(change_types)))
            tables.append(_mapped_columns(images, part.columns, schema))
    return pa.concat_tables(tables)


def _snapshot_rows(
    read_file: ReadFile, parts: Inputs, schema: pa.Schema, mirror: LakePath
) -> pa.Table:
    """Return the rows of a snapshot. `mirror`: any mirror of the lake that has the
    parts."""
    tables = [schema.empty_table()]
    for part in parts:
        if isinstance(part, MirrorRows):
            tables.append(_mapped_columns(_mirror_rows(part, mirror), part.columns, schema))
        else:
            tables += [
                _mapped_columns(read_file(file), part.columns, schema) for file in part.files
            ]
    return pa.concat_tables(tables)


def _mirror_rows(part: MirrorRows, mirror: LakePath) -> pa.Table:
    """Return the rows of another mirror that are not marked as deleted."""
    rows = rows_at(file_named(mirror, part.path), part.version)
    # A table may have a column of its own with this name, which marks nothing.
    is_table_column = any(column.source == DELETED_AT.name for column in part.columns)
    if is_table_column or DELETED_AT.name not in rows.column_names:
        return rows
    return rows.filter(pc.is_null(rows.column(DELETED_AT.name)))


def _mapped_columns(rows: pa.Table, columns: Sequence[ColumnOrigin], schema: pa.Schema) -> pa.Table:
    pairs = zip(columns, schema, strict=True)
    arrays = [column_of(rows, column, field.type) for column, field in pairs]
    return pa.Table.from_arrays(arrays, schema=schema)


def _without_deleted_copies(rows: pa.Table, inserted: pa.Table, deleted: pa.Table) -> pa.Table:
    """Return `rows` and `inserted`, with one copy removed for each row of `deleted`, in
    any order. Rows are compared by all their values, bit for bit; a row of `deleted`
    that is missing is ignored."""
    all_rows = pa.concat_tables([rows, inserted])
    delete_counts = Counter(_row_texts(deleted))
    indexes = []
    for index, row in enumerate(_row_texts(all_rows)):
        if delete_counts[row]:
            delete_counts[row] -= 1
        else:
            indexes.append(index)
    return all_rows.take(pa.array(indexes, pa.int64()))


def _row_texts(rows: pa.Table) -> list[str]:
    """Return each row as text, in which 0.0 and -0.0 differ, and NULL equals NULL."""
    return [repr(list(row.values())) for row in rows.to_pylist()]


# -- changes by key --------------------------------------------------------------------

_INDEX, _ASKED_INDEX = "at", "asked"
"""Names of the columns with the index of a key, and with the index of a key that is
looked for. The columns of the key itself have numbers as names, so that no name occurs
twice."""


def apply_changes(
    rows: pa.Table,
    changes: pa.Table,
    key: Sequence[str],
    folded: FoldedChanges = FoldedChanges(),  # noqa: B008 - a frozen value
    *,
    soft: bool = False,
    ignore_missing_deletes: bool = False,
) -> pa.Table:
    """Return the rows after the changes, in no particular order.

    `changes`: one image per key, with `_change_type`, the columns of `rows` as a
    changelog spells them, and the boolean columns that `folded` describes. A change
    whose row is missing adds the row, except for the `_change_type` "delete". With
    `soft`, `rows` have `_deleted_at`, and a deleted row stays as its last image shows
    it, with that image's `_committed_at` there.

    Raise `TableError` if a change needs values of a row that is missing.
    `ignore_missing_deletes`: the rows were read from the source, so a delete of a
    missing row is no error.
    """
    names = [name for name in rows.schema.names if not soft or name != DELETED_AT.name]
    spelled = changelog_spelling(names)
    changes = _look_up_values(
        rows, changes, key, names, folded, ignore_missing_deletes=ignore_missing_deletes
    )
    changed_keys = [changes.column(spelled[name]) for name in key]
    changes = _with_kept_values(
        rows, changes, _indexes_in(changed_keys, _key_columns(rows, key)), names, folded
    )
    is_unchanged = pc.is_null(_indexes_in(_key_columns(rows, key), changed_keys))
    is_present_row = is_present(changes.column("_change_type"))
    if soft:
        # If a delete has no time, its row does not stay (`Fold.unmarked_through`).
        is_shown = pc.or_(is_present_row, pc.is_valid(changes.column("_committed_at")))
        changes, is_present_row = changes.filter(is_shown), is_present_row.filter(is_shown)
        deleted_at = changes.column("_committed_at").cast(DELETED_AT.type)
        marks = pc.if_else(is_present_row, pa.scalar(None, DELETED_AT.type), deleted_at)
        changed_rows = changes.select(list(spelled.values())).append_column(DELETED_AT, marks)
    else:
        changed_rows = changes.filter(is_present_row).select(list(spelled.values()))
    changed_rows = changed_rows.rename_columns([*names, *([DELETED_AT.name] if soft else [])])
    new_rows = changed_rows.select(rows.schema.names).cast(rows.schema)
    return pa.concat_tables([rows.filter(is_unchanged), new_rows])


def _with_completion(
    rows: pa.Table,
    completion_rows: pa.Table,
    later_keys: pa.Table,
    key: Sequence[str],
    columns: Sequence[str],
) -> pa.Table:
    """Return the rows with the values of `columns` from `completion_rows`, which were
    read from the source by key; no row is added. `later_keys`: the keys of rows that
    changed after the reading. Their values are newer and stay."""
    keys = _key_columns(rows, key)
    indexes = _indexes_in(keys, _key_columns(completion_rows, key))
    is_completed = pc.and_(pc.is_valid(indexes), pc.is_null(_indexes_in(keys, later_keys.columns)))
    for name in columns:
        values = completion_rows.column(name).take(indexes)
        rows = _with_values(rows, name, is_completed, values)
    return rows


def _with_values(
    rows: pa.Table, name: str, is_replaced: pa.ChunkedArray, values: pa.ChunkedArray
) -> pa.Table:
    """Return the rows with other values in a column where `is_replaced` is true."""
    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    column = pc.if_else(is_replaced, values.cast(field.type), rows.column(index))
    return rows.set_column(index, field, column)


def _indexes_in(
    asked_keys: Sequence[pa.ChunkedArray], keys: Sequence[pa.ChunkedArray]
) -> pa.ChunkedArray:
    """Return for each key of `asked_keys` its index in `keys`, which are unique; NULL
    if it is missing. Both arguments have one array per key column."""
    names = [str(index) for index in range(len(asked_keys))]
    asked = _with_indexes(asked_keys, names, _ASKED_INDEX)
    joined = asked.join(_with_indexes(keys, names, _INDEX), keys=names, join_type="left outer")
    return joined.sort_by(_ASKED_INDEX).column(_INDEX)


def _with_indexes(
    columns: Sequence[pa.ChunkedArray], names: Sequence[str], index_name: str
) -> pa.Table:
    keys = pa.table([comparable(column) for column in columns], names=list(names))
    return keys.append_column(index_name, pa.array(range(keys.num_rows), pa.int64()))


def _key_columns(rows: pa.Table, key: Sequence[str]) -> list[pa.ChunkedArray]:
    return [rows.column(name) for name in key]


def _look_up_values(
    rows: pa.Table,
    changes: pa.Table,
    key: Sequence[str],
    names: list[str],
    folded: FoldedChanges,
    *,
    ignore_missing_deletes: bool,
) -> pa.Table:
    """Return the changes with the values that their images left out, looked up in
    `rows`. Raise `TableError` if such a row is missing; with `ignore_missing_deletes`,
    deletes of missing rows are left out of the result instead."""
    if not folded.lacking_columns:
        return changes
    spelled = changelog_spelling(names)
    flags, origins = lack_flag_names(names), origin_names(names)
    indexes = _indexes_in([changes.column(origins[name]) for name in key], _key_columns(rows, key))
    is_missing = pa.chunked_array([pa.repeat(False, changes.num_rows)])
    for name in folded.lacking_columns:
        is_lacking = changes.column(flags[name])
        changes = _with_values(changes, spelled[name], is_lacking, rows.column(name).take(indexes))
        is_missing = pc.or_(is_missing, pc.and_(is_lacking, pc.is_null(indexes)))
    if ignore_missing_deletes:
        is_delete = pc.is_in(
            changes.column("_change_type"), pa.array([ChangeType.DELETE.value, KEPT_CHANGE_TYPE])
        )
        changes = changes.filter(pc.invert(pc.and_(is_missing, is_delete)))
        is_missing = pc.and_not(is_missing, is_delete)
    if pc.any(is_missing).as_py():
        raise TableError(LOST_ROW_REASON, hint=RESUME_HINT)
    return changes


def _with_kept_values(
    rows: pa.Table,
    changes: pa.Table,
    indexes: pa.ChunkedArray,
    names: list[str],
    folded: FoldedChanges,
) -> pa.Table:
    """Return the changes with the earlier values of `rows` in the columns
    `folded.kept_columns`, where they stay. `indexes`: the index of each change's row in
    `rows`, NULL if it has none."""
    spelled = changelog_spelling(names)
    flags = keep_flag_names(names)
    for name in folded.kept_columns:
        mirror_values = rows.column(name).take(indexes)
        changes = _with_values(changes, spelled[name], changes.column(flags[name]), mirror_values)
    return changes
