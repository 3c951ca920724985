"""Record batches of a changelog (the Delta table with all changes of a table), made
from row images and their places in the binary log. Pure. A changelog's own columns are
called marks (`layout.MARKS`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.stream import ring
from lockstep.pipeline.mirror.layout import MARKS, logged_field, present_name
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages, change_types, unpack_bits
from lockstep.pipeline.values.segment import ChangeType, RowCounts

_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_BEFORE = CHANGE_TYPES.index(ChangeType.UPDATE_PREIMAGE)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)
_DELETE = CHANGE_TYPES.index(ChangeType.DELETE)
_MOMENT = MARKS.field("_committed_at").type

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TransactionMarks:
    """Columns with one entry per transaction: the name of its log file, its GTID (NULL
    for an anonymous transaction), and its commit time in microseconds since the
    epoch."""

    file: pa.Array
    gtid: pa.Array
    committed_at: Integers


def sequences(images: RowImages, first: Integers, before: int = 0) -> Integers:
    """Return the `_sequence` of each image. `first`: for each event, the number of its
    first image; the event's further images follow without gaps. `before`: number of
    images of the first event that an earlier call has numbered."""
    event = images.event.to_numpy()
    starts = np.flatnonzero(np.diff(event, prepend=-1))
    within = np.arange(len(event)) - np.repeat(starts, np.diff(starts, append=len(event)))
    if before and len(event):
        within[event == event[0]] += before
    return np.asarray(first[event] + within, dtype=np.int64)


def changelog_rows(
    schema: pa.Schema, count: int, marks: Mapping[str, Any], columns: Sequence[pa.Array] = ()
) -> pa.RecordBatch:
    """Return `count` rows of a changelog with `schema`. `marks`: for each name an
    array, or one value for all rows; a missing mark is NULL. `columns`: the first
    columns after the marks; columns after these are NULL."""
    arrays = [
        value
        if isinstance(value := marks.get(field.name), pa.Array)
        else pa.repeat(pa.scalar(value, field.type), count)
        for field in MARKS
    ]
    arrays += columns
    arrays += [pa.nulls(count, kind) for kind in schema.types[len(arrays) :]]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def with_marks(
    images: RowImages,
    numbers: Integers,
    events: Integers,
    first_rows: Integers,
    transactions: TransactionMarks,
    schema: pa.Schema,
    *,
    batch: int,
    schema_version: int,
) -> pa.RecordBatch:
    """Return the changelog rows of these images.

    `numbers`: the `_sequence` of each image. `events`: one row for each decoded event,
    with the columns of the index of `binlog.stream.ring`, the buffer of events.
    `first_rows`: for each event, the `_row` of its first row. `schema`: that of
    `layout.captured_schema`. If images leave columns out, the result also has the
    further columns of `file_schema`.
    """
    count = images.columns.num_rows
    event = images.event.to_numpy()
    transaction = events[:, ring.TRANSACTION][event]
    marks = {
        "_change_type": change_types().take(images.change_type),
        "_sequence": pa.array(numbers),
        "_file": _spread(transactions.file, transaction),
        "_offset": pa.array(events[:, ring.OFFSET][event]),
        "_row": pa.array(images.row.to_numpy() + first_rows[event].astype(np.int32)),
        "_gtid": _spread(transactions.gtid, transaction),
        "_committed_at": _moments(transactions.committed_at[transaction]),
        "_executed_at": _moments(events[:, ring.TIMESTAMP][event] * 1_000_000),
        "_server_id": pa.array(events[:, ring.SERVER_ID][event]),
        "_batch": batch,
        "_schema_version": schema_version,
        "_derived": False,
    }
    arrays = list(images.columns.columns)
    names = images.columns.schema.names
    has_updated_field = len(schema) > len(MARKS) + len(arrays)
    if has_updated_field:
        no_bits = pa.nulls(count, pa.binary())
        arrays.append(_listed(no_bits if images.updated is None else images.updated, names))
    logged = images.present if images.logged is None else images.logged
    if logged is not None:
        arrays.append(_listed(logged, names))
    if images.present is not None:
        arrays.append(images.present)
    if more := len(MARKS) + len(arrays) - len(schema):
        schema = file_schema(schema, names, more)
    return changelog_rows(schema, count, marks, arrays)


def file_schema(schema: pa.Schema, names: Sequence[str], more: int) -> pa.Schema:
    """Return the columns of a segment's file with the ending
    `segment.FILE_ENDINGS[more]`: `schema`, and the first `more` of two further columns,
    `layout.logged_field` and `RowImages.present`. `names`: the table's column names."""
    added = [logged_field(names), pa.field(present_name(names), pa.binary())]
    return pa.schema([*schema, *added[:more]])


def _listed(bits: pa.BinaryArray, names: Sequence[str]) -> pa.ListArray:
    """Return for each image the names whose bit is set; NULL for an image without bits."""
    has_no_bits = bits.is_null().to_numpy(zero_copy_only=False)
    is_set = unpack_bits(bits, len(names)) & ~has_no_bits[:, None]
    ends = np.concatenate([[0], np.cumsum(is_set.sum(axis=1))]).astype(np.int32)
    values = pa.array(names, pa.string()).take(pa.array(np.nonzero(is_set)[1]))
    return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(has_no_bits))


def _spread(values: pa.Array, indexes: Integers) -> pa.Array:
    """Return `values[indexes]`. This is fast if all indexes are the same, as in a large
    transaction."""
    if len(indexes) and indexes[0] == indexes[-1] and indexes.min() == indexes.max():
        return pa.repeat(values[int(indexes[0])], len(indexes))
    return values.take(pa.array(indexes))


def _moments(microseconds: Integers) -> pa.Array:
    return pa.array(microseconds).view(_MOMENT)


def images_per_event(images: RowImages, events: int) -> Integers:
    """Return the number of images of each event; `events` is the number of events."""
    return np.bincount(images.event.to_numpy(), minlength=events)


def rows_per_event(images: RowImages, events: int) -> Integers:
    """Return the number of rows of each event; an update's two images are one."""
    is_counted = images.change_type.to_numpy() != _BEFORE
    return np.bincount(images.event.to_numpy()[is_counted], minlength=events)


def row_counts(images: RowImages) -> RowCounts:
    """Return the number of rows by operation; an update's two images are one row."""
    kinds = np.bincount(images.change_type.to_numpy(), minlength=len(CHANGE_TYPES))
    return RowCounts(int(kinds[_INSERT]), int(kinds[_UPDATE]), int(kinds[_DELETE]))
