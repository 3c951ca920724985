"""Decodes the cells of a result into Arrow arrays, with a decoder for each family of
types, and makes record batches of them.

Formats: MySQL manual, "Binary Protocol Value".

- Numbers are little-endian, two's complement or IEEE 754. A MEDIUMINT has four bytes, a
  YEAR two; a BIT is selected as a number. A DECIMAL is text, `[-]digits[.digits]`, with
  as many digits after the point as the column's scale, and leading zeros if it is
  ZEROFILL.
- A temporal value has a length, then the year (2 bytes), month, day, hour, minute,
  second (1 byte each) and microseconds (4 bytes); trailing parts that are zero are left
  out. A TIME has a sign (1 byte), days (4), hour, minute, second (1 each) and
  microseconds (4). A TIMESTAMP is in the session's zone, UTC.
- All other values are bytes with a length before them. Text comes in UTF-8 whatever the
  column's character set, ENUM and SET as their members' names, JSON as text. A geometry
  comes as it is stored: its SRID (4 bytes, little-endian), then WKB (MySQL manual,
  "Supported Spatial Data Formats"). EWKB is WKB that may contain an SRID: the outer
  type then has a flag, and the SRID follows it. When a NOT NULL geometry column is
  added, MariaDB stores an empty value in each row, which stays empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.address_access import multiply_add
from lockstep.pipeline.binlog.arrays.array_access import (
    Bytes,
    b32,
    copy,
    i64,
    put8,
    put16,
    put32,
    put64,
    u8,
    u16,
    u32,
)
from lockstep.pipeline.binlog.arrays.cells import NULL, Int32s, allocate
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset.packets import (
    ColumnDefinition,
    ColumnValues,
    ResultRows,
    find_cells,
    malformed_answer_error,
)
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

# -- bytes with a length -------------------------------------------------------------

_SRID_BYTES, _EWKB_HEADER_BYTES = 4, 9
"""Bytes of an SRID, and of the header of an EWKB that has one: byte order 1, type 4,
SRID 4."""

_HAS_SRID: Final = 0x20000000


def texts(column: Column, cells: ColumnValues) -> pa.Array:
    """Return CHAR to LONGTEXT, ENUM, SET and JSON as strings. Raise `TableError` for
    bytes that are not UTF-8."""
    array = _byte_array(pa.string(), cells)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise TableError(
            "the source sent text that is not UTF-8",
            hint="correct those rows in the source, or exclude the table",
        ) from error
    return array


def binaries(column: Column, cells: ColumnValues) -> pa.Array:
    """Return BINARY to LONGBLOB as bytes."""
    return _byte_array(pa.binary(), cells)


def geometries(column: Column, cells: ColumnValues) -> pa.Array:
    """Return geometries of any kind as EWKB. Raise ValueError for a malformed header."""
    offsets, ends, total = _offsets(cells)
    buffer, out = allocate(total, 1)
    if not _write_ewkb(cells.data, cells.at, cells.size, ends, out):
        raise ValueError("not well-known binary")
    return cells.array(pa.binary(), offsets, buffer)


def vectors(column: Column, cells: ColumnValues) -> pa.Array:
    """Return VECTORs as lists of float32. Raise ValueError if a length is not a
    multiple of 4."""
    offsets, ends, total = _offsets(cells)
    if bool((ends & 3).any()):
        raise ValueError("not a vector")
    floats = pa.Array.from_buffers(
        pa.float32(), total // 4, [None, _contiguous_bytes(cells, ends, total)]
    )
    ends[:] = ends >> 2
    return cells.array(pa.list_(pa.float32()), offsets, children=[floats])


def _byte_array(array_type: pa.DataType, cells: ColumnValues) -> pa.Array:
    offsets, ends, total = _offsets(cells)
    return cells.array(array_type, offsets, _contiguous_bytes(cells, ends, total))


def _offsets(cells: ColumnValues) -> tuple[pa.Buffer, Int32s, int]:
    """Return Arrow's offsets, as a buffer and as an array, and the total number of
    bytes. All fit into 32 bits, because a batch is smaller than 2 GiB."""
    offsets, raw = allocate(len(cells) + 1, 4)
    ends = raw.view(np.int32)
    return offsets, ends, _write_ends(cells.at, cells.size, ends)


def _contiguous_bytes(cells: ColumnValues, ends: Int32s, total: int) -> pa.Buffer:
    buffer, out = allocate(total, 1)
    _copy_cells(cells.data, cells.at, ends, out)
    return buffer


@kernel
def _write_ends(at: Int32s, size: Int32s, ends: Int32s) -> int:
    total = 0
    ends[0] = 0
    for row in range(len(at)):
        if at[row] >= 0:
            total += int(size[row])
        ends[row + 1] = total
    return total


@kernel
def _copy_cells(data: Bytes, at: Int32s, ends: Int32s, out: Bytes) -> None:
    for row in range(len(at)):
        if at[row] >= 0:
            copy(out, int(ends[row]), data, int(at[row]), int(ends[row + 1]) - int(ends[row]))


@kernel
def _write_ewkb(data: Bytes, at: Int32s, size: Int32s, ends: Int32s, out: Bytes) -> bool:
    total = 0
    for row in range(len(at)):
        count = int(size[row]) if at[row] >= 0 else 0
        if count:
            start = int(at[row])
            if count < _EWKB_HEADER_BYTES or u8(data, start + _SRID_BYTES) > 1:
                return False
            srid = u32(data, start)
            body, count = start + _SRID_BYTES, count - _SRID_BYTES
            if srid == 0:
                copy(out, total, data, body, count)
                total += count
            else:
                order = u8(data, body)
                put8(out, total, order)
                if order:
                    put32(out, total + 1, u32(data, body + 1) | _HAS_SRID)
                    put32(out, total + 5, srid)
                else:
                    # The value is big-endian, so its type and its SRID are, too.
                    geometry_type = b32(data, body + 1) | _HAS_SRID
                    for byte in range(4):
                        put8(out, total + 1 + byte, geometry_type >> 24 - 8 * byte)
                        put8(out, total + 5 + byte, srid >> 24 - 8 * byte)
                copy(out, total + _EWKB_HEADER_BYTES, data, body + 5, count - 5)
                total += count + _SRID_BYTES
        ends[row + 1] = total
    return True


# -- numbers -------------------------------------------------------------------------

_SHORT_YEAR_LENGTH: Final = 2
_MAX_POWER: Final = 10**18
_MINUS, _POINT, _ZERO, _NINE, _COLON = b"-.09:"


def numbers(column: Column, cells: ColumnValues) -> pa.Array:
    """Return TINYINT to BIGINT, FLOAT and DOUBLE in the column's Arrow type, by copying
    their bits."""
    return _number_array(arrow_type(column), cells)


def bits(column: Column, cells: ColumnValues) -> pa.Array:
    """Return BIT(1) as boolean, BIT(64) as decimal(20,0), all others as int64."""
    array_type = arrow_type(column)
    number_type = pa.int64() if pa.types.is_boolean(array_type) else array_type
    return _number_array(number_type, cells).cast(array_type)


def years(column: Column, cells: ColumnValues) -> pa.Array:
    """Return YEARs as int16. MariaDB sends only the last two digits of a YEAR(2), which
    is from 1970 to 2069."""
    buffer, out = allocate(len(cells), 2)
    _write_years(cells.data, cells.at, cells.definition.display_length == _SHORT_YEAR_LENGTH, out)
    return cells.array(pa.int16(), buffer)


def _number_array(array_type: pa.DataType, cells: ColumnValues) -> pa.Array:
    width = array_type.bit_width // 8
    buffer, out = allocate(len(cells), width)
    size, is_signed = cells.definition.cell_bytes, not cells.definition.is_unsigned
    _write_numbers(cells.data, cells.at, size, is_signed, width, out)
    return cells.array(array_type, buffer)


@kernel
def _write_numbers(
    data: Bytes, at: Int32s, size: int, is_signed: bool, width: int, out: Bytes
) -> None:
    """Write integers of `width` bytes. Only unsigned BIGINTs are widened to sixteen
    bytes, so their upper half is 0."""
    for row in range(len(at)):
        value = 0
        if at[row] >= 0:
            if size == 1:
                value = u8(data, at[row])
                value = (value ^ 0x80) - 0x80 if is_signed else value
            elif size == 2:
                value = u16(data, at[row])
                value = (value ^ 0x8000) - 0x8000 if is_signed else value
            elif size == 4:
                value = u32(data, at[row])
                value = (value ^ 0x80000000) - 0x80000000 if is_signed else value
            else:
                value = i64(data, at[row])
        if width == 1:
            put8(out, row, value)
        elif width == 2:
            put16(out, row * 2, value)
        elif width == 4:
            put32(out, row * 4, value)
        elif width == 8:
            put64(out, row * 8, value)
        else:
            put64(out, row * 16, value)
            put64(out, row * 16 + 8, 0)


@kernel
def _write_years(data: Bytes, at: Int32s, has_two_digits: bool, out: Bytes) -> None:
    for row in range(len(at)):
        value = u16(data, at[row]) if at[row] >= 0 else 0
        if has_two_digits and value < 100:
            value += 2000 if value < 70 else 1900
        put16(out, row * 2, value)


def decimals(column: Column, cells: ColumnValues) -> pa.Array:
    """Return DECIMALs as decimals of up to 38 digits; those with more digits as text.
    Raise ValueError for text that is not such a number."""
    array_type = arrow_type(column)
    cell_arrays = cells.data, cells.at, cells.size
    if not pa.types.is_decimal(array_type):
        if not _skip_leading_zeros(*cell_arrays):
            raise ValueError("not a decimal")
        return texts(column, cells)
    buffer, out = allocate(len(cells), 16)
    if not _write_decimals(*cell_arrays, array_type.precision, array_type.scale, out):
        raise ValueError("not a decimal")
    return cells.array(array_type, buffer)


@kernel
def _write_decimals(
    data: Bytes, at: Int32s, size: Int32s, precision: int, scale: int, out: Bytes
) -> bool:
    """Write 128-bit integers, 18 digits at a time; return False at text that is not
    such a number."""
    for row in range(len(at)):
        high = low = 0
        if at[row] >= 0:
            offset = int(at[row])
            end = offset + int(size[row])
            is_negative = offset < end and u8(data, offset) == _MINUS
            if is_negative:
                offset += 1
            point = end - scale - 1 if scale else end
            if point <= offset or (scale and u8(data, point) != _POINT):
                return False
            while offset < point - 1 and u8(data, offset) == _ZERO:
                offset += 1
            is_zero = point - offset == 1 and u8(data, offset) == _ZERO
            if point - offset + scale - (1 if is_zero else 0) > precision:
                return False
            while offset < end:
                word, power = 0, 1
                while offset < end and power < _MAX_POWER:
                    if offset != point:
                        digit = u8(data, offset) - _ZERO
                        if digit < 0 or digit > 9:
                            return False
                        word = 10 * word + digit
                        power *= 10
                    offset += 1
                high, low = multiply_add(high, low, power, word)
            if is_negative:
                high, low = multiply_add(high, low, -1, 0)
        put64(out, row * 16, low)
        put64(out, row * 16 + 8, high)
    return True


@kernel
def _skip_leading_zeros(data: Bytes, at: Int32s, size: Int32s) -> bool:
    """Move each number's beginning past its leading zeros, except one before the point;
    return False at text that is not a number."""
    for row in range(len(at)):
        if at[row] < 0:
            continue
        offset = int(at[row])
        end = offset + int(size[row])
        points = 0
        digits = 0
        for byte in range(offset, end):
            value = u8(data, byte)
            if value == _POINT:
                points += 1
            elif value >= _ZERO and value <= _NINE:
                digits += 1
            elif value != _MINUS or byte != offset:
                return False
        if points > 1 or digits == 0:
            return False
        while end - offset > 1 and u8(data, offset) == _ZERO and u8(data, offset + 1) != _POINT:
            offset += 1
        at[row] = offset
        size[row] = end - offset
    return True


# -- dates and times -----------------------------------------------------------------

_INVALID_DATE: Final = -(1 << 62)
_NO_DATE: Final = _INVALID_DATE + 1
_DAY_MICROSECONDS: Final = 86_400_000_000
_DATE_BYTES, _CLOCK_BYTES, _FRACTION_BYTES = 4, 7, 11
"""Bytes of a date alone, with the time of day, and with microseconds, too."""
_TIME_BYTES, _LONG_TIME_BYTES = 8, 12
"""Bytes of a TIME without and with microseconds."""
_MAX_HOURS: Final = 838
_MAX_TIME_CHARACTERS: Final = 10
"""Characters of -838:59:59."""


def dates(column: Column, cells: ColumnValues) -> pa.Array:
    """Return DATEs as date32; a zero or partial date becomes NULL. Raise ValueError for
    an invalid date."""
    buffer, out = allocate(len(cells), 4)
    _add_nulls(cells, _write_dates(cells.data, cells.at, cells.size, out))
    return cells.array(pa.date32(), buffer)


def moments(column: Column, cells: ColumnValues) -> pa.Array:
    """Return DATETIMEs and TIMESTAMPs as timestamps in microseconds; a zero or partial
    date becomes NULL. Raise ValueError for an invalid date or time."""
    buffer, out = allocate(len(cells), 8)
    _add_nulls(cells, _write_moments(cells.data, cells.at, cells.size, out))
    return cells.array(arrow_type(column), buffer)


def times(column: Column, cells: ColumnValues) -> pa.Array:
    """Return TIMEs as text: [-]HH:MM:SS[.ffffff], hours up to 838. Raise ValueError for
    an invalid time."""
    digits = column.length or 0
    buffer, out = allocate(len(cells), _MAX_TIME_CHARACTERS + 1 + digits)
    offsets, ends = allocate(len(cells) + 1, 4)
    cell_arrays = cells.data, cells.at, cells.size
    if not _write_times(*cell_arrays, digits, out, ends.view(np.int32)):
        raise ValueError("not a time")
    return cells.array(pa.string(), offsets, buffer)


def _add_nulls(cells: ColumnValues, null_count: int) -> None:
    """Count the dates that became NULL. `null_count`: their number, or -1 for an
    invalid date, for which ValueError is raised."""
    if null_count < 0:
        raise ValueError("not a date")
    cells.null_count += null_count


@kernel_part
def _days(data: Bytes, at: int) -> int:
    """Return the days from 1970-01-01 to a date, `_NO_DATE` for a zero or partial date,
    `_INVALID_DATE` for one that no calendar has. Years are counted from March, so that
    the leap day is the last."""
    year, month, day = u16(data, at), u8(data, at + 2), u8(data, at + 3)
    if year == 0 or month == 0 or day == 0:
        return _NO_DATE
    if month > 12 or year > 9999:
        return _INVALID_DATE
    length = 30 + ((month + (month >> 3)) & 1)  # 31 in odd months up to July, then in even ones
    if month == 2:
        length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > length:
        return _INVALID_DATE
    months = year * 12 + month - 3
    whole_years, months = months // 12, months % 12
    leap_days = whole_years // 4 - whole_years // 100 + whole_years // 400
    return whole_years * 365 + leap_days + (months * 306 + 5) // 10 + day - 719_469


@kernel
def _write_dates(data: Bytes, at: Int32s, size: Int32s, out: Bytes) -> int:
    """Write days; return the number of dates that became NULL, or -1 at an invalid
    date."""
    null_count = 0
    for row in range(len(at)):
        days = 0
        if at[row] >= 0:
            days = _NO_DATE
            if size[row] == _DATE_BYTES:
                days = _days(data, at[row])
            elif size[row] != 0:
                return -1
            if days == _INVALID_DATE:
                return -1
            if days == _NO_DATE:
                at[row] = NULL
                null_count += 1
                days = 0
        put32(out, row * 4, days)
    return null_count


@kernel
def _write_moments(data: Bytes, at: Int32s, size: Int32s, out: Bytes) -> int:
    """Write microseconds since 1970; return the number of dates that became NULL, or -1
    at an invalid date or time."""
    null_count = 0
    last_date, days = 0, _NO_DATE
    for row in range(len(at)):
        value = 0
        if at[row] >= 0:
            start, count = int(at[row]), int(size[row])
            if count not in (0, _DATE_BYTES, _CLOCK_BYTES, _FRACTION_BYTES):
                return -1
            # Neighbouring rows often have the same date, whose days are then known.
            date = u32(data, start) if count else 0
            if date != last_date:
                last_date = date
                days = _days(data, start) if date else _NO_DATE
            micros = 0
            if count >= _CLOCK_BYTES:
                hour, minute, second = u8(data, start + 4), u8(data, start + 5), u8(data, start + 6)
                micros = (hour * 3600 + minute * 60 + second) * 1_000_000
                if hour > 23 or minute > 59 or second > 59:
                    return -1
            if count == _FRACTION_BYTES:
                fraction = u32(data, start + 7)
                if fraction > 999_999:
                    return -1
                micros += fraction
            if days == _INVALID_DATE:
                return -1
            if days == _NO_DATE:
                at[row] = NULL
                null_count += 1
            else:
                value = days * _DAY_MICROSECONDS + micros
        put64(out, row * 8, value)
    return null_count


@kernel_part
def _put_two_digits(out: Bytes, at: int, value: int) -> None:
    put8(out, at, _ZERO + value // 10)
    put8(out, at + 1, _ZERO + value % 10)


@kernel
def _write_times(
    data: Bytes, at: Int32s, size: Int32s, digits: int, out: Bytes, ends: Int32s
) -> bool:
    """Write texts one after another to `out`, and their ends to `ends`; return False at
    an invalid time."""
    total = 0
    ends[0] = 0
    for row in range(len(at)):
        if at[row] >= 0:
            start, count = int(at[row]), int(size[row])
            hour = minute = second = micros = 0
            if count == _TIME_BYTES or count == _LONG_TIME_BYTES:
                hour = u32(data, start + 1) * 24 + u8(data, start + 5)
                minute, second = u8(data, start + 6), u8(data, start + 7)
                if count == _LONG_TIME_BYTES:
                    micros = u32(data, start + 8)
                if u8(data, start):
                    put8(out, total, _MINUS)
                    total += 1
            elif count != 0:
                return False
            if hour > _MAX_HOURS or minute > 59 or second > 59 or micros > 999_999:
                return False
            if hour > 99:
                put8(out, total, _ZERO + hour // 100)
                total += 1
            _put_two_digits(out, total, hour % 100)
            put8(out, total + 2, _COLON)
            _put_two_digits(out, total + 3, minute)
            put8(out, total + 5, _COLON)
            _put_two_digits(out, total + 6, second)
            total += 8
            if digits:
                put8(out, total, _POINT)
                total += 1
                for _ in range(digits):
                    put8(out, total, _ZERO + micros // 100_000)
                    micros = micros % 100_000 * 10
                    total += 1
        ends[row + 1] = total
    return True


# -- rows to batches -----------------------------------------------------------------

MAX_ROWS: Final = 10_000
"""Largest number of rows of a batch."""

FULL_BYTES: Final = 32 << 20
"""Bytes of rows, as received, after which a batch takes no further row."""

_MAX_CELLS: Final = 1 << 22
_MIN_ROWS: Final = 64
"""A batch of a table with very many columns is limited to `_MAX_CELLS` cells, but never
to fewer than 64 rows."""

_BYTES_CODES: Final = frozenset({15, 242, 245, *range(247, 256)})
"""VARCHAR, VECTOR, JSON, ENUM, SET, the BLOBs, VAR_STRING, STRING, GEOMETRY: bytes with
a length before them."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """The decoder of one column type: the type codes of the protocol that a result may
    have for such a column, and the function that makes an Arrow array of the cells."""

    codes: frozenset[int]
    decode: Callable[[Column, ColumnValues], pa.Array]


DECODERS: Final[Mapping[str, Decoder]] = MappingProxyType(
    {
        "tinyint": Decoder(frozenset({1}), numbers),
        "smallint": Decoder(frozenset({2}), numbers),
        "mediumint": Decoder(frozenset({9}), numbers),
        "int": Decoder(frozenset({3}), numbers),
        "bigint": Decoder(frozenset({8}), numbers),
        "float": Decoder(frozenset({4}), numbers),
        "double": Decoder(frozenset({5}), numbers),
        "decimal": Decoder(frozenset({246}), decimals),
        # `select` asks for a BIT as a number.
        "bit": Decoder(frozenset({1, 2, 3, 8, 9}), bits),
        "year": Decoder(frozenset({13}), years),
        "date": Decoder(frozenset({10, 14}), dates),
        "time": Decoder(frozenset({11}), times),
        "datetime": Decoder(frozenset({12}), moments),
        "timestamp": Decoder(frozenset({7}), moments),
        **dict.fromkeys(
            ("char", "varchar", "text", "enum", "set", "json"),
            Decoder(_BYTES_CODES, texts),
        ),
        **dict.fromkeys(("binary", "varbinary", "blob"), Decoder(_BYTES_CODES, binaries)),
        "geometry": Decoder(_BYTES_CODES, geometries),
        "vector": Decoder(_BYTES_CODES, vectors),
    }
)


def mismatched_column(
    columns: Sequence[Column], definitions: Sequence[ColumnDefinition]
) -> Column | None:
    """Return the first column whose definition in the result differs from the table's
    structure."""
    for column, definition in zip(columns, definitions, strict=True):
        is_integer = column.type.endswith("int")
        if definition.type_code not in DECODERS[column.type].codes or (
            is_integer and definition.is_unsigned != column.unsigned
        ):
            return column
    return None


class ResultBatches:
    """The record batches of one result, to be iterated once; `warning_count` is set
    after the last.

    `sequence`: the sequence number of the first row's packet. A batch has at most
    `max_rows` rows (fewer for a table of hundreds of columns), and ends with the row
    with which it reaches `full_bytes`.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        definitions: Sequence[ColumnDefinition],
        pieces: Iterable[Received],
        *,
        sequence: int,
        max_rows: int = MAX_ROWS,
        full_bytes: int = FULL_BYTES,
    ) -> None:
        self._columns = columns
        self._definitions = definitions
        self._pieces = pieces
        self._fixed_sizes = np.array(
            [definition.cell_bytes for definition in definitions], np.int64
        )
        self._schema = pa.schema([(column.name, arrow_type(column)) for column in columns])
        max_rows = min(max_rows, max(_MIN_ROWS, _MAX_CELLS // len(columns)))
        self._rows = ResultRows(sequence=sequence, max_rows=max_rows, full_bytes=full_bytes)
        self._at = np.empty((len(columns), max_rows), np.int32)
        self._size = np.empty((len(columns), max_rows), np.int32)

    @property
    def warning_count(self) -> int | None:
        """The number of warnings, from the result's last packet; None until that has
        arrived."""
        return self._rows.warning_count

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Raise `TableError` for a value that is invalid for its
        column's type, `SourceUnavailable` for a malformed answer, and
        `packets.ErrorPacket` for the server's error."""
        rows = self._rows
        for piece in self._pieces:
            rows.set_piece(piece.data[piece.begin : piece.end])
            while rows.fill():
                if len(rows):
                    yield self._batch()
                rows.clear()
                if rows.warning_count is not None:
                    return
        raise malformed_answer_error("it has no last packet")

    def _batch(self) -> pa.RecordBatch:
        rows, count = self._rows, len(self._rows)
        at, size = self._at[:, :count], self._size[:, :count]
        null_counts = np.zeros(len(self._columns), np.int64)
        malformed_row = find_cells(
            rows.data, rows.starts, count, self._fixed_sizes, self._at, self._size, null_counts
        )
        if malformed_row >= 0:
            raise malformed_answer_error("a row does not match the result's columns")
        cells = zip(self._columns, self._definitions, at, size, null_counts.tolist(), strict=True)
        arrays = [
            _decode_column(column, ColumnValues(rows.data, starts, sizes, null_count, definition))
            for column, definition, starts, sizes, null_count in cells
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _decode_column(column: Column, cells: ColumnValues) -> pa.Array:
    try:
        return DECODERS[column.type].decode(column, cells)
    except ValueError as error:
        raise TableError(
            f"column {column.name!r} holds a value that is not a valid {column.type}",
            hint="correct those rows in the source, or exclude the table",
        ) from error
