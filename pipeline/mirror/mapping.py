"""Conversion of row images (rows before and after each change) to the columns of a
mirror (the Delta table with the current rows); and the choice of each key's last image.
The images can have an older structure than the mirror."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import changelog_names, changelog_spelling, keep_flag_names
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.values.row_images import change_types
from lockstep.pipeline.values.segment import ChangeType

KEPT_CHANGE_TYPE = "kept"
"""The `_change_type` that replaces "delete" in a key's last image if deletes are
ignored: the row stays in the mirror, with the values of this image."""


def last_changes(
    changes: pa.Table, key: Sequence[str], *, ignores_deletes: bool = False
) -> pa.Table:
    """Return the last image per key, with `_change_type` as `final_change_types` gives
    it. `changes`, in any order, has the key columns, `_change_type`, `_sequence`
    (unique) and others; the result has the same columns."""
    images = last_images(changes, key)
    kind = images.column("_change_type")
    index = images.schema.get_field_index("_change_type")
    return images.set_column(
        index, "_change_type", final_change_types(kind, ignores_deletes=ignores_deletes)
    )


def last_images(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last image per key, unchanged."""
    return changes.take(_last_indexes(changes, key))


def final_change_types(kind: pa.ChunkedArray, *, ignores_deletes: bool) -> pa.ChunkedArray:
    """Return the new `_change_type` of each key's last image. It is unchanged if the
    row is present after the image, otherwise "delete". With `ignores_deletes`, a row
    that a DELETE removed stays and gets `KEPT_CHANGE_TYPE`. A row that an UPDATE moved
    to another key still gets "delete", since the mirror then has the row under the new
    key."""
    removed_type: str | pa.ChunkedArray = ChangeType.DELETE.value
    if ignores_deletes:
        removed_type = pc.if_else(
            pc.equal(kind, ChangeType.DELETE.value), KEPT_CHANGE_TYPE, removed_type
        )
    return pc.if_else(is_present(kind), kind, removed_type)


def _last_indexes(changes: pa.Table, key: Sequence[str]) -> pa.Array:
    """Return the indexes of the last image per key, ascending."""
    keys = [comparable(changes.column(name)) for name in key]
    columns = pa.table([*keys, changes.column("_sequence")], names=[*key, "_sequence"])
    newest = columns.group_by(list(key)).aggregate([("_sequence", "max")])
    wanted = newest.column("_sequence_max").combine_chunks()
    return pc.indices_nonzero(pc.is_in(changes.column("_sequence"), value_set=wanted))


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with -0.0 replaced by 0.0. They are equal as keys in MySQL and
    Spark, but not when Arrow groups rows."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.add(column, pa.scalar(0.0, column.type))


