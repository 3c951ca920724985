"""Decoders of CHAR to LONGTEXT, BINARY to LONGBLOB, GEOMETRY and VECTOR, which the log
has as a length and bytes; and of ENUM and SET, which it has as numbers.

Text is stored in the column's character set. UTF-8 is copied and validated. Single-byte
sets are converted by a table in compiled code, and all other sets by `charsets`, value
by value. The log lacks the trailing zero bytes of a BINARY(n); they are added again.

A geometry is stored as its SRID (4 bytes) and WKB. It becomes EWKB, the format of
PostGIS: if the SRID is not 0, the type has the flag 0x20000000 and the SRID follows the
type. A VECTOR is stored as floats of 4 bytes.

An ENUM is the number of a member, from 1, in one or two bytes; 0 is the empty string
that MySQL stores instead of an invalid value. A SET is a bit for each member in one to
eight bytes. Both are little-endian. The table's structure has the members' names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.binlog.arrays.array_access import Bytes, copy, i64, put8, put32, u8, u32
from lockstep.pipeline.binlog.arrays.cells import Cells, Int32s, allocate, cell_length
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.stream.framing import damaged
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.binlog.values.charset_tables import NO_CHARACTER
from lockstep.pipeline.binlog.values.charsets import (
    CHARSETS_WITH_REPLACEMENT,
    REPLACEMENT,
    canonical_check,
    is_ambiguous,
    is_canonical_number,
    may_be_ambiguous,
    single_byte_characters,
    text_decoder,
)
from lockstep.pipeline.schema.collations import UTF8_CHARSETS
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

MAX_ARRAY_BYTES: Final = (1 << 31) - 1
"""Most bytes that the 32-bit offsets of an Arrow array can address."""

HIGH_BITS: Final = -0x7F7F7F7F7F7F7F80
"""The highest bit of each byte of a word: 0 in all of them means ASCII."""

_HAS_SRID: Final = 0x20
"""The flag in the highest byte of an EWKB's type."""

_HEADER_BYTES: Final = 9
"""Bytes of a geometry's header: 4 for the SRID, 1 for the byte order, 4 for the type."""


def texts(column: Column, cells: Cells) -> pa.Array:
    """Return the values of a CHAR, VARCHAR or TEXT column as strings. Raise TableError
    for bytes that are not valid in the column's character set. Set
    `cells.ambiguous_image` and `cells.undefined_code_count`."""
    charset = column.charset or "utf8mb4"
    array = _decode_text(column, cells, charset)
    if is_ambiguous(charset):
        if cells.in_key:
            cells.ambiguous_image = _first_ambiguous(column, cells, charset)
        if charset in CHARSETS_WITH_REPLACEMENT:
            cells.undefined_code_count = pc.sum(pc.match_substring(array, REPLACEMENT)).as_py() or 0
    return array


def _decode_text(column: Column, cells: Cells, charset: str) -> pa.Array:
    table = _conversion_table(charset)
    if table is not None:
        return _translate_text(column, cells, table)
    if charset in UTF8_CHARSETS:
        array = _copy_values(column, cells, pa.string())
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise _undecodable_error(column) from error
        return array
    return _decode_each(column, cells, charset)


def binaries(column: Column, cells: Cells) -> pa.Array:
    """Return the values of a BINARY, VARBINARY or BLOB column as bytes. Those of BINARY
    are padded with 0x00 to the column's length."""
    padded_length = cells.layout.width if column.type == "binary" else 0
    return _copy_values(column, cells, pa.binary(), padded_length)


def _undecodable_error(column: Column) -> TableError:
    return TableError(
        f"column {column.name!r} holds bytes that are not valid in {column.charset}",
        hint="correct those rows in the source, or exclude the table",
    )


def value_spans(
    column: Column, cells: Cells, padded_length: int = 0
) -> tuple[Integers, pa.Buffer, int]:
    """Return where each value's bytes start (-1 if an image has no value), the offsets
    of an Arrow array, and the total number of bytes. Values shorter than
    `padded_length` count as `padded_length` bytes."""
    starts = np.empty(len(cells), np.int64)
    offsets, ends = allocate(len(cells) + 1, 4)
    # `-layout.size` is the number of bytes of the length before each value.
    total = _measure_spans(
        cells.data, cells.at, -cells.layout.size, padded_length, starts, ends.view(np.int32)
    )
    if total > MAX_ARRAY_BYTES:
        raise _too_large_error(column)
    return starts, offsets, total


def _too_large_error(column: Column) -> TableError:
    return TableError(
        f"column {column.name!r} holds more than 2 GiB in one row event",
        hint="exclude the column's table, or store shorter values in this column",
    )


