"""MySQL's binary JSON → the text that SELECT prints, as Arrow strings.

Belongs here: many documents, and the Arrow array. Does not: the text of one (`json_tree`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.arrays.address_access import put32
from pipeline.binlog.arrays.array_access import Bytes
from pipeline.binlog.arrays.compiled import kernel
from pipeline.binlog.values.json_form import DAMAGED, FULL, SLACK, TEXT_EXTRA, TEXT_FACTOR
from pipeline.binlog.values.json_tree import STACK_BYTES, document
from pipeline.errors import DamagedEvent, TableError

Integers = npt.NDArray[np.int64]

_DONE: Final = 0
_MOST_BYTES: Final = (1 << 31) - 1
"""What the offsets of an Arrow string array can count."""

_NULL: Final = int.from_bytes(b"null", "little")


def json_array(
    data: Bytes, at: Integers, length: Integers, *, bare_doubles: bool = False
) -> pa.Array:
    """The documents `data[at[i] : at[i] + length[i]]` as strings; NULL where length < 0.
    `bare_doubles`: as in `Layout`.

    An empty document is the JSON null. DamagedEvent if one is not what the format
    demands; TableError if one holds bytes that are not UTF-8, or if all have more than
    2 GiB of text. Text has at most some eight times as many bytes as documents.
    """
    text = _Text(len(at), int(np.maximum(length, 0).sum()))
    stack = np.empty(STACK_BYTES, np.uint8)
    index = 0
    while True:
        status, index, used = _write(
            data, at, length, index, text.out, text.offsets, stack, bare_doubles
        )
        if status == _DONE:
            return text.array(length >= 0, used)
        if status == FULL:
            text.grow()
        else:
            raise DamagedEvent(
                f"value {index} is not a JSON document",
                hint="it was not recorded; run again, and if that fails, look at the source's "
                "column with check table",
            )


class _Text:
    """Arrow's buffers of a string array: offsets, and bytes that grow."""

    def __init__(self, count: int, document_bytes: int) -> None:
        self._count = count
        self._offsets = pa.allocate_buffer(4 * (count + 1))
        self.offsets = np.frombuffer(self._offsets, np.int32)
        self.offsets[0] = 0
        room = document_bytes + document_bytes // 4 + 16 * count + 4 * SLACK
        self._bytes = pa.allocate_buffer(min(room, _MOST_BYTES), resizable=True)
        self.out = np.frombuffer(self._bytes, np.uint8)

    def grow(self) -> None:
        """Twice the room."""
        if len(self.out) == _MOST_BYTES:
            raise TableError(
                "JSON documents that were changed together have more than 2 GiB of text",
                hint="exclude the table, or change fewer rows per statement",
            )
        self._bytes.resize(min(2 * len(self.out), _MOST_BYTES))
        self.out = np.frombuffer(self._bytes, np.uint8)

    def array(self, valid: npt.NDArray[np.bool_], used: int) -> pa.Array:
        nulls = self._count - int(np.count_nonzero(valid))
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        self._bytes.resize(used, shrink_to_fit=False)
        buffers = [bitmap, self._offsets, self._bytes]
        array = pa.Array.from_buffers(pa.string(), self._count, buffers, nulls)
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise TableError(
                "a JSON document holds text that is not UTF-8",
                hint="correct the document on the source, or exclude the table",
            ) from error
        return array


@kernel
def _write(
    data: Bytes,
    at: Integers,
    length: Integers,
    first: int,
    out: Bytes,
    offsets: npt.NDArray[np.int32],
    stack: Bytes,
    bare_doubles: bool,
) -> tuple[int, int, int]:
    """Documents from `first` on; why it ended, at which one, and bytes written before it."""
    here, there, frames = data.ctypes.data, out.ctypes.data, stack.ctypes.data
    place = int(offsets[first])
    for index in range(first, len(at)):
        size = length[index]
        if size > 0:
            if at[index] < 0 or size > len(data) - at[index]:
                return DAMAGED, index, place
            begin, to = here + at[index], there + place
            most = TEXT_FACTOR * size + TEXT_EXTRA
            # Only text longer than `most` can come to a limit so far behind it.
            limit = to + min(most + 4 * SLACK, len(out) - place)
            end = document(begin, begin + size, to, limit, frames, bare_doubles)
            if end == FULL:
                return (FULL if limit == there + len(out) else DAMAGED), index, place
            if end < 0:
                return end, index, place
            if end - to > most:
                return DAMAGED, index, place
            place = end - there
        elif size == 0:
            if len(out) - place < SLACK:
                return FULL, index, place
            put32(there + place, _NULL)
            place += 4
        offsets[index + 1] = place
    return _DONE, len(at), place
