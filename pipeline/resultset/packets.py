"""Finds the rows of a result, and the cells of each row, in the pieces of a socket's
stream.

`ResultRows` copies each row once, so that its bytes are contiguous: a piece may end
anywhere, and a row may fill several packets. Room is made for the length that a
packet's header declares, at most 16 MiB. `find_cells` then finds the cells, and checks
that they make up the whole row.

Protocol: MySQL manual, "Protocol::Packet", "Protocol::EOF_Packet",
"Protocol::OK_Packet" (which ends a result where a client deprecates EOF packets),
"Protocol::ERR_Packet", "Protocol::ColumnDefinition", "Binary Protocol Value" and
"Binary Protocol Resultset Row": a zero byte; a bitmap of the columns that are NULL, in
which the first column has the third bit; and the cells of the columns that are not
NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes, copy, i64, u8, u16, u24, u32
from lockstep.pipeline.binlog.arrays.cells import NULL, Int32s, validity_bitmap
from lockstep.pipeline.binlog.arrays.compiled import kernel
from lockstep.pipeline.values.errors import SourceUnavailable

Integers = npt.NDArray[np.int64]

MAX_ROW_BYTES: Final = (1 << 30) + (1 << 25)
"""No server sends a larger row (`max_allowed_packet` ends at 1 GiB)."""

_HEADER_BYTES: Final = 4
"""Bytes of a packet's header: length 3, sequence number 1."""

_MAX_PAYLOAD: Final = 0xFFFFFF
"""Length of a packet that the next packet continues."""

_INITIAL_BYTES: Final = 1 << 20
"""Size of the memory for rows before it grows."""

_ROW_MARKER, _END_MARKER, _ERROR_MARKER = 0x00, 0xFE, 0xFF
_MIN_ERROR_BYTES: Final = 3
"""The marker and the error number; the text may be missing."""
_SQL_STATE_END: Final = 9
_EOF_BYTES: Final = 5
_MORE_RESULTS: Final = 0x0008

(
    _PIECE_OFFSET,
    _HEADER_ARRIVED,
    _HEADER_VALUE,
    _REMAINING,
    _IS_CONTINUED,
    _SEQUENCE,
    _DATA_END,
    _ROW_COUNT,
) = range(8)
"""Elements of the state that `_unpack` keeps between calls.

PIECE_OFFSET: the offset in the piece up to which it was read.
HEADER_ARRIVED, HEADER_VALUE: the bytes of a packet's header that have arrived.
REMAINING: the bytes of the packet that are still to be copied.
IS_CONTINUED: 1 if the next packet continues the row.
DATA_END: the end of the copied bytes.
"""

_PIECE_USED_UP, _BATCH_FULL, _NO_ROOM, _NOT_A_ROW, _MALFORMED = range(5)
"""Outcomes of the loop. BATCH_FULL: the batch has its rows or bytes. NO_ROOM: the
current packet does not fit. NOT_A_ROW: a packet that is not a row. MALFORMED: a packet
that no server sends."""