@kernel
def _measure_spans(
    data: Bytes, at: Int32s, length_bytes: int, padded_length: int, starts: Integers, ends: Int32s
) -> int:
    total = 0
    ends[0] = 0
    for i in range(len(at)):
        cell = int(at[i])
        if cell >= 0:
            total += max(cell_length(data, cell, length_bytes), padded_length)
            starts[i] = cell + length_bytes
        else:
            starts[i] = -1
        ends[i + 1] = total
    return total


def _copy_values(
    column: Column, cells: Cells, array_type: pa.DataType, padded_length: int = 0
) -> pa.Array:
    starts, offsets, total = value_spans(column, cells, padded_length)
    buffer, out = allocate(total, 1)
    ends = np.frombuffer(offsets, np.int32)
    _copy(cells.data, starts, -cells.layout.size, ends, out)
    return cells.array(array_type, offsets, buffer)


@kernel
def _copy(data: Bytes, starts: Integers, length_bytes: int, ends: Int32s, out: Bytes) -> None:
    for i in range(len(starts)):
        start = starts[i]
        if start < 0:
            continue
        begin, length = int(ends[i]), cell_length(data, start - length_bytes, length_bytes)
        copy(out, begin, data, start, length)
        for padding in range(begin + length, int(ends[i + 1])):
            put8(out, padding, 0)


@cache
def _conversion_table(charset: str) -> Integers | None:
    """Return the table that converts a single-byte set to UTF-8; None for a multi-byte
    set. Each of its 256 rows has the number of UTF-8 bytes of the character, 0 for an
    undefined byte, and these bytes as a little-endian integer."""
    characters = single_byte_characters(charset)
    if characters is None:
        return None
    table = np.zeros((256, 2), np.int64)
    for byte, character in enumerate(characters):
        if character != NO_CHARACTER:
            encoded = character.encode()
            table[byte] = len(encoded), int.from_bytes(encoded, "little")
    return table


def _translate_text(column: Column, cells: Cells, table: Integers) -> pa.Array:
    starts, offsets, total = value_spans(column, cells)
    # Each character is written as four bytes, so the last one needs more room.
    buffer = pa.allocate_buffer((total + 3) * int(table[:, 0].max()), resizable=True)
    out = np.frombuffer(buffer, np.uint8)
    ends, length_bytes = np.frombuffer(offsets, np.int32), -cells.layout.size
    has_ascii = bool((table[:128, 1] == np.arange(128)).all() and (table[:128, 0] == 1).all())
    text_bytes = _translate(cells.data, starts, length_bytes, table, has_ascii, ends, out)
    if text_bytes < 0:
        raise _undecodable_error(column)
    if text_bytes > MAX_ARRAY_BYTES:
        raise _too_large_error(column)
    buffer.resize(text_bytes, shrink_to_fit=True)
    return cells.array(pa.string(), offsets, buffer)


@kernel_part
def _is_ascii(data: Bytes, at: int, length: int) -> bool:
    """Return whether all bytes are below 0x80; eight are compared at once."""
    offset = 0
    while offset + 8 <= length:
        if i64(data, at + offset) & HIGH_BITS:
            return False
        offset += 8
    while offset < length:
        if u8(data, at + offset) & 0x80:
            return False
        offset += 1
    return True


@kernel
def _translate(
    data: Bytes,
    starts: Integers,
    length_bytes: int,
    table: Integers,
    has_ascii: bool,
    ends: Int32s,
    out: Bytes,
) -> int:
    """Write the values in UTF-8, and where each ends. Return their total bytes, or -1
    if a value is invalid. `has_ascii`: bytes below 0x80 are ASCII in this set."""
    end = 0
    for i in range(len(starts)):
        start = starts[i]
        if start >= 0:
            length = cell_length(data, start - length_bytes, length_bytes)
            if has_ascii and _is_ascii(data, start, length):
                copy(out, end, data, start, length)
                end += length
            else:
                for byte in range(start, start + length):
                    code = u8(data, byte)
                    if table[code, 0] == 0:
                        return -1
                    put32(out, end, table[code, 1])
                    end += table[code, 0]
        ends[i + 1] = end
    return end


def _decode_each(column: Column, cells: Cells, charset: str) -> pa.Array:
    decode = text_decoder(charset)
    try:
        values = _copy_values(column, cells, pa.binary()).to_pylist()
        text_values = [None if value is None else decode(value) for value in values]
    except UnicodeDecodeError as error:
        raise _undecodable_error(column) from error
    return pa.array(text_values, pa.string())


def _first_ambiguous(column: Column, cells: Cells, charset: str) -> int:
    """Return the first image whose value is not canonical (`charsets`), so that another
    value may become the same text; -1 if there is none."""
    is_canonical = canonical_check(charset)
    for image, value in enumerate(_copy_values(column, cells, pa.binary()).to_pylist()):
        if value is not None and not is_canonical(value):
            return image
    return -1


