"""The input of the compiled loop: pieces of a socket's stream, or of a compressed
payload; and the packets by which a server ends or refuses a dump.

A piece is an array with HEADROOM free bytes before its content. The unread rest of the
previous piece is copied there if it is short, so that the new bytes need not be moved.
A longer rest is the start of a large event, whose buffer grows as its bytes arrive: its
declared length is never allocated.

A server gives errno 1236 for nearly every refusal of a dump, so only the text tells the
reason. Errors of connections are in `resources.mysql.connection`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.array_access import Bytes
from lockstep.pipeline.binlog.stream.framing import (
    HEADER_BYTES,
    NESTED,
    PACKET_LIMIT,
    WHOLE,
    WIRE,
    damaged,
)
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LockstepError,
    NotAnEventBoundary,
    PositionPurged,
    PrivilegeMissing,
    SourceUnavailable,
    StartUnreachable,
    TransactionsWithoutGtid,
)

HEADROOM: Final = 1 << 16
"""Free bytes before the content of a piece."""

_REFUSAL_BYTES: Final = 1 << 10
"""Bytes that are read of an error packet, more than a server's have."""

MAX_EVENT_BYTES: Final = (1 << 30) + (1 << 20)
"""More than any server sends: `max_allowed_packet` is at most 1 GiB."""

_SIZE_AT: Final = 9
"""Offset of the size (4 bytes) in an event's header."""


@dataclass(slots=True)
class InputBytes:
    """Bytes for the loop: `data[at:stop]`, in the form `mode` (`framing`). `packets`:
    in the mode WHOLE, the number of packets in which the event arrived."""

    data: Bytes
    at: int
    stop: int
    mode: int
    packets: int = 0


class WireInput:
    """Makes inputs for the loop from the pieces that a socket delivers. A caller
    repeats: `put` a piece; then, until `next_input` returns None, have the loop read
    that input and call `mark_read`."""

    def __init__(self) -> None:
        self._unread_rest: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._large_event: _LargeEvent | None = None
        self._whole_event: InputBytes | None = None
        self._piece: InputBytes | None = None

    def put(self, data: Bytes, begin: int, end: int) -> None:
        """Take the next piece, `data[begin:end]`, which has HEADROOM free bytes before
        `begin`."""
        rest, self._unread_rest = self._unread_rest, np.empty(0, np.uint8)
        if len(rest):
            begin -= len(rest)
            data[begin : begin + len(rest)] = rest
        self._piece = InputBytes(data, begin, end, WIRE)

    def next_input(self) -> InputBytes | None:
        """Return the input to read now; None if the next piece is needed."""
        if self._whole_event is not None:
            return self._whole_event
        piece, event = self._piece, self._large_event
        if piece is None or event is None:
            return piece
        if not event.take(piece):
            self._piece = None
            return None
        if event.bytes[:1] != b"\0":
            raise packet_error(bytes(event.bytes[:_REFUSAL_BYTES]))
        data = np.frombuffer(event.bytes, np.uint8)
        self._whole_event = InputBytes(data, 1, len(data), WHOLE, event.packets)
        self._large_event = None
        return self._whole_event

    def mark_read(self) -> None:
        """Note that the loop read all whole events of the input from `next_input`, and
        keep the rest."""
        if self._whole_event is not None:
            self._whole_event = None
            return
        piece, self._piece = self._piece, None
        assert piece is not None, "an input was read"
        unread = piece.data[piece.at : piece.stop]
        if len(unread) <= HEADROOM:
            self._unread_rest = unread.copy()
        else:
            self._large_event = _LargeEvent()
            self._large_event.take(piece)

    def mark_large(self) -> None:
        """Note that the piece continues with the first of several packets of one event."""
        self._large_event = _LargeEvent()


class _LargeEvent:
    """An event that spans pieces or packets, assembled without the packet headers."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.packets = 0
        self._packet_header = bytearray()
        self._bytes_left = 0
        self._is_last_packet = False

    def take(self, piece: InputBytes) -> bool:
        """Consume bytes of the piece; return whether the event is complete."""
        while self._bytes_left or not self._is_last_packet:
            if not self._bytes_left and not self._read_packet_header(piece):
                return False
            count = min(self._bytes_left, piece.stop - piece.at)
            if self._bytes_left and not count:
                return False
            self.bytes += piece.data[piece.at : piece.at + count].data
            piece.at += count
            self._bytes_left -= count
            if len(self.bytes) > MAX_EVENT_BYTES:
                raise _too_large()
        return True

    def _read_packet_header(self, piece: InputBytes) -> bool:
        """Read the next packet's header; return False if the piece ends within it."""
        end = min(piece.at + 4 - len(self._packet_header), piece.stop)
        self._packet_header += piece.data[piece.at : end].data
        piece.at = end
        if len(self._packet_header) < 4:
            return False
        self._bytes_left = int.from_bytes(self._packet_header[:3], "little")
        self._is_last_packet = self._bytes_left < PACKET_LIMIT
        self._packet_header.clear()
        self.packets += 1
        return True


