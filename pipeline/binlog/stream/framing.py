"""One event at a time: the allow-list of event types, the common header, and a reader
of bodies.

Only rare events become an `Event`. The compiled loop (`stream`) reads all others, by
the same rules.

Format: MySQL manual, "Protocol::Packet", "Binlog Network Stream", "Binary Log Event
Header"; MariaDB's numbers from `sql/log_event.h` of its source.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from lockstep.pipeline.values.errors import DamagedEvent, UnsupportedEvent
from lockstep.pipeline.values.position import Coordinates, LogFile

HEADER: Final = struct.Struct("<IBIIIH")
"""timestamp, type, server id, event size, next event's offset (32 bits), flags."""

TYPE_AT, _FLAGS_AT = 4, 17
"""Offsets in the header of the type and of the flags."""
HEADER_BYTES: Final = HEADER.size
CHECKSUM_BYTES: Final = 4
FIRST_OFFSET: Final = 4
"""Offset of the first event of a file, after the magic number."""

WIRE, WHOLE, NESTED = range(3)
"""Forms of the compiled loop's input. WIRE: MySQL packets. WHOLE: one event, assembled
from several packets. NESTED: the events inside a payload, which have no checksum and no
offset of their own."""

STATEMENT_END: Final = 0x1
"""A flag of row events: the last one of its statement."""

PACKET_LIMIT: Final = 0xFFFFFF
"""Length of a packet that the next packet continues."""


class EventType(IntEnum):
    """The allow-list: every event type that this version reads."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    APPEND_BLOCK = 9
    DELETE_FILE = 11
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    HEARTBEAT = 27
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED = 169
    MARIADB_UPDATE_ROWS_COMPRESSED = 170
    MARIADB_DELETE_ROWS_COMPRESSED = 171


COMPRESSED_ROWS: Final[dict[int, EventType]] = {
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: EventType.WRITE_ROWS_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: EventType.UPDATE_ROWS_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: EventType.DELETE_ROWS_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: EventType.WRITE_ROWS,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: EventType.UPDATE_ROWS,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: EventType.DELETE_ROWS,
}
"""Row events that MariaDB compressed, and their types when uncompressed."""

ROW_EVENTS: Final = frozenset(COMPRESSED_ROWS.values())
"""Row events with whole images, so without PARTIAL_UPDATE_ROWS. (MariaDB compresses
each of these types.)"""

GTID_EVENTS: Final = frozenset(
    {EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID}
)
"""The events that announce a transaction."""

BETWEEN_TRANSACTIONS: Final = frozenset(
    {
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.STOP,
        EventType.MARIADB_BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
        EventType.MARIADB_START_ENCRYPTION,
    }
)
"""Events that stand between transactions."""

_BEFORE_DESCRIPTION: Final = frozenset(
    {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT}
)
"""Events that may come before the format description, which says whether events have
checksums."""

_IN_USE_FLAG: Final = 0x1
_ARTIFICIAL_FLAG: Final = 0x20
_REFUSED_TYPES: Final = {
    26: "INCIDENT (the server says that its log may be incomplete)",
    36: "TRANSACTION_CONTEXT (group replication)",
    172: "PARTIAL_ROW_DATA (MariaDB)",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `type`: an EventType, or the number of a type that this version does
    not read. `timestamp`: seconds since the epoch. `offset`: where it begins in
    `file`. `size`: its bytes, checksum included. `is_artificial`: the server made it
    for this dump, so that it takes no bytes of the file. `raw`: header and body,
    without the checksum. `crc32`: the event's own checksum, or a computed one if the
    log has none. `log_server_id`: the id of the server that wrote the log, from the
    last format description; -1 before it."""

    type: int
    timestamp: int
    server_id: int
    flags: int
    file: LogFile
    offset: int
    size: int
    is_artificial: bool
    raw: bytes
    crc32: int
    log_server_id: int

    @property
    def body(self) -> bytes:
        return self.raw[HEADER_BYTES:]

    @property
    def end(self) -> int:
        return self.offset if self.is_artificial else self.offset + self.size

    @property
    def at(self) -> Coordinates:
        return Coordinates(self.file, self.offset)

    @property
    def after(self) -> Coordinates:
        return Coordinates(self.file, self.end)


def is_artificial(code: int, log_pos: int, flags: int) -> bool:
    """Return whether the server made the event for this dump, so that it is not in the
    file. A `log_pos` of 0 alone proves nothing: MariaDB 11 writes 0 for events that
    went through a transaction's cache."""
    if flags & _ARTIFICIAL_FLAG or code == EventType.HEARTBEAT or code == EventType.HEARTBEAT_V2:
        return True
    is_file_event = code == EventType.ROTATE or code == EventType.FORMAT_DESCRIPTION
    return log_pos == 0 and (is_file_event or code == EventType.MARIADB_START_ENCRYPTION)


_KNOWN_TYPES: Final = {event_type.value: event_type for event_type in EventType}


def read_event(
    packet: bytes, at: Coordinates, *, has_checksum: bool, log_server_id: int = -1
) -> Event:
    """Read an event of any type as the server sent it, at `at`. `has_checksum`: whether
    `packet` ends with a CRC32."""
    timestamp, code, server_id, size, log_pos, flags = HEADER.unpack_from(packet)
    body_end = len(packet) - CHECKSUM_BYTES if has_checksum else len(packet)
    return Event(
        type=_KNOWN_TYPES.get(code, code),
        timestamp=timestamp,
        server_id=server_id,
        flags=flags,
        file=at.file,
        offset=at.offset,
        size=size,
        is_artificial=is_artificial(code, log_pos, flags),
        raw=packet[:body_end],
        crc32=int.from_bytes(packet[body_end:], "little") if has_checksum else zlib.crc32(packet),
        log_server_id=log_server_id,
    )