def geometries(column: Column, cells: Cells) -> pa.Array:
    """Return geometries of any kind as EWKB. Raise DamagedEvent for a value shorter
    than its header."""
    starts, offsets, total = value_spans(column, cells)
    ends = np.frombuffer(offsets, np.int32)
    buffer, out = allocate(total, 1)
    if not _write_geometries(cells.data, starts, ends, out):
        raise damaged("a GEOMETRY value ends within its header")
    return cells.array(pa.binary(), offsets, buffer)


@kernel
def _write_geometries(data: Bytes, starts: Integers, ends: Int32s, out: Bytes) -> bool:
    out_end = 0
    begin = 0
    for i in range(len(starts)):
        start, length = starts[i], int(ends[i + 1]) - begin
        begin += length
        if length:
            if length < _HEADER_BYTES:
                return False
            srid, is_big_endian = u32(data, start), u8(data, start + 4) == 0
            if srid == 0:
                copy(out, out_end, data, start + 4, length - 4)
                out_end += length - 4
            else:
                # The byte order and the type, the SRID, and the rest.
                copy(out, out_end, data, start + 4, 5)
                flag_at = out_end + (1 if is_big_endian else 4)
                put8(out, flag_at, u8(out, flag_at) | _HAS_SRID)
                if is_big_endian:
                    srid = srid >> 24 | srid >> 8 & 0xFF00 | (srid & 0xFF00) << 8 | srid << 24
                put32(out, out_end + 5, srid)
                rest = length - _HEADER_BYTES
                copy(out, out_end + _HEADER_BYTES, data, start + _HEADER_BYTES, rest)
                out_end += length
        ends[i + 1] = out_end
    return True


def vectors(column: Column, cells: Cells) -> pa.Array:
    """Return VECTORs as lists of float32. Raise DamagedEvent if a length is not a
    multiple of 4."""
    values = _copy_values(column, cells, pa.binary())
    validity, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)
    if bool((ends & 3).any()):
        raise damaged("the length of a VECTOR value is not a multiple of 4")
    floats = pa.Array.from_buffers(pa.float32(), int(ends[-1]) // 4, [None, data])
    ends[:] = ends >> 2  # offsets of lists count floats, not bytes
    return pa.Array.from_buffers(
        pa.list_(pa.float32()), len(cells), [validity, offsets], children=[floats]
    )


def enums(column: Column, cells: Cells) -> pa.Array:
    """Return the member's name of each ENUM, '' for number 0. Raise TableError for an
    unknown number."""
    numbers = _numbers(cells)
    names = pa.array(["", *column.members], pa.string())
    if len(numbers) and int(numbers.max()) >= len(names):
        raise _unknown_member_error(column)
    _note_ambiguous(column, cells, numbers, range(len(names)))
    return names.take(cells.array(pa.int64(), pa.py_buffer(numbers)))


def sets(column: Column, cells: Cells) -> pa.Array:
    """Return the members' names of each SET in the order of the definition, separated
    by commas. Raise TableError for an unknown member."""
    distinct, index = np.unique(_numbers(cells).view(np.uint64), return_inverse=True)
    numbers, values = distinct.tolist(), []
    for number in numbers:
        if number >> len(column.members):
            raise _unknown_member_error(column)
        values.append(_join_members(m for bit, m in enumerate(column.members) if number >> bit & 1))
    _note_ambiguous(column, cells, index, numbers)
    indices = cells.array(pa.int64(), pa.py_buffer(index.astype(np.int64)))
    return pa.array(values, pa.string()).take(indices)


def _join_members(members: Iterable[str]) -> str:
    """Join names as `Field_set::val_str` of MySQL's source does: a comma is added only
    to a text that is not empty, so a first member '' does not show."""
    text = ""
    for member in members:
        text = f"{text},{member}" if text else member
    return text


def _note_ambiguous(
    column: Column, cells: Cells, index: npt.NDArray[np.integer], numbers: Sequence[int]
) -> None:
    """Note the first cell of a key whose number is not the canonical one for its text.
    `index`: the index of each cell's number in `numbers`."""
    if cells.in_key and may_be_ambiguous(column):
        ambiguous = [
            n for n, number in enumerate(numbers) if not is_canonical_number(column, number)
        ]
        images = np.flatnonzero(np.isin(index, ambiguous) & (cells.at >= 0))
        cells.ambiguous_image = int(images[0]) if len(images) else -1


def _unknown_member_error(column: Column) -> TableError:
    return TableError(
        f"column {column.name!r} holds a member that its {column.type.upper()} does not have",
        hint="report this log to us",
    )


def _numbers(cells: Cells) -> Integers:
    numbers = np.empty(len(cells), np.int64)
    _read_numbers(cells.data, cells.at, cells.layout.size, numbers)
    return numbers


@kernel
def _read_numbers(data: Bytes, at: Int32s, size: int, out: Integers) -> None:
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            for byte in range(size):
                value |= u8(data, at[i] + byte) << 8 * byte
        out[i] = value
