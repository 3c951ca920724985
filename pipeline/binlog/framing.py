"""Event bytes → checked events with counted offsets.

Belongs here: the 19-byte header, the CRC32 of every event, the allow-list of event
types, and where in which file an event stands. An event that is not on the list, or not
what its header says, stops the run: unknown means stop.

Format: MySQL manual, "Binary Log Event Header" and `FORMAT_DESCRIPTION_EVENT`.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from pipeline.errors import DamagedEvent, UnsupportedEvent
from pipeline.position import Coordinates, LogFile

HEADER: Final = struct.Struct("<IBIIIH")
"""timestamp, type, server id, event size, next event's offset (32 bits), flags."""

CHECKSUM_BYTES: Final = 4
FIRST_OFFSET: Final = 4
"""Offset of the first event of a file, behind the magic number."""

ARTIFICIAL_FLAG: Final = 0x20
_CHECKSUM_CRC32: Final = 1
_CHECKSUM_NONE: Final = 0
_32_BITS: Final = 0xFFFFFFFF


class EventType(IntEnum):
    """The allow-list: every event type this version understands."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    HEARTBEAT = 27
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35


_BEFORE_DESCRIPTION: Final = frozenset(
    {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT}
)
"""What a stream may begin with; everything else needs to know the checksum in force."""

_KNOWN_BY_NAME: Final = {
    5: "INTVAR (statement format)",
    13: "RAND (statement format)",
    14: "USER_VAR (statement format)",
    17: "BEGIN_LOAD_QUERY (statement format)",
    18: "EXECUTE_LOAD_QUERY (statement format)",
    23: "WRITE_ROWS v1",
    24: "UPDATE_ROWS v1",
    25: "DELETE_ROWS v1",
    26: "INCIDENT (the server says that its log may be incomplete)",
    36: "TRANSACTION_CONTEXT (group replication)",
    37: "VIEW_CHANGE (group replication)",
    38: "XA_PREPARE",
    39: "PARTIAL_UPDATE_ROWS (binlog_row_value_options=PARTIAL_JSON)",
    40: "TRANSACTION_PAYLOAD (binlog_transaction_compression=ON)",
    41: "HEARTBEAT v2",
    42: "GTID_TAGGED",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `raw` is header and body without the checksum, `body` starts behind
    the header. `offset` is where it begins in `file`, `size` its length there, checksum
    included; an artificial event (made up by the server for this dump) takes no place.
    `crc32` is the event's own checksum, or computed by us where the log has none.
    """

    type: EventType
    timestamp: int
    server_id: int
    flags: int
    file: LogFile
    offset: int
    size: int
    artificial: bool
    raw: bytes
    crc32: int

    @property
    def body(self) -> bytes:
        return self.raw[HEADER.size :]

    @property
    def end(self) -> int:
        """The offset of the next event in the file."""
        return self.offset if self.artificial else self.offset + self.size

    @property
    def after(self) -> Coordinates:
        """The place behind this event."""
        return Coordinates(self.file, self.end)