class PayloadInput:
    """Makes inputs for the loop from the pieces of a decompressed payload."""

    def __init__(self, pieces: Iterator[Bytes]) -> None:
        self._pieces = pieces
        self.input = InputBytes(np.empty(0, np.uint8), 0, 0, NESTED)

    def refill(self) -> bool:
        """Append the next pieces to the unread bytes; return False if there are none.

        Each call at least doubles the unread bytes, so that a large event is copied
        only a few times. DamagedEvent if an event declares more than MAX_EVENT_BYTES.
        """
        unread = self.input.data[self.input.at : self.input.stop]
        declared = int.from_bytes(unread[_SIZE_AT : _SIZE_AT + 4].tobytes(), "little")
        if len(unread) >= HEADER_BYTES and declared > MAX_EVENT_BYTES:
            raise _too_large()
        pieces, bytes_wanted = [unread], len(unread) + 1
        for piece in self._pieces:
            pieces.append(piece)
            bytes_wanted -= len(piece)
            if bytes_wanted <= 0:
                break
        if len(pieces) == 1:
            return False
        data = np.concatenate(pieces)
        self.input = InputBytes(data, 0, len(data), NESTED)
        return True


def _too_large() -> DamagedEvent:
    return damaged(f"an event has more than {MAX_EVENT_BYTES} bytes")


def dump_events(dump: Iterable[Received]) -> Iterator[bytes]:
    """Yield a dump's events one by one, without checking them, for callers that need
    only a few.

    The events end where the server ends the log. Raise the server's error if it refuses
    the dump, and DamagedEvent for an event without a whole header.
    """
    event = _LargeEvent()
    for received in dump:
        piece = InputBytes(received.data, received.begin, received.end, WIRE)
        while event.take(piece):
            if event.bytes[:1] != b"\0":
                if is_end_packet(bytes(event.bytes)):
                    return
                raise packet_error(bytes(event.bytes[:_REFUSAL_BYTES]))
            if len(event.bytes) <= HEADER_BYTES:
                raise damaged("an event is too short to have a header")
            yield bytes(event.bytes[1:])
            event = _LargeEvent()


DUMP_REFUSED: Final = 1236
_MAX_EOF_BYTES: Final = 8
_TEXT_BYTES: Final = 5 + 1 + 512
"""Longest text of a server's error, SQL state included (MYSQL_ERRMSG_SIZE of
`include/mysql_com.h`). A longer text is not from a server, and is cut off."""

_PRIVILEGE_ERRORS: Final = frozenset({1044, 1045, 1142, 1227})
_NO_BOUNDARY = ("max_allowed_packet", "truncated in the middle", "bogus data", "event too small")
"""Words of the errors for a start inside an event, whose bytes are read as a header."""


def dump_refusal(text: str) -> LockstepError:
    """Return the error for the text of an errno 1236, from MySQL or MariaDB."""
    lowered = text.lower()
    if "could not find first log file" in lowered or "purged" in lowered:
        return PositionPurged(
            f"the server no longer has the log that the run must start in: {text}",
            hint="restore the log files; or run again: the next run decides its start by the log "
            "that is left",
        )
    if "impossible position" in lowered or "larger than" in lowered or "position > file" in lowered:
        return StartUnreachable(
            f"the server's log does not reach the start: {text}",
            hint="choose a place that SHOW BINARY LOGS lists",
        )
    if "cannot replicate" in lowered and "transaction when" in lowered:
        # With gtid_mode ON a server sends only transactions with a GTID, with OFF only
        # those without one.
        return TransactionsWithoutGtid(
            f"the server does not send a transaction that its gtid_mode forbids: {text}",
            hint="set global gtid_mode = ON_PERMISSIVE (from OFF by way of OFF_PERMISSIVE), run "
            "once to read these transactions, then set it back",
        )
    if any(words in lowered for words in _NO_BOUNDARY):
        return NotAnEventBoundary(
            f"the start is not the beginning of an event: {text}",
            hint="choose an offset that SHOW BINLOG EVENTS lists, or a file's beginning, 4",
        )
    return SourceUnavailable(
        f"the server refuses the dump: {text}",
        hint="look at the server's error log, then run again",
    )


def is_end_packet(packet: bytes) -> bool:
    """Return whether a packet without an event is an EOF packet, which marks the end of
    the log."""
    return packet[:1] == b"\xfe" and len(packet) <= _MAX_EOF_BYTES


def packet_error(packet: bytes) -> LockstepError:
    """Return the error for an error packet, which a server may send at any point of a
    stream: 0xFF, errno 2, `#` and SQL state 5, text."""
    if packet[:1] != b"\xff":
        return DamagedEvent(
            f"the server's stream holds a packet that begins with {packet[:1].hex() or 'nothing'}",
            hint="it was not recorded; run again, and look at the server's error log",
        )
    number = int.from_bytes(packet[1:3], "little")
    text = packet[3 : 3 + _TEXT_BYTES].decode("utf-8", "replace")
    if text.startswith("#"):
        text = text[6:]
    if number == DUMP_REFUSED:
        return dump_refusal(text)
    if number in _PRIVILEGE_ERRORS:
        return PrivilegeMissing(
            f"the server refuses the dump: {text}",
            hint="grant replication slave on *.* to the account of the source",
        )
    return SourceUnavailable(
        f"the server ended the dump: {text} ({number})",
        hint="look at the server's error log, then run again",
    )
