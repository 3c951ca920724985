"""The bytes on their way to the loop: pieces of a socket's stream, or of a payload.

Belongs here: carrying an event that is cut by the end of a piece over to the next, and
putting together events that come in several packets. Does not: what an event is.

A piece is an array with HEADROOM free bytes before its content: a short rest of the piece
before is copied there, so that nothing else moves. A long rest is an event of its own that
grows as its bytes arrive, never by the length that it declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.binlog.arrays.array_access import Bytes
from pipeline.binlog.stream.dump_refusals import is_end, refused_by
from pipeline.binlog.stream.wire_format import HEADER, NESTED, PACKET_LIMIT, WHOLE, WIRE
from pipeline.errors import DamagedEvent
from pipeline.ports.source import Received

HEADROOM: Final = 1 << 16
"""Free bytes before the content of a piece."""

_REFUSAL_BYTES: Final = 1 << 10
"""More than a server says when it ends a dump."""

MAX_EVENT_BYTES: Final = (1 << 30) + (1 << 20)
"""No server sends more (`max_allowed_packet` ends at 1 GiB)."""

_SIZE_AT: Final = 9
"""Where an event's header has its size, 4 bytes."""


@dataclass(slots=True)
class InputBytes:
    """Bytes for the loop: `data` from `at` to `stop`, laid out as `mode` says (`wire_format`)."""

    data: Bytes
    at: int
    stop: int
    mode: int


@dataclass(slots=True)
class LargeEvent(InputBytes):
    """An event put together from so many packets, behind its status byte."""

    packets: int


class Wire:
    """What the socket gives, piece by piece, as inputs."""

    def __init__(self) -> None:
        self._rest: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._large: _Large | None = None
        self._whole: LargeEvent | None = None
        self._piece: InputBytes | None = None

    @property
    def empty(self) -> bool:
        """Whether no event is under way."""
        nothing = self._large is None and self._whole is None and self._piece is None
        return nothing and not len(self._rest)

    def put(self, data: Bytes, begin: int, end: int) -> None:
        """The next bytes: `data[begin:end]`, with room for HEADROOM bytes before them."""
        rest, self._rest = self._rest, np.empty(0, np.uint8)
        if len(rest):
            begin -= len(rest)
            data[begin : begin + len(rest)] = rest
        self._piece = InputBytes(data, begin, end, WIRE)

    def next(self) -> InputBytes | None:
        """What to read now; None when all is read."""
        if self._whole is not None:
            return self._whole
        piece = self._piece
        if piece is None or self._large is None:
            return piece
        self._whole = self._large.take(piece)
        if self._whole is None:
            self._piece = None
            return None
        self._large = None
        return self._whole

    def read(self) -> None:
        """The loop read what it could of what `next` gave; a piece's rest is kept."""
        if self._whole is not None:
            self._whole = None
            return
        piece, self._piece = self._piece, None
        if piece is None:
            return
        left = piece.data[piece.at : piece.stop]
        if len(left) <= HEADROOM:
            self._rest = left.copy()
        else:
            self._large = _Large()
            self._large.take(piece)

    def large(self) -> None:
        """The packet that the piece at hand stands before is the first of several."""
        self._large = _Large()


class _Large:
    """One event that grows over pieces or packets: packet heads left out, all put together."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._head = bytearray()
        self._left = 0
        self._last = False
        self._packets = 0

    def take(self, piece: InputBytes) -> LargeEvent | None:
        """Use up the piece's bytes; the whole event once it is there."""
        while True:
            if self._left == 0:
                if self._last:
                    return self._whole()
                if not self._read_head(piece):
                    return None
                continue
            count = min(self._left, piece.stop - piece.at)
            if count == 0:
                return None
            self._bytes += piece.data[piece.at : piece.at + count].data
            piece.at += count
            self._left -= count
            if len(self._bytes) > MAX_EVENT_BYTES:
                raise _too_large()

    def _read_head(self, piece: InputBytes) -> bool:
        wanted = 4 - len(self._head)
        self._head += piece.data[piece.at : min(piece.at + wanted, piece.stop)].data
        piece.at = min(piece.at + wanted, piece.stop)
        if len(self._head) < 4:
            return False
        self._left = int.from_bytes(self._head[:3], "little")
        self._last = self._left < PACKET_LIMIT
        self._head.clear()
        self._packets += 1
        return True

    def _whole(self) -> LargeEvent:
        if self._bytes[0] != 0:
            raise refused_by(bytes(self._bytes[:_REFUSAL_BYTES]))
        data = np.frombuffer(self._bytes, np.uint8)
        return LargeEvent(data, 1, len(data), WHOLE, self._packets)


class Nested:
    """The pieces of a payload, one input after the other."""

    def __init__(self, pieces: Iterator[Bytes]) -> None:
        self._pieces = pieces
        self.input = InputBytes(np.empty(0, np.uint8), 0, 0, NESTED)

    def refill(self) -> bool:
        """Put the next piece behind what is unread; False if there is none.

        Twice as much as is unread is fetched at least, so that the bytes of a large event
        are moved a bounded number of times; DamagedEvent for one that says it is too large.
        """
        unread = self.input.data[self.input.at : self.input.stop]
        declared = int.from_bytes(unread[_SIZE_AT : _SIZE_AT + 4].tobytes(), "little")
        if len(unread) >= HEADER and declared > MAX_EVENT_BYTES:
            raise _too_large()
        pieces, wanted = [unread], len(unread) + 1
        for piece in self._pieces:
            pieces.append(piece)
            wanted -= len(piece)
            if wanted <= 0:
                break
        else:
            if len(pieces) == 1:
                return False
        data = np.concatenate(pieces)
        self.input = InputBytes(data, 0, len(data), NESTED)
        return True


def _too_short() -> DamagedEvent:
    return DamagedEvent(
        "an event is too short to have a header",
        hint="it was not recorded; run again, and look at the server's error log",
    )


def _too_large() -> DamagedEvent:
    return DamagedEvent(
        f"an event has more than {MAX_EVENT_BYTES} bytes",
        hint="it was not recorded; run again, and look at the server's error log",
    )


def events(dump: Iterable[Received]) -> Iterator[bytes]:
    """A dump's events one at a time, whole and unchecked: for looking at a few of them.

    Ends at the server's end of log; a refusal is raised. Each has a header at least.
    """
    waiting = bytearray()
    event = bytearray()
    for received in dump:
        waiting += received.data[received.begin : received.end].data
        at = 0
        while len(waiting) - at >= 4:
            length = int.from_bytes(waiting[at : at + 3], "little")
            if len(waiting) - at < 4 + length:
                break
            event += waiting[at + 4 : at + 4 + length]
            at += 4 + length
            if len(event) > MAX_EVENT_BYTES:
                raise _too_large()
            if length == PACKET_LIMIT:
                continue
            if event[:1] != b"\0":
                if is_end(bytes(event)):
                    return
                raise refused_by(bytes(event[:_REFUSAL_BYTES]))
            if len(event) <= HEADER:
                raise _too_short()
            yield bytes(event[1:])
            event.clear()
        del waiting[:at]
