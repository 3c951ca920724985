"""Cells: the offset of each value of a column in the bytes of row events.

Sizes: `Field::pack_length_from_metadata` and `calc_field_size` in MySQL's source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes, u8, u16, u24, u32
from lockstep.pipeline.binlog.arrays.compiled import kernel_part
from lockstep.pipeline.values.errors import TableError

Int32s = npt.NDArray[np.int32]

NULL, ABSENT, NULLED = -1, -2, -3
"""Negative numbers in place of an offset. NULL: the value is NULL. ABSENT: the row
image does not have the column. NULLED: Arrow cannot hold the value (a zero date),
which becomes NULL."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A column as the TABLE_MAP lays it out. `code` is its type, with ENUM and SET
    instead of STRING. `size`: the bytes of a cell, or -n if a length of n bytes comes
    before each cell. `width`: the declared length of a string in bytes, or of a BIT in
    bits. `precision` and `scale`: those of a decimal; `scale` is also the number of a
    temporal type's fractional digits. `bare_doubles`: the server prints whole doubles
    in JSON without ".0", as MySQL 5.7 does."""

    code: int
    size: int
    width: int = 0
    precision: int = 0
    scale: int = 0
    bare_doubles: bool = False


# Type codes: `enum_field_types` of MySQL.
_BIT, _TIMESTAMP2, _DATETIME2, _TIME2 = 16, 17, 18, 19
_DECIMAL, _ENUM, _SET, _STRING = 246, 247, 248, 254
JSON: Final = 245
_FIXED_SIZES: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 7: 4, 8: 8, 9: 3, 10: 3, 11: 3, 12: 8, 13: 1}
"""Type code → bytes of a cell. 1, 2, 9, 3, 8: integers; 4, 5: FLOAT, DOUBLE; 7, 10, 11,
12: TIMESTAMP, DATE, TIME, DATETIME without fractions; 13: YEAR."""
OLD_TEMPORAL_CODES: Final = frozenset({7, 11, 12})
"""TIMESTAMP, TIME and DATETIME in the formats before MySQL 5.6 and MariaDB 10.1.2."""
_TEMPORAL_SIZES: Final = {_TIMESTAMP2: 4, _DATETIME2: 5, _TIME2: 3}
"""Type code → bytes of a cell before its fraction."""
_LENGTH_PREFIXED_TYPES: Final = frozenset({242, JSON, 252, 255})
"""VECTOR, JSON, BLOB, GEOMETRY: the metadata is the number of bytes of a cell's
length."""

# Limits of valid metadata.
_MEMBER_BYTES: Final = {_ENUM: (1, 2), _SET: (1, 2, 3, 4, 8)}
_MOST_FRACTION, _MOST_BITS, _MOST_DIGITS, _MOST_LENGTH_BYTES = 6, 64, 65, 4
_MOST_SCALE = 38  # MariaDB's limit; MySQL's is 30


def layout(code: int, data: bytes) -> Layout:
    """Return the layout for a type code and its metadata bytes in a TABLE_MAP;
    TableError if the type cannot have this metadata."""
    # ENUM and SET are logged as STRING, with their own code in the metadata.
    if code == _STRING and data[0] in _MEMBER_BYTES:
        code = data[0]
    if not _is_possible(code, data):
        raise TableError(
            f"a column of the type number {code} has a layout that this version does not read",
            hint="exclude the table, and report this log to us",
        )
    if code in _FIXED_SIZES:
        return Layout(code, _FIXED_SIZES[code])
    if code in _TEMPORAL_SIZES:
        return Layout(code, _TEMPORAL_SIZES[code] + (data[0] + 1) // 2, scale=data[0])
    if code in _MEMBER_BYTES:
        return Layout(code, data[1])
    if code == _BIT:
        return Layout(code, data[1] + (data[0] > 0), width=data[1] * 8 + data[0])
    if code == _DECIMAL:
        return Layout(code, decimal_size(data[0], data[1]), precision=data[0], scale=data[1])
    if code in _LENGTH_PREFIXED_TYPES:
        return Layout(code, -data[0])
    if code == _STRING:
        # The length's two upper bits are stored, inverted, in the type byte
        # (Field_string).
        width = ((data[0] & 0x30) ^ 0x30) << 4 | data[1]
    else:
        width = int.from_bytes(data, "little")
    return Layout(code, -1 if width < 256 else -2, width=width)


def _is_possible(code: int, data: bytes) -> bool:
    if code in _MEMBER_BYTES:
        return data[1] in _MEMBER_BYTES[code]
    if code in _TEMPORAL_SIZES:
        return data[0] <= _MOST_FRACTION
    if code == _BIT:
        return data[0] < 8 and 0 < data[1] * 8 + data[0] <= _MOST_BITS
    if code == _DECIMAL:
        return 0 < data[0] <= _MOST_DIGITS and data[1] <= min(data[0], _MOST_SCALE)
    return code not in _LENGTH_PREFIXED_TYPES or 1 <= data[0] <= _MOST_LENGTH_BYTES


def decimal_size(precision: int, scale: int) -> int:
    """Return how many bytes a decimal takes. On each side of the point, nine digits
    take four bytes and the remaining digits fewer."""
    size = 0
    for digits in (precision - scale, scale):
        rest = digits % 9
        size += digits // 9 * 4 + ((rest + 1) // 2 if rest < 7 else 4)
    return size


@kernel_part
def cell_length(data: Bytes, at: int, size: int) -> int:
    """Return the length of a cell's content, stored in the `size` bytes before it."""
    if size == 1:
        return u8(data, at)
    if size == 2:
        return u16(data, at)
    return u24(data, at) if size == 3 else u32(data, at)


@dataclass(slots=True)
class Cells:
    """One column of many row images: `at[i]` is the offset of image i's cell in `data`,
    or NULL, ABSENT, NULLED. Decoders need not check bounds: the code that found the
    cells did. `has_nulls` is False if every image has a cell. `in_key`: the column is
    part of a key.

    The decoders set the rest. `nulled_count`: the number of zero dates that became
    NULL. `ambiguous_image`: the first image of a key whose bytes are not the only ones
    with their text, or -1. `undefined_code_count`: the number of values with a code
    that the character set does not define; the text has U+FFFD for it."""

    data: Bytes
    at: Int32s
    layout: Layout
    has_nulls: bool
    nulled_count: int = 0
    in_key: bool = False
    ambiguous_image: int = -1
    undefined_code_count: int = 0

    def __len__(self) -> int:
        return len(self.at)

    def array(self, array_type: pa.DataType, *buffers: pa.Buffer) -> pa.Array:
        """Return the Arrow array that the decoded cells in these buffers form."""
        bitmap = validity_bitmap(self.at) if self.has_nulls or self.nulled_count else None
        return pa.Array.from_buffers(array_type, len(self), [bitmap, *buffers])


def validity_bitmap(at: Int32s) -> pa.Buffer:
    """Return Arrow's validity bitmap: a bit for each cell, set if it has an offset."""
    return pa.py_buffer(np.packbits(at >= 0, bitorder="little"))


def allocate(count: int, width: int) -> tuple[pa.Buffer, npt.NDArray[np.uint8]]:
    """Return a buffer for `count` values of `width` bytes, and an array to write to it.
    Arrow's pool reuses memory; page faults of fresh memory would cost more time than
    decoding."""
    buffer = pa.allocate_buffer(count * width)
    return buffer, np.frombuffer(buffer, np.uint8)
