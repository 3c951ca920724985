"""Row images of one structure → the columns of a mirror of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.layout import changelog_names, keep_names
from pipeline.ports.mirror_writes import PartColumn, StagedFiles
from pipeline.row_images import change_types
from pipeline.segment import ChangeType

KEPT = "kept"
"""The `_change_type` of a folded change whose row was deleted, where deletes are ignored: the row
stays as this image shows it."""


def latest(
    changes: pa.Table, key: Sequence[str], *, numbered: bool = False, ignored: bool = False
) -> pa.Table:
    """The last image per key, `_change_type` as `outcome` says.

    `changes` holds the key columns, `_change_type`, `_sequence` (unique, rows in any
    order) and whatever else; the answer has the same columns, without `_sequence` unless
    `numbered`.
    """
    kept = newest(changes, key)
    if not numbered:
        kept = kept.drop_columns(["_sequence"])
    kind = kept.column("_change_type")
    at = kept.schema.get_field_index("_change_type")
    return kept.set_column(at, "_change_type", outcome(kind, ignored=ignored))


def newest(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last image per key, as it is."""
    return changes.take(_latest_rows(changes, key))


def outcome(kind: pa.ChunkedArray, *, ignored: bool) -> pa.ChunkedArray:
    """What the last image of each key leaves, as a `_change_type`: "delete" wherever the row is
    gone after it. With `ignored` deletes a row that was deleted stays (`KEPT`). One that an UPDATE
    gave another key does not: the row is still there, under that key."""
    gone: str | pa.ChunkedArray = ChangeType.DELETE.value
    if ignored:
        gone = pc.if_else(pc.equal(kind, ChangeType.DELETE.value), KEPT, gone)
    return pc.if_else(is_present(kind), kind, gone)


def _latest_rows(changes: pa.Table, key: Sequence[str]) -> pa.Array:
    """Indexes (ascending) of the last image per key."""
    keys = [comparable(changes.column(name)) for name in key]
    columns = pa.table([*keys, changes.column("_sequence")], names=[*key, "_sequence"])
    newest = columns.group_by(list(key)).aggregate([("_sequence", "max")])
    wanted = newest.column("_sequence_max").combine_chunks()
    return pc.indices_nonzero(pc.is_in(changes.column("_sequence"), value_set=wanted))


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """-0.0 and 0.0 are one key to MySQL and to Spark, two to a grouping by bits."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.add(column, pa.scalar(0.0, column.type))


def is_present(change_type: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether the row is in the mirror after each image (boolean)."""
    return pc.is_in(change_type, value_set=pa.array(["insert", "update_postimage", KEPT]))


Mapped = tuple[pa.Table, Sequence[PartColumn]]
"""Row images, and a `PartColumn` for each column of the mirror."""