def is_present(change_type: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each image whether the row is in the mirror after it."""
    return pc.is_in(
        change_type,
        value_set=pa.array(
            [ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value, KEPT_CHANGE_TYPE]
        ),
    )


def cast_value(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """Cast a value as `cast_column` does."""
    return cast_column(pa.array([value.as_py()], value.type), kind)[0]


def cast_column(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Cast a column to a type that `type_changes` allows. A boolean becomes a decimal
    through integers, since Arrow has no such cast."""
    if pa.types.is_boolean(column.type) and pa.types.is_decimal(kind):
        wide = pa.decimal128(min(38, kind.precision + 3), kind.scale)
        return column.cast(pa.int8()).cast(wide).cast(kind)
    return column.cast(kind)


def kept_columns(parts: Iterable[Sequence[ColumnOrigin]], schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns in which a row may keep the mirror's value, because the files
    of at least one part lack them. `parts`: the origins of the columns of each part,
    which is what was captured under one version of the structure."""
    absent = {i for part in parts for i, column in enumerate(part) if column.is_absent}
    return tuple(name for i, name in enumerate(schema.names) if i in absent)


def mapped(
    changes: pa.Table, columns: Sequence[ColumnOrigin], schema: pa.Schema, marks: Sequence[str]
) -> pa.Table:
    """Return the row images of `changes` with the columns `marks`, then the mirror's
    columns (`schema`), spelled as in a changelog. `columns`: the origin of each column
    of `schema`; if it has neither a source nor a value, the column is NULL."""
    images = row_images(changes)
    arrays = [images.column(mark) for mark in marks]
    for column, field in zip(columns, schema, strict=True):
        arrays.append(column_of(images, column, field.type))
    return pa.table(arrays, names=[*marks, *changelog_names(schema.names)])


def row_images(changes: pa.Table) -> pa.Table:
    """Return only the row images of `changes`, without events of the table such as
    TRUNCATE."""
    images = pc.is_in(changes.column("_change_type"), value_set=change_types())
    return changes.filter(images) if pc.any(pc.invert(images)).as_py() else changes


def images_within(changes: pa.Table, part: StagedFiles) -> pa.Table:
    """Return the images whose `_sequence` is above `part.above` and at most
    `part.through`."""
    if part.above:
        changes = changes.filter(pc.greater(changes.column("_sequence"), part.above))
    if part.through is not None:
        changes = changes.filter(pc.less_equal(changes.column("_sequence"), part.through))
    return changes


def column_of(rows: pa.Table, column: ColumnOrigin, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a mirror's column, of type `kind`, for a file's rows; NULL if `column` has
    neither a source nor a value."""
    if column.source is not None:
        return cast_column(rows.column(column.source), kind)
    if column.value is None or not column.value.is_valid:
        return pa.chunked_array([pa.nulls(rows.num_rows, kind)])
    return pa.chunked_array([pa.repeat(column.value.cast(kind), rows.num_rows)])


def folded(
    parts: Sequence[tuple[pa.Table, Sequence[ColumnOrigin]]],
    schema: pa.Schema,
    key: Sequence[str],
    marks: Sequence[str] = (),
    *,
    ignores_deletes: bool = False,
) -> pa.Table:
    """Return the last image of each key over all parts, with `_change_type` as
    `final_change_types` gives it.

    The columns: `_change_type`, `_sequence`, `marks`, and the mirror's columns as a
    changelog spells them. Then comes a boolean for each of `kept_columns`, which is
    true where the mirror's value stays (`keep_flag_names`). `parts`: row images, and an
    origin for each column of the mirror. The images must have `_change_type`,
    `_sequence`, `marks` and, if there are `kept_columns`, `_derived`.

    If the structure of a key's last image lacks a column, the key's earlier images are
    searched, newest first. An image that has the column gives the value. At an image
    that begins a row (`_begins_row`) the search ends, and the value is NULL. If no such
    image is found, the mirror's value stays.

    If the log is read twice, an update can come after the delete of its row. Here, the
    values that its image lacks are still taken from the key's images before the delete;
    `coalescing.coalesced`, which follows a row from key to key, begins a new row.
    """
    kept = kept_columns((columns for _, columns in parts), schema)
    names = ["_change_type", "_sequence", *marks, *(["_derived"] if kept else [])]
    mapped_parts = [mapped(table, columns, schema, names) for table, columns in parts]
    all_images = pa.concat_tables(mapped_parts)
    spelled = changelog_spelling(schema.names)
    key_columns = [spelled[name] for name in key]
    if not kept:
        return last_changes(all_images, key_columns, ignores_deletes=ignores_deletes)
    row_counts = [len(images) for images in mapped_parts]
    for name in kept:
        index = schema.get_field_index(name)
        absent = [columns[index].is_absent for _, columns in parts]
        flags = pa.array(np.repeat(absent, row_counts))
        all_images = all_images.append_column(keep_flag_names(schema.names)[name], flags)
    all_images = all_images.sort_by("_sequence")
    return _with_earlier_values(
        all_images, key_columns, schema, kept, ignores_deletes=ignores_deletes
    )


def _with_earlier_values(
    all_images: pa.Table,
    key: Sequence[str],
    schema: pa.Schema,
    kept: Sequence[str],
    *,
    ignores_deletes: bool,
) -> pa.Table:
    """Return the last image of each key in `all_images`, which is ordered by
    `_sequence`. Values that it lacks in the columns `kept` are taken from older
    images."""
    sequence = all_images.column("_sequence")
    begins_row = _begins_row(all_images, key)
    spelled = changelog_spelling(schema.names)
    flag_names = [keep_flag_names(schema.names)[name] for name in kept]
    sequence_with_value = {
        flag: pc.if_else(pc.or_(pc.invert(all_images.column(flag)), begins_row), sequence, None)
        for flag in flag_names
    }
    keys = {name: comparable(all_images.column(name)) for name in key}
    grouped = pa.table({**keys, "_sequence": sequence, **sequence_with_value}).group_by(list(key))
    newest = grouped.aggregate([(name, "max") for name in ("_sequence", *flag_names)])
    rows = all_images.take(_indexes_of(sequence, newest.column("_sequence_max")))
    rows = rows.drop_columns(["_derived"])
    for flag, name in zip(flag_names, kept, strict=True):
        origin = newest.column(f"{flag}_max")
        column = spelled[name]
        values = all_images.column(column).take(_indexes_of(sequence, origin))
        rows = rows.set_column(rows.schema.get_field_index(column), column, values)
        rows = rows.set_column(rows.schema.get_field_index(flag), flag, pc.is_null(origin))
    kind = rows.column("_change_type")
    return rows.set_column(
        0, "_change_type", final_change_types(kind, ignores_deletes=ignores_deletes)
    )


def _indexes_of(sequence: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.Array:
    """Return the index of each wanted number in an ascending sequence; NULL for NULL."""
    null = pc.is_null(wanted).to_numpy()
    numbers = pc.fill_null(wanted, 0).to_numpy()
    indexes = np.searchsorted(sequence.to_numpy(), numbers)
    return pa.array(np.where(null, 0, indexes), pa.int64(), mask=null)


def _begins_row(all_images: pa.Table, key: Sequence[str]) -> pa.Array:
    """Return for each image whether it is the first of a row with its key: an insert,
    or an update that moved a row to this key. An update did not move its row if its
    preimage, whose `_sequence` is one less, has the same key. A derived update has no
    preimage, because its row was read by SELECT, and moved none."""
    kind = all_images.column("_change_type")
    is_preimage = pc.equal(kind, ChangeType.UPDATE_PREIMAGE.value).to_numpy()
    is_postimage = pc.equal(kind, ChangeType.UPDATE_POSTIMAGE.value).to_numpy()
    is_insert = pc.equal(kind, ChangeType.INSERT.value).to_numpy()
    sequence = all_images.column("_sequence").to_numpy()
    keeps_key: npt.NDArray[np.bool_] = np.zeros(len(all_images), dtype=np.bool_)
    if len(all_images):
        keeps_key[1:] = is_preimage[:-1] & (np.diff(sequence) == 1)
        for name in key:
            column = comparable(all_images.column(name))
            keeps_key[1:] &= pc.equal(column[1:], column[:-1]).to_numpy().astype(np.bool_)
    is_derived = all_images.column("_derived").to_numpy().astype(np.bool_)
    return pa.array(is_insert | (is_postimage & ~keeps_key & ~is_derived))
