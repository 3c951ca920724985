"""Row images + where they stand in the log → a changelog's record batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.stream import ring
from pipeline.changes.layout import MARKS, logged_field, present_name
from pipeline.row_images import CHANGE_TYPES, RowImages, change_types, unpacked
from pipeline.segment import ChangeType, RowCounts

_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_BEFORE = CHANGE_TYPES.index(ChangeType.UPDATE_PREIMAGE)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)
_DELETE = CHANGE_TYPES.index(ChangeType.DELETE)
_MOMENT = MARKS.field("_committed_at").type

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TransactionMarks:
    """Per transaction: its file's name, its GTID (null for an anonymous one), and when it
    committed, in microseconds since the epoch."""

    file: pa.Array
    gtid: pa.Array
    committed_at: Integers


def sequences(images: RowImages, first: Integers, before: int = 0) -> Integers:
    """`_sequence` per image: its event's `first`, plus its index within the event; `before`:
    images that an earlier batch held of the first event here."""
    event = images.event.to_numpy()
    starts = np.flatnonzero(np.diff(event, prepend=-1))
    within = np.arange(len(event)) - np.repeat(starts, np.diff(starts, append=len(event)))
    if before and len(event):
        within[event == event[0]] += before
    return np.asarray(first[event] + within, dtype=np.int64)


def changelog_rows(
    schema: pa.Schema, count: int, marks: Mapping[str, Any], columns: Sequence[pa.Array] = ()
) -> pa.RecordBatch:
    """So many rows of a changelog with `schema`. `marks`: by name an array, or one value for all
    rows; NULL where there is none. `columns`: those behind the marks, NULL in the rest."""
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
    first_row: Integers,
    transactions: TransactionMarks,
    schema: pa.Schema,
    *,
    batch: int,
    schema_version: int,
) -> pa.RecordBatch:
    """The changelog rows of these images; `numbers` are their `sequences`, `schema` is
    `layout.captured_schema`; of images that leave columns out, with more of `file_schema`.
    `events`: the decoded events' rows in the ring's index; `first_row`: `_row` of each one's first
    row."""
    count = images.columns.num_rows
    event = images.event.to_numpy()
    transaction = events[:, ring.TRANSACTION][event]
    marks = {
        "_change_type": change_types().take(images.change_type),
        "_sequence": pa.array(numbers),
        "_file": _spread(transactions.file, transaction),
        "_offset": pa.array(events[:, ring.OFFSET][event]),
        "_row": pa.array(images.row.to_numpy() + first_row[event].astype(np.int32)),
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
    if len(schema) > len(MARKS) + len(arrays):
        nothing = pa.nulls(count, pa.binary())
        arrays.append(_listed(nothing if images.updated is None else images.updated, names))
    logged = images.present if images.logged is None else images.logged
    if logged is not None:
        arrays.append(_listed(logged, names))
    if images.present is not None:
        arrays.append(images.present)
    if more := len(MARKS) + len(arrays) - len(schema):
        schema = file_schema(schema, names, more)
    return changelog_rows(schema, count, marks, arrays)


def file_schema(schema: pa.Schema, names: list[str], more: int) -> pa.Schema:
    """The columns of a file of `segment.ENDINGS[more]`: behind those of `schema` the names of
    the columns that the log had, and `RowImages.present`. `names`: the table's columns."""
    behind = [logged_field(names), pa.field(present_name(names), pa.binary())]
    return pa.schema([*schema, *behind[:more]])


def _listed(bits: pa.BinaryArray, names: list[str]) -> pa.ListArray:
    """Per image the names whose bit is set; NULL where there are no bits."""
    whole = bits.is_null().to_numpy(zero_copy_only=False)
    there = unpacked(bits)[:, : len(names)] & ~whole[:, None]
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    which = pa.array(np.nonzero(there)[1])
    values = pa.array(names, pa.string()).take(which)
    return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(whole))


def _spread(values: pa.Array, which: Integers) -> pa.Array:
    """`values[which]`; one value for all is the ordinary case of a large transaction."""
    if len(which) and which[0] == which[-1] and which.min() == which.max():
        return pa.repeat(values[int(which[0])], len(which))
    return values.take(pa.array(which))


def _moments(microseconds: Integers) -> pa.Array:
    return pa.array(microseconds).view(_MOMENT)


def images_per_event(images: RowImages, events: int) -> Integers:
    return np.bincount(images.event.to_numpy(), minlength=events)


def rows_per_event(images: RowImages, events: int) -> Integers:
    """How many rows; an update's two images are one."""
    kept = images.change_type.to_numpy() != _BEFORE
    return np.bincount(images.event.to_numpy()[kept], minlength=events)


def row_counts(images: RowImages) -> RowCounts:
    """Rows by operation; an update's two images are one row."""
    kinds = np.bincount(images.change_type.to_numpy(), minlength=len(CHANGE_TYPES))
    return RowCounts(int(kinds[_INSERT]), int(kinds[_UPDATE]), int(kinds[_DELETE]))
