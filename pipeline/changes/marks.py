"""Row images + where they stand in the log → a changelog's record batch. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """Per decoded event: its transaction's index, its offset, its second, its server, the
    `_sequence` of its first image and the `_row` of its first row."""

    transaction: Integers
    offset: Integers
    second: Integers
    server_id: Integers
    first_sequence: Integers
    first_row: Integers


def sequences(images: RowImages, places: EventPlaces, before: int = 0) -> Integers:
    """`_sequence` per image: its event's first, plus its index within the event; `before`:
    images that an earlier batch held of the first event here."""
    event = images.event.to_numpy()
    starts = np.flatnonzero(np.diff(event, prepend=-1))
    within = np.arange(len(event)) - np.repeat(starts, np.diff(starts, append=len(event)))
    if before and len(event):
        within[event == event[0]] += before
    return np.asarray(places.first_sequence[event] + within, dtype=np.int64)


def with_marks(
    images: RowImages,
    numbers: Integers,
    places: EventPlaces,
    transactions: TransactionMarks,
    schema: pa.Schema,
    *,
    batch: int,
    schema_version: int,
) -> pa.RecordBatch:
    """The changelog rows of these images; `numbers` are their `sequences`, `schema` is
    `layout.captured_schema`; of images that leave columns out, with more of `file_schema`."""
    count = images.columns.num_rows
    event = images.event.to_numpy()
    transaction = places.transaction[event]
    row = images.row.to_numpy() + places.first_row[event].astype(np.int32)
    marks = {
        "_change_type": change_types().take(images.change_type),
        "_sequence": pa.array(numbers),
        "_file": _spread(transactions.file, transaction),
        "_offset": pa.array(places.offset[event]),
        "_row": pa.array(row),
        "_gtid": _spread(transactions.gtid, transaction),
        "_committed_at": _moments(transactions.committed_at[transaction]),
        "_executed_at": _moments(places.second[event] * 1_000_000),
        "_server_id": pa.array(places.server_id[event]),
        "_batch": pa.repeat(pa.scalar(batch, pa.int64()), count),
        "_schema_version": pa.repeat(pa.scalar(schema_version, pa.int32()), count),
        "_derived": pa.repeat(pa.scalar(False), count),
    }
    arrays = [*(marks[name] for name in MARKS.names), *images.columns.columns]
    names = images.columns.schema.names
    if len(schema) > len(arrays):
        nothing = pa.nulls(count, pa.binary())
        arrays.append(_listed(nothing if images.updated is None else images.updated, names))
    logged = images.present if images.logged is None else images.logged
    if logged is not None:
        arrays.append(_listed(logged, names))
    if images.present is not None:
        arrays.append(images.present)
    more = len(arrays) - len(schema)
    if more:
        schema = file_schema(schema, names, more)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
    """How many images each of so many events has here."""
    return np.bincount(images.event.to_numpy(), minlength=events)


def rows_per_event(images: RowImages, events: int) -> Integers:
    """How many rows; an update's two images are one."""
    kept = images.change_type.to_numpy() != _BEFORE
    return np.bincount(images.event.to_numpy()[kept], minlength=events)


def row_counts(images: RowImages) -> RowCounts:
    """Rows by operation; an update's two images are one row."""
    kinds = np.bincount(images.change_type.to_numpy(), minlength=len(CHANGE_TYPES))
    return RowCounts(int(kinds[_INSERT]), int(kinds[_UPDATE]), int(kinds[_DELETE]))
