"""Decoded row images, which a decoder of row events returns.

Not here: decoding (`pipeline.binlog`), numbering (`pipeline.mirror.marks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.values.segment import ChangeType

CHANGE_TYPES = (
    ChangeType.INSERT,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.DELETE,
)
"""The change types of row images. `RowImages.change_type` holds indices into this
tuple."""


@cache
def change_types() -> pa.Array:
    """Return `CHANGE_TYPES` as an array. It is not made at import, because Arrow
    imports pandas with its first array, and a run without rows does not need pandas."""
    return pa.array([kind.value for kind in CHANGE_TYPES], pa.string())


@dataclass(frozen=True, slots=True)
class RowImages:
    """Decoded row images of one table, in order of event and row.

    - `columns`: the table's columns (`schema.types.arrow_schema`), one row per image.
    - `event`: the index of the image's event among the decoded events.
    - `row`: the row's index within its event; the two images of an update share it.
    - `change_type`: an index into `CHANGE_TYPES`.
    - `nulled_counts`: for each column, the number of values that a policy replaced by
      NULL.
    - `undefined_code_counts`: for each column, the number of texts with a code that has
      no character; in its place they have U+FFFD.
    - `present`: for each image, which columns have a value that is known, in the format
      of `pack_bits`; the other columns are NULL. None if every image has every column.
    - `logged`: like `present`, for the columns that the server logged. These are fewer
      if an inserted row has defaults, which are known although they were not logged.
    - `updated`: like `present`, for the columns that an update changed. Only an
      update's image after the change has these bits. None if the caller did not ask for
      them.
    """

    columns: pa.RecordBatch
    event: pa.Int32Array
    row: pa.Int32Array
    change_type: pa.Int8Array
    nulled_counts: Mapping[str, int]
    present: pa.BinaryArray | None = None
    undefined_code_counts: Mapping[str, int] = field(default_factory=dict)
    logged: pa.BinaryArray | None = None
    updated: pa.BinaryArray | None = None

    def take(self, indexes: pa.Array) -> RowImages:
        """Return the images at these indexes. The counts stay those of all images."""
        bits = {"present": self.present, "logged": self.logged, "updated": self.updated}
        return replace(
            self,
            columns=self.columns.take(indexes),
            event=self.event.take(indexes),
            row=self.row.take(indexes),
            change_type=self.change_type.take(indexes),
            **{name: array.take(indexes) for name, array in bits.items() if array is not None},
        )


def merge_images(
    indexed_parts: Sequence[tuple[RowImages, npt.NDArray[np.int64]]],
) -> RowImages:
    """Return images that were decoded separately as one, in the order of their events.
    Each part comes with an array `indices`: `indices[event]` is the index of the part's
    event in the result.
    """
    parts = [images for images, _ in indexed_parts]
    event = np.concatenate([indices[images.event.to_numpy()] for images, indices in indexed_parts])
    nulled_counts, undefined_code_counts = Counter[str](), Counter[str]()
    for images in parts:
        nulled_counts.update(images.nulled_counts)
        undefined_code_counts.update(images.undefined_code_counts)
    merged = RowImages(
        columns=pa.concat_batches([images.columns for images in parts]),
        event=pa.array(event.astype(np.int32)),
        row=pa.concat_arrays([images.row for images in parts]),
        change_type=pa.concat_arrays([images.change_type for images in parts]),
        nulled_counts=nulled_counts,
        undefined_code_counts=undefined_code_counts,
        present=_merge_bits([(images.present, len(images.row)) for images in parts]),
        logged=_merge_bits([(images.logged, len(images.row)) for images in parts]),
        updated=_merge_bits([(images.updated, len(images.row)) for images in parts]),
    )
    return merged.take(pa.array(np.argsort(event, kind="stable")))


def _merge_bits(bits_and_lengths: Sequence[tuple[pa.Array | None, int]]) -> pa.Array | None:
    if all(bits is None for bits, _ in bits_and_lengths):
        return None
    arrays = [
        pa.nulls(length, pa.binary()) if bits is None else bits for bits, length in bits_and_lengths
    ]
    return pa.concat_arrays(arrays)


def pack_bits(present: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> pa.Array:
    """Return `present` (images x columns) as a binary array: for each image one bit per
    column, the lowest for the first column. The bits are NULL for images that are
    `whole`."""
    bits = np.packbits(present, axis=1, bitorder="little")
    width = bits.shape[1]
    offsets = np.concatenate([[0], np.cumsum(np.where(whole, 0, width))]).astype(np.int32)
    validity = np.packbits(~whole, bitorder="little")
    buffers = [pa.py_buffer(part.tobytes()) for part in (validity, offsets, bits[~whole])]
    return pa.Array.from_buffers(pa.binary(), len(present), buffers)


def unpack_bits(bits: pa.Array, column_count: int) -> npt.NDArray[np.bool_]:
    """Return the inverse of `pack_bits` (images x columns). An image whose bits are
    NULL has every column."""
    present = np.ones((len(bits), column_count), np.bool_)
    valid = bits.drop_null()
    if len(valid):
        _, offsets, data = valid.buffers()
        ends = np.frombuffer(offsets, np.int32)[valid.offset :][: len(valid) + 1]
        packed_bits = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(len(valid), -1)
        flags = np.unpackbits(packed_bits, axis=1, count=column_count, bitorder="little")
        present[bits.is_valid().to_numpy(zero_copy_only=False)] = flags.astype(np.bool_)
    return present
