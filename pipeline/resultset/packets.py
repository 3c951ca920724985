"""The rows of a result: pieces of a socket's stream in, the place of each row's cells
out.

`ResultRows` copies each row once, so that its bytes are contiguous: a piece may end
anywhere, and a row may fill several packets. Room is made for the length that a
packet's header declares, at most 16 MiB. `walk` then finds the cells, and checks that
they make up the whole row.

Protocol: MySQL manual, "Protocol::Packet", "Protocol::EOF_Packet",
"Protocol::OK_Packet" (which ends a result where a client deprecates EOF packets),
"Protocol::ERR_Packet", "Protocol::ColumnDefinition", "Binary Protocol Value" and
"Binary Protocol Resultset Row": a zero byte; a bitmap, from its third bit on a bit for
each column, set if that is NULL; and the cells of the other columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes, copy, i64, u8, u16, u24, u32
from lockstep.pipeline.binlog.arrays.cells import NULL, Places, validity_bitmap
from lockstep.pipeline.binlog.arrays.compiled import kernel
from lockstep.pipeline.values.errors import SourceUnavailable

Integers = npt.NDArray[np.int64]

MAX_ROW_BYTES: Final = (1 << 30) + (1 << 25)
"""No server sends more (`max_allowed_packet` ends at 1 GiB)."""

_HEAD: Final = 4
"""Bytes of a packet's header: length 3, sequence number 1."""

_WHOLE: Final = 0xFFFFFF
"""Length of a packet that the next packet continues."""

_FIRST_BYTES: Final = 1 << 20
"""Size of the memory for rows before it grows."""

_ROW, _END, _ERROR = 0x00, 0xFE, 0xFF
_LEAST_ERROR_BYTES: Final = 3
"""The marker and the error number; the text may be missing."""

_AT, _HEAD_BYTES, _HEAD_VALUE, _LEFT, _CONTINUED, _SEQUENCE, _PUT, _ROWS = range(8)
"""Elements of the state that `_unpack` keeps between calls. AT: the place in the piece.
HEAD_BYTES, HEAD_VALUE: the part of a packet's header that has arrived. LEFT: bytes of
the packet still to be copied. CONTINUED: 1 if the next packet continues the row. PUT:
the end of the bytes copied."""

_MORE, _FULL, _ROOM, _OTHER, _WRONG = range(5)
"""Outcomes of the loop. MORE: the piece is used up. FULL: the batch has its rows or
bytes. ROOM: the current packet does not fit. OTHER: a packet that is not a row. WRONG:
a packet that no server sends."""