class ErrorPacket(Exception):
    """The server ended its answer with an error, which has a number and a text."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__("an error packet")
        self.number = number
        self.text = text


def malformed_answer_error(fault: str) -> SourceUnavailable:
    """Return the error for an answer that breaks the protocol. `fault`: a sentence
    without its full stop."""
    return SourceUnavailable(
        f"MySQL's answer is malformed: {fault}",
        hint="run again; if it happens every time, check the proxies before the server",
    )


def allocate_bytes(needed: int, preferred: int) -> Bytes:
    """Return uninitialised memory of `preferred` bytes, or of `needed` bytes if these
    are more."""
    return np.empty(max(needed, preferred), np.uint8)


class ResultRows:
    """A buffer for the rows of a result, one batch at a time. A batch ends after
    `max_rows` rows, or after the row with which it reaches `full_bytes`. `sequence`:
    the sequence number of the first packet."""

    def __init__(self, *, sequence: int, max_rows: int, full_bytes: int) -> None:
        self.data: Bytes = allocate_bytes(0, _INITIAL_BYTES)
        self.starts: Integers = np.zeros(max_rows + 1, np.int64)
        """`data[starts[n] : starts[n + 1]]` is row n."""
        self.warning_count: int | None = None
        """The number of warnings, from the result's last packet; None until that has
        arrived."""
        self._full_bytes = full_bytes
        self._state: Integers = np.zeros(8, np.int64)
        self._state[_SEQUENCE] = sequence
        self._piece: Bytes = np.empty(0, np.uint8)

    def __len__(self) -> int:
        return int(self._state[_ROW_COUNT])

    def set_piece(self, piece: Bytes) -> None:
        """Set the next piece; it must not be changed before `fill` returns False."""
        self._piece = piece
        self._state[_PIECE_OFFSET] = 0

    def fill(self) -> bool:
        """Copy rows out of the piece. Return False if it is used up, and True if the
        batch is full or the result has ended: the caller must then read the rows and
        `clear` them.

        Raise `ErrorPacket` for the server's error, and `SourceUnavailable` for a
        malformed packet.
        """
        while self.warning_count is None:
            outcome = _unpack(self._piece, self._state, self.data, self.starts, self._full_bytes)
            if outcome == _MALFORMED:
                raise malformed_answer_error("a packet has a wrong sequence number, or is empty")
            if outcome == _NO_ROOM:
                self._grow()
            elif outcome == _NOT_A_ROW:
                self.warning_count = self._read_ending()
            else:
                return outcome == _BATCH_FULL
        return True

    def clear(self) -> None:
        """Remove the rows. Their memory is used again, or freed if large rows made it
        grow."""
        if len(self.data) > 2 * self._full_bytes:
            self.data = allocate_bytes(0, _INITIAL_BYTES)
        self._state[_DATA_END] = self._state[_ROW_COUNT] = 0

    def _grow(self) -> None:
        needed = int(self._state[_DATA_END] + self._state[_REMAINING])
        if needed - int(self.starts[len(self)]) > MAX_ROW_BYTES:
            raise malformed_answer_error("a row is larger than any server sends")
        larger = allocate_bytes(needed, 2 * len(self.data))
        larger[: len(self.data)] = self.data
        self.data = larger

    def _read_ending(self) -> int:
        """Read the packet after the rows; return the number of warnings."""
        start, end = int(self.starts[len(self)]), int(self._state[_DATA_END])
        payload = self.data[start:end].tobytes()
        if payload[0] == _ERROR_MARKER and len(payload) >= _MIN_ERROR_BYTES:
            raise _read_error_packet(payload)
        if int(self._state[_PIECE_OFFSET]) != len(self._piece):
            raise malformed_answer_error("bytes follow its last packet")
        return read_warning_count(payload)


def _read_error_packet(payload: bytes) -> ErrorPacket:
    """Read an ERR packet: 0xFF, number 2, usually # and an SQL state of 5, then the
    text."""
    text = payload[_SQL_STATE_END:] if payload[3:4] == b"#" else payload[_MIN_ERROR_BYTES:]
    return ErrorPacket(int.from_bytes(payload[1:3], "little"), text.decode(errors="replace"))


def read_warning_count(payload: bytes) -> int:
    """Return the number of warnings from an EOF packet, or from the OK packet that may
    replace it. Raise `SourceUnavailable` for any other packet, and for one that
    announces further results."""
    if payload[0] != _END_MARKER:
        raise malformed_answer_error("a packet is neither a row nor the end")
    if len(payload) == _EOF_BYTES:
        warnings, status = payload[1:3], payload[3:5]
    else:
        at = _skip_length(payload, _skip_length(payload, 1))
        status, warnings = payload[at : at + 2], payload[at + 2 : at + 4]
    if len(status) < 2 or len(warnings) < 2:
        raise malformed_answer_error("its last packet ends too early")
    if int.from_bytes(status, "little") & _MORE_RESULTS:
        raise malformed_answer_error("another result follows")
    return int.from_bytes(warnings, "little")


def _skip_length(payload: bytes, at: int) -> int:
    """Return the offset after the length-encoded integer at `at`."""
    first = payload[at] if at < len(payload) else 0
    return at + {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(first, 1)


@kernel
def _unpack(piece: Bytes, state: Integers, data: Bytes, starts: Integers, full_bytes: int) -> int:
    """Copy packets from `piece` to `data`, and set the `starts` of rows; return why
    the loop ended (`_PIECE_USED_UP` …). A batch counts as full only before a row's
    first packet."""
    at, data_end, row_count = state[_PIECE_OFFSET], state[_DATA_END], state[_ROW_COUNT]
    header_arrived, header = state[_HEADER_ARRIVED], state[_HEADER_VALUE]
    remaining = state[_REMAINING]
    is_continued, sequence = state[_IS_CONTINUED], state[_SEQUENCE]
    end, capacity, max_rows = len(piece), len(data), len(starts) - 1
    outcome = -1
    while outcome < 0:
        if header_arrived < _HEADER_BYTES:
            if (
                header_arrived == 0
                and not is_continued
                and (row_count == max_rows or data_end >= full_bytes)
            ):
                outcome = _BATCH_FULL
                break
            if header_arrived == 0 and end - at >= _HEADER_BYTES:
                header = u32(piece, at)
                at += _HEADER_BYTES
                header_arrived = _HEADER_BYTES
            else:
                while header_arrived < _HEADER_BYTES and at < end:
                    header |= u8(piece, at) << 8 * header_arrived
                    at += 1
                    header_arrived += 1
                if header_arrived < _HEADER_BYTES:
                    outcome = _PIECE_USED_UP
                    break
            if header >> 24 != sequence:
                outcome = _MALFORMED
                break
            sequence = sequence + 1 & 0xFF
            remaining = header & _MAX_PAYLOAD
        if capacity - data_end < remaining:
            outcome = _NO_ROOM
            break
        count = min(remaining, end - at)
        copy(data, data_end, piece, at, count)
        data_end += count
        at += count
        remaining -= count
        if remaining:
            outcome = _PIECE_USED_UP
            break
        is_continued = 1 if header & _MAX_PAYLOAD == _MAX_PAYLOAD else 0
        header_arrived = 0
        header = 0
        if not is_continued:
            if data_end == starts[row_count]:
                outcome = _MALFORMED
            elif u8(data, starts[row_count]) != _ROW_MARKER:
                outcome = _NOT_A_ROW
            else:
                row_count += 1
                starts[row_count] = data_end
    state[_PIECE_OFFSET], state[_DATA_END], state[_ROW_COUNT] = at, data_end, row_count
    state[_HEADER_ARRIVED], state[_HEADER_VALUE] = header_arrived, header
    state[_REMAINING] = remaining
    state[_IS_CONTINUED], state[_SEQUENCE] = is_continued, sequence
    return outcome


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column as the result defines it: its type code in the protocol, whether it is
    unsigned, and its display length in characters or bytes."""

    type_code: int
    is_unsigned: bool
    display_length: int

    @property
    def cell_bytes(self) -> int:
        """Bytes of a cell; 0 if each cell has a length before it."""
        return _FIXED_BYTES.get(self.type_code, 0)