def cast_value(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    return cast_column(pa.array([value.as_py()], value.type), kind)[0]


def cast_column(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A cast that `widening` allows; Arrow knows none from boolean to decimal."""
    if pa.types.is_boolean(column.type) and pa.types.is_decimal(kind):
        wide = pa.decimal128(min(38, kind.precision + 3), kind.scale)
        return column.cast(pa.int8()).cast(wide).cast(kind)
    return column.cast(kind)


def kept_columns(parts: Iterable[Sequence[PartColumn]], schema: pa.Schema) -> tuple[str, ...]:
    """Columns of the mirror that some part does not know."""
    absent = {i for part in parts for i, column in enumerate(part) if column.absent}
    return tuple(name for i, name in enumerate(schema.names) if i in absent)


def mapped(
    changes: pa.Table, columns: Sequence[PartColumn], schema: pa.Schema, marks: Sequence[str]
) -> pa.Table:
    """The row images of `changes` with the mirror's columns, as a changelog spells them,
    behind `marks`, which they have; NULL where they do not know a column."""
    images = row_images(changes)
    found = [images.column(mark) for mark in marks]
    for column, field in zip(columns, schema, strict=True):
        found.append(_column(images, column, field.type))
    return pa.table(found, names=[*marks, *changelog_names(schema.names)])


def row_images(changes: pa.Table) -> pa.Table:
    """Without rows that stand for no row."""
    images = pc.is_in(changes.column("_change_type"), value_set=change_types())
    return changes.filter(images) if pc.any(pc.invert(images)).as_py() else changes


def images_within(changes: pa.Table, part: StagedFiles) -> pa.Table:
    """Those that count by their `_sequence`."""
    if part.above:
        changes = changes.filter(pc.greater(changes.column("_sequence"), part.above))
    if part.through is not None:
        changes = changes.filter(pc.less_equal(changes.column("_sequence"), part.through))
    return changes


def _column(images: pa.Table, column: PartColumn, kind: pa.DataType) -> pa.ChunkedArray:
    if column.source is not None:
        return cast_column(images.column(column.source), kind)
    if column.value is None or not column.value.is_valid:
        return pa.chunked_array([pa.nulls(images.num_rows, kind)])
    return pa.chunked_array([pa.repeat(column.value.cast(kind), images.num_rows)])


def folded(
    parts: Sequence[Mapped],
    schema: pa.Schema,
    key: Sequence[str],
    marks: Sequence[str] = (),
    *,
    numbered: bool = False,
    ignored: bool = False,
) -> pa.Table:
    """The last image per key over all parts, as `latest` gives it: `_change_type`, `marks`,
    the mirror's columns as a changelog spells them; then, for each of `kept_columns`, a
    boolean named by `keep_names`: whether the mirror's value stays.

    A value that the last image does not know is that of the newest image which knows it,
    unless the row began anew since: then it is NULL. `parts` have `_change_type`,
    `_sequence` and `marks`; the answer has `_sequence` too if it is to be `numbered`.

    `coalescing.coalesced` is another fold: it follows a row from key to key, and what changes a
    row that was gone already begins one there. Here keys are all that counts, and such an image,
    as a log that is read twice has it, knows what the key's images before it knew.
    """
    names = ["_change_type", "_sequence", *marks]
    whole = pa.concat_tables(mapped(one, columns, schema, names) for one, columns in parts)
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    by = [spelled[name] for name in key]
    kept = kept_columns((columns for _, columns in parts), schema)
    if not kept:
        return latest(whole, by, numbered=numbered, ignored=ignored)
    sizes = [
        int(pc.sum(pc.is_in(one.column("_change_type"), value_set=change_types())).as_py() or 0)
        for one, _ in parts
    ]
    for name in kept:
        at = schema.get_field_index(name)
        absent = [columns[at].absent for _, columns in parts]
        mark = pa.array(np.repeat(absent, sizes))
        whole = whole.append_column(keep_names(schema.names)[at], mark)
    whole = whole.sort_by("_sequence")
    found = _with_kept(whole, by, [spelled[n] for n in kept], schema, kept, ignored=ignored)
    return found if numbered else found.drop_columns(["_sequence"])


def _with_kept(
    whole: pa.Table,
    key: Sequence[str],
    spelled: Sequence[str],
    schema: pa.Schema,
    kept: Sequence[str],
    *,
    ignored: bool,
) -> pa.Table:
    """The last images of `whole`, which is in order, with what older ones know."""
    sequence = whole.column("_sequence")
    began = _began(whole, key)
    marks = [keep_names(schema.names)[schema.get_field_index(name)] for name in kept]
    speaks = {
        mark: pc.if_else(pc.or_(pc.invert(whole.column(mark)), began), sequence, None)
        for mark in marks
    }
    keys = {name: comparable(whole.column(name)) for name in key}
    grouped = pa.table({**keys, "_sequence": sequence, **speaks}).group_by(list(key))
    newest = grouped.aggregate([(name, "max") for name in ("_sequence", *marks)])
    rows = whole.take(_rows(sequence, newest.column("_sequence_max")))
    for mark, name in zip(marks, spelled, strict=True):
        told = newest.column(f"{mark}_max")
        values = whole.column(name).take(_rows(sequence, told))
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
        rows = rows.set_column(rows.schema.get_field_index(mark), mark, pc.is_null(told))
    kind = rows.column("_change_type")
    return rows.set_column(0, "_change_type", outcome(kind, ignored=ignored))


def _rows(sequence: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.Array:
    """Where the wanted numbers stand in an ascending sequence; NULL for NULL."""
    gone = pc.is_null(wanted).to_numpy()
    numbers = pc.fill_null(wanted, 0).to_numpy()
    found = np.searchsorted(sequence.to_numpy(), numbers)
    return pa.array(np.where(gone, 0, found), pa.int64(), mask=gone)


def _began(whole: pa.Table, key: Sequence[str]) -> pa.Array:
    """Whether a row began with an image: an insert, or an update that brought it its key."""
    kind = whole.column("_change_type")
    updated = pc.equal(kind, ChangeType.UPDATE_POSTIMAGE.value).to_numpy()
    before = pc.equal(kind, ChangeType.UPDATE_PREIMAGE.value).to_numpy()
    sequence = whole.column("_sequence").to_numpy()
    same: npt.NDArray[np.bool_] = np.zeros(len(whole), dtype=np.bool_)
    if len(whole):
        same[1:] = before[:-1] & (np.diff(sequence) == 1)
        for name in key:
            column = comparable(whole.column(name))
            same[1:] &= pc.equal(column[1:], column[:-1]).to_numpy().astype(np.bool_)
    inserted = pc.equal(kind, ChangeType.INSERT.value).to_numpy()
    return pa.array(inserted | (updated & ~same))