class Framing:
    """Checks and places the events of one dump, in order.

    `start` is where the dump was asked to begin. Offsets are counted from there, because
    an event's own offset wraps at 4 GiB; the wrapped value must agree. An event that is
    refused leaves the framing unchanged.
    """

    def __init__(self, start: Coordinates) -> None:
        self._file = start.file
        self._offset = start.offset
        self._checksum: int | None = None

    def frame(self, packet: bytes) -> Event:
        """One event as the server sent it → `Event`; DamagedEvent, UnsupportedEvent."""
        if len(packet) < HEADER.size:
            raise self._damaged(f"an event of {len(packet)} bytes has no header")
        timestamp, code, server_id, size, log_pos, flags = HEADER.unpack_from(packet)
        if size != len(packet):
            raise self._damaged(f"an event of {len(packet)} bytes says it has {size}")
        kind = self._allowed(code)
        if self._checksum is None and kind not in _BEFORE_DESCRIPTION:
            raise self._damaged(f"a {kind.name} event comes before the format description")
        checksum = self._checksum_of(kind, packet)
        artificial = bool(flags & ARTIFICIAL_FLAG) or log_pos == 0 or kind is EventType.HEARTBEAT
        crc32 = self._verified(packet, checksum, kind)
        raw = packet[:-CHECKSUM_BYTES] if checksum == _CHECKSUM_CRC32 else packet
        if kind is EventType.FORMAT_DESCRIPTION and checksum == _CHECKSUM_NONE:
            raw = packet[:-CHECKSUM_BYTES]
        event = Event(
            kind,
            timestamp,
            server_id,
            flags,
            self._file,
            self._offset,
            size,
            artificial,
            raw,
            crc32,
        )
        if not artificial and event.end & _32_BITS != log_pos:
            raise self._damaged(
                f"an event says the next one is at {log_pos}, counted were {event.end}"
            )
        return self._advance(event, checksum)

    def _allowed(self, code: int) -> EventType:
        try:
            return EventType(code)
        except ValueError:
            name = _KNOWN_BY_NAME.get(code, "unknown to this version")
            raise UnsupportedEvent(
                f"the log holds an event of type {code}, {name}, at {self._file}:{self._offset}",
                hint="nothing was recorded; keep what writes such events away from this source, "
                "and start behind it, or wait for a version that reads it",
            ) from None

    def _checksum_of(self, kind: EventType, packet: bytes) -> int:
        """The algorithm in force for this packet; a format description brings its own."""
        if kind is EventType.FORMAT_DESCRIPTION:
            algorithm = packet[-CHECKSUM_BYTES - 1]
            if algorithm not in (_CHECKSUM_NONE, _CHECKSUM_CRC32):
                raise self._damaged(f"the log's checksum algorithm {algorithm} is unknown")
            return algorithm
        if self._checksum is None:
            # The artificial ROTATE comes before the first format description; the dump
            # negotiated CRC32 where the server computes one, and only the bytes tell.
            return _CHECKSUM_CRC32 if _crc_matches(packet) else _CHECKSUM_NONE
        return self._checksum

    def _verified(self, packet: bytes, checksum: int, kind: EventType) -> int:
        if checksum == _CHECKSUM_NONE:
            return zlib.crc32(packet)
        if not _crc_matches(packet) and not _in_use_flag_explains(packet, kind):
            raise self._damaged("an event's checksum does not match its bytes")
        return int.from_bytes(packet[-CHECKSUM_BYTES:], "little")

    def _advance(self, event: Event, checksum: int) -> Event:
        if event.type is EventType.FORMAT_DESCRIPTION:
            self._checksum = checksum
        if event.type is EventType.ROTATE:
            offset = int.from_bytes(event.body[:8], "little")
            file = self._named(event.body[8:])
            if event.artificial and file == self._file:
                # Where the dump begins: what was asked for counts, the field may wrap.
                return event
            self._file, self._offset = file, offset
        elif not event.artificial:
            self._offset = event.end
        return event

    def _named(self, name: bytes) -> LogFile:
        text = name.decode("utf-8", "replace")
        try:
            file = LogFile.parse(text)
        except ValueError:
            raise self._damaged(f"the log rotates to {text!r}, which is no log file") from None
        if file.base != self._file.base:
            raise self._damaged(f"the log rotates from {self._file} to {file}, another log")
        return file

    def _damaged(self, what: str) -> DamagedEvent:
        return DamagedEvent(
            f"{what}, at {self._file}:{self._offset}",
            hint="nothing was recorded; run again, and if it stays, look at that place with "
            f"mysqlbinlog --verify-binlog-checksum --start-position={self._offset} {self._file}",
        )


def _crc_matches(packet: bytes) -> bool:
    body = memoryview(packet)[:-CHECKSUM_BYTES]
    return zlib.crc32(body) == int.from_bytes(packet[-CHECKSUM_BYTES:], "little")


def _in_use_flag_explains(packet: bytes, kind: EventType) -> bool:
    """A format description's checksum leaves out the flag "log in use" (0x1), which the
    server clears when it closes the file."""
    if kind is not EventType.FORMAT_DESCRIPTION:
        return False
    bare = bytearray(packet)
    bare[17] &= 0xFE
    return _crc_matches(bytes(bare))