def require_supported(event: Event) -> Event:
    """Return the event; raise UnsupportedEvent if its type is not on the allow-list."""
    if isinstance(event.type, EventType):
        return event
    name = _REFUSED_TYPES.get(event.type, "unknown to this version")
    raise UnsupportedEvent(
        f"the log holds an event of type {event.type}, {name}, at {event.at}",
        hint="it was not recorded; switch off the feature that writes such events, or wait for "
        "a version that reads them",
        event_place=str(event.at),
    )


def verify_and_read(packet: bytes, at: Coordinates, *, has_checksum: bool | None) -> Event:
    """Verify and read an event that the compiled loop does not verify: a ROTATE, a
    format description, or an event before the first format description (with
    `has_checksum` None)."""
    event_type = packet[TYPE_AT]
    if has_checksum is None and event_type not in _BEFORE_DESCRIPTION:
        raise damaged(f"an event of type {event_type} comes before the format description", at)
    if event_type == EventType.FORMAT_DESCRIPTION:
        event = _read_description_event(packet, at)
    else:
        # The artificial ROTATE comes before the first format description. Whether it
        # has a CRC32 depends on the server's own settings, so only its bytes can show
        # that.
        has_crc = crc_matches(packet) if has_checksum is None else has_checksum
        if has_crc and not crc_matches(packet):
            raise damaged("an event's checksum does not match its bytes", at)
        event = read_event(packet, at, has_checksum=has_crc)
    log_pos = HEADER.unpack_from(packet)[4]
    if not event.is_artificial and event.end & 0xFFFFFFFF != log_pos:
        raise damaged(f"an event says that it ends at {log_pos}, but it ends at {event.end}", at)
    return event


def _read_description_event(packet: bytes, at: Coordinates) -> Event:
    """Verify and read a format description. The byte before its checksum names the
    algorithm. If the algorithm is 0 (none), the event still has a checksum, which is
    not verified. The CRC32 is computed without the flag "log in use", which the
    server clears when it closes the file."""
    algorithm = packet[-CHECKSUM_BYTES - 1]
    if algorithm not in (0, 1):
        raise damaged(f"the log's checksum algorithm {algorithm} is unknown", at)
    without_flag = bytearray(packet)
    without_flag[_FLAGS_AT] &= ~_IN_USE_FLAG & 0xFF
    if algorithm == 1 and not (crc_matches(packet) or crc_matches(bytes(without_flag))):
        raise damaged("an event's checksum does not match its bytes", at)
    event = read_event(packet, at, has_checksum=True)
    return event if algorithm else replace(event, crc32=zlib.crc32(packet))


def crc_matches(packet: bytes) -> bool:
    body = memoryview(packet)[:-CHECKSUM_BYTES]
    return zlib.crc32(body) == int.from_bytes(packet[-CHECKSUM_BYTES:], "little")


def damaged(sentence: str, at: Coordinates | None = None) -> DamagedEvent:
    """Return the error for a damaged event. `sentence`: a sentence without its full
    stop. `at`: the event's place, if that is known."""
    if at is None:
        return DamagedEvent(
            sentence, hint="it was not recorded; look at the log with mysqlbinlog -vv"
        )
    return DamagedEvent(
        f"{sentence}, at {at}",
        hint="it was not recorded; run again, and if that fails, look at that place with "
        f"mysqlbinlog --verify-binlog-checksum --start-position={at.offset} {at.file}",
    )


class Reader:
    """Reads forward through `data`, an event's body, which errors call `subject`. Each
    method raises `DamagedEvent` if the body ends too early."""

    __slots__ = ("_data", "_subject", "bytes_read")

    def __init__(self, data: bytes, subject: str) -> None:
        self._data = data
        self._subject = subject
        self.bytes_read = 0

    @property
    def bytes_left(self) -> int:
        return len(self._data) - self.bytes_read

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes."""
        end = self.bytes_read + count
        if count < 0 or end > len(self._data):
            raise damaged(f"{self._subject} ends after {len(self._data)} bytes, {end} are needed")
        piece = self._data[self.bytes_read : end]
        self.bytes_read = end
        return piece

    def integer(self, count: int) -> int:
        """Read an unsigned integer of `count` bytes, little-endian."""
        return int.from_bytes(self.take(count), "little")

    def length_encoded(self) -> int:
        """Read a length-encoded integer (MySQL protocol,
        "Protocol::LengthEncodedInteger")."""
        first = self.integer(1)
        if first < 0xFB:
            return first
        if first == 0xFC:
            return self.integer(2)
        if first == 0xFD:
            return self.integer(3)
        if first == 0xFE:
            return self.integer(8)
        raise damaged(f"{self._subject} holds {first:#x} where a length should be")

    def serialized(self) -> int:
        """Read an unsigned integer of `mysql::serialization`: the lowest bits of the
        first byte are a one for each byte that follows it, then a zero, then the
        value."""
        first = self.integer(1)
        more_bytes = 0
        while more_bytes < 8 and first >> more_bytes & 1:
            more_bytes += 1
        if more_bytes == 8:
            return self.integer(8)
        value = first | int.from_bytes(self.take(more_bytes), "little") << 8
        return value >> more_bytes + 1

    def length_encoded_bytes(self) -> bytes:
        """Read a length-encoded integer and as many bytes."""
        return self.take(self.length_encoded())

    def rest(self) -> bytes:
        return self.take(self.bytes_left)
