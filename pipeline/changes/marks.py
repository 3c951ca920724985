"""Row images + where they stand in the log → a changelog's record batch. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.batch import ChangeType, RowCounts
from pipeline.changes.layout import MARKS
from pipeline.ports import CHANGE_TYPES, RowImages

_NAMES = pa.array([kind.value for kind in CHANGE_TYPES], pa.string())
_INSERT = CHANGE_TYPES.index(ChangeType.INSERT)
_UPDATE = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)
_DELETE = CHANGE_TYPES.index(ChangeType.DELETE)


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """Per decoded event: where it stands, whose transaction it is part of, and the
    `_sequence` of its first image. Times in microseconds since the epoch."""

    first_sequence: npt.NDArray[np.int64]
    file: Sequence[str]
    offset: Sequence[int]
    gtid: Sequence[str | None]
    committed_at: Sequence[int]
    executed_at: Sequence[int]
    server_id: Sequence[int]


def sequences(images: RowImages, places: EventPlaces) -> npt.NDArray[np.int64]:
    """`_sequence` per image: its event's first, plus its index within the event."""
    event = images.event.to_numpy()
    starts = np.flatnonzero(np.diff(event, prepend=-1))
    within = np.arange(len(event)) - np.repeat(starts, np.diff(starts, append=len(event)))
    return np.asarray(places.first_sequence[event] + within, dtype=np.int64)


def with_marks(
    images: RowImages, places: EventPlaces, schema: pa.Schema, *, batch: int, schema_version: int
) -> pa.RecordBatch:
    """The changelog rows of these images; `schema` is `layout.changelog_schema`."""
    count = images.columns.num_rows
    event = images.event

    def per_event(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(event)

    marks = {
        "_change_type": _NAMES.take(images.change_type),
        "_sequence": pa.array(sequences(images, places)),
        "_file": per_event(places.file, pa.string()),
        "_offset": per_event(places.offset, pa.int64()),
        "_row": images.row,
        "_gtid": per_event(places.gtid, pa.string()),
        "_committed_at": per_event(places.committed_at, MARKS.field("_committed_at").type),
        "_executed_at": per_event(places.executed_at, MARKS.field("_executed_at").type),
        "_server_id": per_event(places.server_id, pa.int64()),
        "_batch": pa.repeat(pa.scalar(batch, pa.int64()), count),
        "_schema_version": pa.repeat(pa.scalar(schema_version, pa.int32()), count),
        "_derived": pa.repeat(pa.scalar(False), count),
    }
    arrays = [*(marks[name] for name in MARKS.names), *images.columns.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row_counts(images: RowImages) -> RowCounts:
    """Rows by operation; an update's two images are one row."""
    kinds = np.bincount(images.change_type.to_numpy(), minlength=len(CHANGE_TYPES))
    return RowCounts(int(kinds[_INSERT]), int(kinds[_UPDATE]), int(kinds[_DELETE]))