class ErrorPacket(Exception):
    """The server ended its answer with an error, which has a number and a text."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__("an error packet")
        self.number = number
        self.text = text


def malformed_answer(what: str) -> SourceUnavailable:
    """Return the error for an answer that breaks the protocol. `what`: a sentence
    without its full stop."""
    return SourceUnavailable(
        f"MySQL's answer is malformed: {what}",
        hint="run again; if it happens every time, check the proxies before the server",
    )


def memory(least: int, better: int) -> Bytes:
    """Return uninitialised memory of `better` bytes, at least `least`."""
    return np.empty(max(least, better), np.uint8)


class ResultRows:
    """A buffer for the rows of a result, one batch at a time. A batch ends after
    `most_rows` rows, or after the row that exceeds `most_bytes`. `sequence`: the
    sequence number of the first packet."""

    def __init__(self, *, sequence: int, most_rows: int, most_bytes: int) -> None:
        self.data: Bytes = memory(0, _FIRST_BYTES)
        self.starts: Integers = np.zeros(most_rows + 1, np.int64)
        """`data[starts[n] : starts[n + 1]]` is row n."""
        self.warnings: int | None = None
        """The number of warnings, from the result's last packet; None until that has
        arrived."""
        self._most_bytes = most_bytes
        self._state: Integers = np.zeros(8, np.int64)
        self._state[_SEQUENCE] = sequence
        self._piece: Bytes = np.empty(0, np.uint8)

    def __len__(self) -> int:
        return int(self._state[_ROWS])

    def put(self, piece: Bytes) -> None:
        """Set the next piece; it must not be changed before `fill` returns False."""
        self._piece = piece
        self._state[_AT] = 0

    def fill(self) -> bool:
        """Copy rows out of the piece. Return False if it is used up; True if the batch
        is full, so that the caller must read and `clear` it, or if the result has
        ended.

        ErrorPacket for the server's error, SourceUnavailable for a malformed packet.
        """
        while self.warnings is None:
            outcome = _unpack(self._piece, self._state, self.data, self.starts, self._most_bytes)
            if outcome == _WRONG:
                raise malformed_answer("a packet has a wrong sequence number, or is empty")
            if outcome == _ROOM:
                self._grow()
            elif outcome == _OTHER:
                self.warnings = self._read_ending()
            else:
                return outcome == _FULL
        return True

    def clear(self) -> None:
        """Remove the rows. Their memory is used again, or freed if large rows made it
        grow."""
        if len(self.data) > 2 * self._most_bytes:
            self.data = memory(0, _FIRST_BYTES)
        self._state[_PUT] = self._state[_ROWS] = 0

    def _grow(self) -> None:
        needed = int(self._state[_PUT] + self._state[_LEFT])
        if needed - int(self.starts[len(self)]) > MAX_ROW_BYTES:
            raise malformed_answer("a row is larger than any server sends")
        larger = memory(needed, 2 * len(self.data))
        larger[: len(self.data)] = self.data
        self.data = larger

    def _read_ending(self) -> int:
        """Read the packet after the rows; return the number of warnings."""
        start, end = int(self.starts[len(self)]), int(self._state[_PUT])
        payload = self.data[start:end].tobytes()
        if payload[0] == _ERROR and len(payload) >= _LEAST_ERROR_BYTES:
            raise _error(payload)
        if int(self._state[_AT]) != len(self._piece):
            raise malformed_answer("bytes follow its last packet")
        return warning_count(payload)


def _error(payload: bytes) -> ErrorPacket:
    """Read an ERR packet: 0xFF, number 2, usually # and an SQL state of 5, then the
    text."""
    text = payload[_STATE_END:] if payload[3:4] == b"#" else payload[_LEAST_ERROR_BYTES:]
    return ErrorPacket(int.from_bytes(payload[1:3], "little"), text.decode(errors="replace"))


_STATE_END: Final = 9
_EOF_BYTES: Final = 5
_MORE_RESULTS: Final = 0x0008


def warning_count(payload: bytes) -> int:
    """Return the number of warnings from an EOF packet, or from an OK packet in place
    of one. SourceUnavailable for another packet, and if it announces further
    results."""
    if payload[0] != _END:
        raise malformed_answer("a packet is neither a row nor the end")
    if len(payload) == _EOF_BYTES:
        warnings, status = payload[1:3], payload[3:5]
    else:
        at = _skip_length(payload, _skip_length(payload, 1))
        status, warnings = payload[at : at + 2], payload[at + 2 : at + 4]
    if len(status) < 2 or len(warnings) < 2:
        raise malformed_answer("its last packet ends too early")
    if int.from_bytes(status, "little") & _MORE_RESULTS:
        raise malformed_answer("another result follows")
    return int.from_bytes(warnings, "little")


def _skip_length(payload: bytes, at: int) -> int:
    first = payload[at] if at < len(payload) else 0
    return at + {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(first, 1)


@kernel
def _unpack(piece: Bytes, state: Integers, data: Bytes, starts: Integers, most_bytes: int) -> int:
    """Copy packets from `piece` to `data`, and set the `starts` of rows; return why it
    ended (`_MORE` …). A batch may be full only before a row's first packet."""
    at, put, rows = state[_AT], state[_PUT], state[_ROWS]
    head_bytes, head, left = state[_HEAD_BYTES], state[_HEAD_VALUE], state[_LEFT]
    continued, sequence = state[_CONTINUED], state[_SEQUENCE]
    end, room, most_rows = len(piece), len(data), len(starts) - 1
    outcome = -1
    while outcome < 0:
        if head_bytes < _HEAD:
            if head_bytes == 0 and not continued and (rows == most_rows or put >= most_bytes):
                outcome = _FULL
                break
            if head_bytes == 0 and end - at >= _HEAD:
                head = u32(piece, at)
                at += _HEAD
                head_bytes = _HEAD
            else:
                while head_bytes < _HEAD and at < end:
                    head |= u8(piece, at) << 8 * head_bytes
                    at += 1
                    head_bytes += 1
                if head_bytes < _HEAD:
                    outcome = _MORE
                    break
            if head >> 24 != sequence:
                outcome = _WRONG
                break
            sequence = sequence + 1 & 0xFF
            left = head & _WHOLE
        if room - put < left:
            outcome = _ROOM
            break
        count = min(left, end - at)
        copy(data, put, piece, at, count)
        put += count
        at += count
        left -= count
        if left:
            outcome = _MORE
            break
        continued = 1 if head & _WHOLE == _WHOLE else 0
        head_bytes = 0
        head = 0
        if not continued:
            if put == starts[rows]:
                outcome = _WRONG
            elif u8(data, starts[rows]) != _ROW:
                outcome = _OTHER
            else:
                rows += 1
                starts[rows] = put
    state[_AT], state[_PUT], state[_ROWS] = at, put, rows
    state[_HEAD_BYTES], state[_HEAD_VALUE], state[_LEFT] = head_bytes, head, left
    state[_CONTINUED], state[_SEQUENCE] = continued, sequence
    return outcome


