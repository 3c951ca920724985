"""Decoded row images: what a decoder hands on.

Not here: decoding (`pipeline.binlog`), numbering (`pipeline.changes.marks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.segment import ChangeType

CHANGE_TYPES = (
    ChangeType.INSERT,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.DELETE,
)
"""What `RowImages.change_type` counts in."""


@cache
def change_types() -> pa.Array:
    """Their words in that order. Not made at import: with its first array Arrow imports pandas,
    which a run without rows does not need."""
    return pa.array([kind.value for kind in CHANGE_TYPES], pa.string())


@dataclass(frozen=True, slots=True)
class RowImages:
    """Decoded row images of one table, in order of event and row.

    `columns`: the table's columns (`schema.types.arrow_schema`), one row per image.
    `event`: int32, index of the image's event in what was decoded. `row`: int32, the
    row's index within its event; an update's two images share it. `change_type`: int8,
    index into `CHANGE_TYPES`. `softened`: values replaced by NULL by policy, per column;
    `unknown`: texts with a code that has no character, U+FFFD in them.
    `present`: binary, per image a bit for each column, the first one lowest: whether the
    server logged it; where not, the column is NULL. NULL for an image with every column;
    None where all images are so. `logged`: the same, as the log had it: `present` counts what is
    known otherwise as well, an inserted row's defaults. `updated`: likewise, per image after an
    update which columns it gave another value; NULL for other images, None where nobody asked.
    """

    columns: pa.RecordBatch
    event: pa.Int32Array
    row: pa.Int32Array
    change_type: pa.Int8Array
    softened: Mapping[str, int]
    present: pa.BinaryArray | None = None
    unknown: Mapping[str, int] = field(default_factory=dict)
    logged: pa.BinaryArray | None = None
    updated: pa.BinaryArray | None = None


def in_order(apart: Sequence[tuple[RowImages, npt.NDArray[np.int64]]]) -> RowImages:
    """Images that were decoded apart, in the order of their events. With each: the index, in
    what is put together, of the events that its own `event` counts."""
    whole = [images for images, _ in apart]
    event = np.concatenate([which[images.event.to_numpy()] for images, which in apart])
    order = pa.array(np.argsort(event, kind="stable"))
    softened, unknown = Counter[str](), Counter[str]()
    for images in whole:
        softened.update(images.softened)
        unknown.update(images.unknown)
    return RowImages(
        columns=pa.concat_batches([images.columns for images in whole]).take(order),
        event=pa.array(event.astype(np.int32)).take(order),
        row=pa.concat_arrays([images.row for images in whole]).take(order),
        change_type=pa.concat_arrays([images.change_type for images in whole]).take(order),
        softened=softened,
        unknown=unknown,
        present=_bits_together([(one.present, one) for one in whole], order),
        logged=_bits_together([(one.logged, one) for one in whole], order),
        updated=_bits_together([(one.updated, one) for one in whole], order),
    )


def _bits_together(
    bits: Sequence[tuple[pa.Array | None, RowImages]], order: pa.Array
) -> pa.Array | None:
    if all(one is None for one, _ in bits):
        return None
    none = pa.binary()
    parts = [pa.nulls(len(images.event), none) if one is None else one for one, images in bits]
    return pa.concat_arrays(parts).take(order)


def packed(there: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> pa.Array:
    """`there` (images x columns) as `RowImages.present` has it; NULL where `whole`."""
    count = len(there)
    bits = np.packbits(there, axis=1, bitorder="little")
    width = bits.shape[1]
    offsets = np.concatenate([[0], np.cumsum(np.where(whole, 0, width))]).astype(np.int32)
    validity = np.packbits(~whole, bitorder="little")
    buffers = [pa.py_buffer(one.tobytes()) for one in (validity, offsets, bits[~whole])]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def unpacked(bits: pa.Array) -> npt.NDArray[np.bool_]:
    """Images x columns: what `packed` was given, with false for up to seven columns more;
    true where it is NULL. No column where it is NULL everywhere."""
    valid = bits.drop_null()
    if not len(valid):
        return np.ones((len(bits), 0), np.bool_)
    _, offsets, data = valid.buffers()
    ends = np.frombuffer(offsets, np.int32)[valid.offset :][: len(valid) + 1]
    there = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(len(valid), -1)
    found = np.ones((len(bits), there.shape[1] * 8), np.bool_)
    rows = bits.is_valid().to_numpy(zero_copy_only=False)
    found[rows] = np.unpackbits(there, axis=1, bitorder="little").astype(np.bool_)
    return found
