"""The bytes on their way to the loop: pieces of a socket's stream, or of a payload.

A piece is an array with HEADROOM free bytes before its content. The unread rest of the previous
piece is copied there if it is short, so that nothing else moves. A longer rest is the start of a
large event, whose buffer grows as its bytes arrive: its declared length is never allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.array_access import Bytes
from lockstep.pipeline.binlog.stream.dump_refusals import is_end, refused_by
from lockstep.pipeline.binlog.stream.framing import HEADER_BYTES, NESTED, PACKET_LIMIT, WHOLE, WIRE
from lockstep.pipeline.binlog.stream.outcomes import damaged
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.values.errors import DamagedEvent

HEADROOM: Final = 1 << 16
"""Free bytes before the content of a piece."""

_REFUSAL_BYTES: Final = 1 << 10
"""An upper bound of the packet by which a server ends a dump."""

MAX_EVENT_BYTES: Final = (1 << 30) + (1 << 20)
"""No server sends more (`max_allowed_packet` ends at 1 GiB)."""

_SIZE_AT: Final = 9
"""Offset of the size (4 bytes) in an event's header."""


@dataclass(slots=True)
class InputBytes:
    """Bytes for the loop: `data` from `at` to `stop`, in the form that `mode` names (`framing`).
    `packets`: in the mode WHOLE, the number of packets that the event came in."""

    data: Bytes
    at: int
    stop: int
    mode: int
    packets: int = 0


class Wire:
    """The pieces that the socket delivers, as inputs of the loop."""

    def __init__(self) -> None:
        self._rest: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._large: _Large | None = None
        self._whole: InputBytes | None = None
        self._piece: InputBytes | None = None

    @property
    def empty(self) -> bool:
        """True if no part of an event is waiting for its other parts."""
        idle = self._large is None and self._whole is None and self._piece is None
        return idle and not len(self._rest)

    def put(self, data: Bytes, begin: int, end: int) -> None:
        rest, self._rest = self._rest, np.empty(0, np.uint8)
        if len(rest):
            begin -= len(rest)
            data[begin : begin + len(rest)] = rest
        self._piece = InputBytes(data, begin, end, WIRE)

    def next(self) -> InputBytes | None:
        """Return the input to read now; None when everything is read."""
        if self._whole is not None:
            return self._whole
        piece = self._piece
        if piece is None or self._large is None:
            return piece
        large = self._large
        if not large.take(piece):
            self._piece = None
            return None
        if large.bytes[:1] != b"\0":
            raise refused_by(bytes(large.bytes[:_REFUSAL_BYTES]))
        data = np.frombuffer(large.bytes, np.uint8)
        self._whole = InputBytes(data, 1, len(data), WHOLE, large.packets)
        self._large = None
        return self._whole

    def read(self) -> None:
        """The loop has read all whole events of the input that `next` returned; keep its rest."""
        if self._whole is not None:
            self._whole = None
            return
        piece, self._piece = self._piece, None
        if piece is None:
            return
        unread = piece.data[piece.at : piece.stop]
        if len(unread) <= HEADROOM:
            self._rest = unread.copy()
        else:
            self._large = _Large()
            self._large.take(piece)

    def large(self) -> None:
        """The next packet of the current piece is the first of several that hold one event."""
        self._large = _Large()


class _Large:
    """An event that spans pieces or packets, assembled without the packet headers."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.packets = 0
        self._head = bytearray()
        self._bytes_left = 0
        self._last = False

    def take(self, piece: InputBytes) -> bool:
        """Consume bytes of the piece; return whether the event is complete."""
        while self._bytes_left or not self._last:
            if not self._bytes_left and not self._read_head(piece):
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

    def _read_head(self, piece: InputBytes) -> bool:
        end = min(piece.at + 4 - len(self._head), piece.stop)
        self._head += piece.data[piece.at : end].data
        piece.at = end
        if len(self._head) < 4:
            return False
        self._bytes_left = int.from_bytes(self._head[:3], "little")
        self._last = self._bytes_left < PACKET_LIMIT
        self._head.clear()
        self.packets += 1
        return True


class Nested:
    """The pieces of a payload, as one input after another."""

    def __init__(self, pieces: Iterator[Bytes]) -> None:
        self._pieces = pieces
        self.input = InputBytes(np.empty(0, np.uint8), 0, 0, NESTED)

    def refill(self) -> bool:
        """Append the next pieces to the unread bytes; return False if there are none.

        Each call at least doubles the unread bytes, so that those of a large event are copied a
        bounded number of times. DamagedEvent if an event declares more than MAX_EVENT_BYTES.
        """
        unread = self.input.data[self.input.at : self.input.stop]
        declared = int.from_bytes(unread[_SIZE_AT : _SIZE_AT + 4].tobytes(), "little")
        if len(unread) >= HEADER_BYTES and declared > MAX_EVENT_BYTES:
            raise _too_large()
        pieces, missing = [unread], len(unread) + 1
        for piece in self._pieces:
            pieces.append(piece)
            missing -= len(piece)
            if missing <= 0:
                break
        else:
            if len(pieces) == 1:
                return False
        data = np.concatenate(pieces)
        self.input = InputBytes(data, 0, len(data), NESTED)
        return True


def _too_large() -> DamagedEvent:
    return damaged(f"an event has more than {MAX_EVENT_BYTES} bytes")


def events(dump: Iterable[Received]) -> Iterator[bytes]:
    """Yield a dump's events one by one, whole but unchecked, for callers that need only a few.

    Ends at the server's end of log; raises the server's refusal. Each event has a header at least.
    """
    event = _Large()
    for received in dump:
        piece = InputBytes(received.data, received.begin, received.end, WIRE)
        while event.take(piece):
            if event.bytes[:1] != b"\0":
                if is_end(bytes(event.bytes)):
                    return
                raise refused_by(bytes(event.bytes[:_REFUSAL_BYTES]))
            if len(event.bytes) <= HEADER_BYTES:
                raise damaged("an event is too short to have a header")
            yield bytes(event.bytes[1:])
            event = _Large()