@dataclass(frozen=True, slots=True)
class Definition:
    """A column as the result defines it: its type code in the protocol, whether it is
    unsigned, and its display length in characters or bytes."""

    code: int
    unsigned: bool
    length: int

    @property
    def size(self) -> int:
        """Bytes of a cell; 0 if each cell has a length before it."""
        return _FIXED.get(self.code, 0)


_FIXED: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 4, 13: 2}
"""TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, YEAR."""


@dataclass(slots=True)
class ColumnValues:
    """One column's cells of many rows. Row n's cell is `data[at[n] : at[n] + size[n]]`,
    or NULL if `at[n]` is `NULL`. `size` is not set for types of a fixed size. `nulls`
    is the number of NULLs."""

    data: Bytes
    at: Places
    size: Places
    nulls: int
    definition: Definition

    def __len__(self) -> int:
        return len(self.at)

    def validity_bitmap(self) -> pa.Buffer | None:
        return validity_bitmap(self.at) if self.nulls else None


@kernel
def walk(
    data: Bytes,
    starts: Integers,
    rows: int,
    sizes: Integers,
    at: npt.NDArray[np.int32],
    size: npt.NDArray[np.int32],
    nulls: Integers,
) -> int:
    """Find the cells of all rows: set `at` and `size` (bytes) by column and row, and
    the number of NULLs by column. Return the first malformed row, or -1. `sizes`: each
    column's bytes, 0 if each cell has a length before it."""
    columns = len(sizes)
    flags = columns + 9 >> 3
    for row in range(rows):
        end = starts[row + 1]
        bitmap = starts[row] + 1
        place = bitmap + flags
        if place > end:
            return row
        for column in range(columns):
            bit = column + 2
            if u8(data, bitmap + (bit >> 3)) >> (bit & 7) & 1:
                at[column, row] = NULL
                size[column, row] = 0
                nulls[column] += 1
                continue
            count = sizes[column]
            if count == 0:
                if place >= end:
                    return row
                count = u8(data, place)
                place += 1
                if count > 250:
                    if count == 252 and end - place >= 2:
                        count = u16(data, place)
                        place += 2
                    elif count == 253 and end - place >= 3:
                        count = u24(data, place)
                        place += 3
                    elif count == 254 and end - place >= 8:
                        count = i64(data, place)
                        place += 8
                    else:
                        return row
                size[column, row] = count
            if count < 0 or count > end - place:
                return row
            at[column, row] = place
            place += count
        if place != end:
            return row
    return -1
