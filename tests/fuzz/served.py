"""A dump of a written log, as a server sends it while the log grows.

Belongs here: where a dump begins, what stands before its first event, packets and their
numbers. Does not: the log (`written`).
"""

from __future__ import annotations

import struct
from typing import Final

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.position import Coordinates
from tests.fuzz.written import WrittenLog
from tests.pipeline.made import format_description, packet, rotate

_ARTIFICIAL: Final = {"flags": 0x20, "end": 0}


class ServedDump:
    """The packets from `begins` on; events that are written later follow."""

    def __init__(self, log: WrittenLog, begins: Coordinates) -> None:
        self._log = log
        self._left = bytearray()
        self._number = 1
        places = [at for at, _ in log.events]
        self._sent = places.index(begins) if begins in places else len(places)
        name = rotate(str(begins.file), begins.offset)
        self._send(packet(EventType.ROTATE, name, 0, **_ARTIFICIAL))
        if begins.offset > 4:
            self._send(packet(EventType.FORMAT_DESCRIPTION, format_description(), 0, **_ARTIFICIAL))

    def piece(self, count: int) -> bytes:
        """The next bytes, so many at the most; none if everything is sent."""
        for _, event in self._log.events[self._sent :]:
            self._send(event)
        self._sent = len(self._log.events)
        piece, self._left = bytes(self._left[:count]), self._left[count:]
        return piece

    def _send(self, event: bytes) -> None:
        head = struct.pack("<I", 1 + len(event))[:3] + bytes([self._number & 0xFF])
        self._left += head + b"\0" + event
        self._number += 1