_FIXED_BYTES: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 4, 13: 2}
"""By type code: TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, YEAR."""


@dataclass(slots=True)
class ColumnValues:
    """One column's cells of many rows. Row n's cell is `data[at[n] : at[n] + size[n]]`,
    or NULL if `at[n]` is `NULL`. `size` is not set for types of a fixed size."""

    data: Bytes
    at: Int32s
    size: Int32s
    null_count: int
    definition: ColumnDefinition

    def __len__(self) -> int:
        return len(self.at)

    def array(
        self, array_type: pa.DataType, *buffers: pa.Buffer, children: list[pa.Array] | None = None
    ) -> pa.Array:
        """Return the Arrow array that these buffers of decoded cells make up."""
        bitmap = validity_bitmap(self.at) if self.null_count else None
        return pa.Array.from_buffers(array_type, len(self), [bitmap, *buffers], children=children)


@kernel
def find_cells(
    data: Bytes,
    starts: Integers,
    row_count: int,
    fixed_sizes: Integers,
    at: Int32s,
    size: Int32s,
    null_counts: Integers,
) -> int:
    """Find the cells of all rows: set `at` and `size` (bytes) by column and row, and
    the number of NULLs by column. Return the index of the first malformed row, or -1.
    `fixed_sizes`: the bytes of each column's cells, 0 if each cell has a length before
    it."""
    column_count = len(fixed_sizes)
    bitmap_bytes = column_count + 9 >> 3
    for row in range(row_count):
        end = starts[row + 1]
        bitmap = starts[row] + 1
        offset = bitmap + bitmap_bytes
        if offset > end:
            return row
        for column in range(column_count):
            bit = column + 2
            if u8(data, bitmap + (bit >> 3)) >> (bit & 7) & 1:
                at[column, row] = NULL
                size[column, row] = 0
                null_counts[column] += 1
                continue
            count = fixed_sizes[column]
            if count == 0:
                if offset >= end:
                    return row
                count = u8(data, offset)
                offset += 1
                if count > 250:
                    if count == 252 and end - offset >= 2:
                        count = u16(data, offset)
                        offset += 2
                    elif count == 253 and end - offset >= 3:
                        count = u24(data, offset)
                        offset += 3
                    elif count == 254 and end - offset >= 8:
                        count = i64(data, offset)
                        offset += 8
                    else:
                        return row
                size[column, row] = count
            if count < 0 or count > end - offset:
                return row
            at[column, row] = offset
            offset += count
        if offset != end:
            return row
    return -1
