"""A header scan: proves a place in a log file to lie between two transactions.

Belongs here: walking a file's events from its beginning by their headers, whatever
their types, to find where transactions begin and end and what stands before a place.
Does not: deciding what to do about it (`pipeline.start`), decoding rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.binlog.control import (
    read_gtid,
    read_mariadb_gtid,
    read_previous_gtids,
    read_query,
    read_tagged_gtid,
)
from pipeline.binlog.framing import FIRST_OFFSET, HEADER, Event, EventType, is_artificial
from pipeline.errors import DamagedEvent, NotAnEventBoundary
from pipeline.position import Coordinates, GtidSet, Witness

_GTID_EVENTS = frozenset(
    {EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID}
)
_SELF_ENDING = frozenset({EventType.XID, 38, 40})
"""Events that end their transaction whatever they hold: XID, XA_PREPARE, and
TRANSACTION_PAYLOAD, which is a whole one."""


@dataclass(slots=True)
class _Walk:
    """What has been seen of the file so far."""

    offset: int = FIRST_OFFSET
    created: int = 0
    checksum: bool = True
    gtids: GtidSet = field(default_factory=GtidSet)
    opened_at: int | None = None
    opened_gtid: str = ""
    begun: bool = False
    witness: Witness | None = None
    before_open: Witness | None = None
    head_read: bool = False


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two transactions: at or before the one asked for (`rewound` if
    that lay inside a transaction), the GTIDs executed up to it, and the witness of the
    event before it; None at a file's very beginning."""

    at: Coordinates
    gtid_set: GtidSet
    witness: Witness | None
    rewound: bool


def find_boundary(packets: Iterable[bytes], at: Coordinates) -> Boundary:
    """Read a dump of `at.file` from its beginning up to `at`.

    NotAnEventBoundary if no event begins or ends at `at`.
    """
    walk = _Walk()
    for packet in packets:
        timestamp, code, _, size, log_pos, flags = HEADER.unpack_from(packet)
        if is_artificial(code, log_pos, flags):
            continue
        if _arrived(walk, at, code):
            break
        _step(walk, _event(packet, at, walk), timestamp, code, size)
    if walk.offset != at.offset and at.offset != FIRST_OFFSET:
        raise NotAnEventBoundary(
            f"no event begins at {at}; the nearest one before ends at {walk.offset}",
            hint=f"choose {at.file}:{walk.offset}, or an offset that SHOW BINLOG EVENTS lists",
        )
    if at.offset == FIRST_OFFSET:
        return Boundary(at, walk.gtids, None, rewound=False)
    if walk.opened_at is not None:
        back = Coordinates(at.file, walk.opened_at)
        return Boundary(back, walk.gtids, walk.before_open, rewound=True)
    return Boundary(at, walk.gtids, walk.witness, rewound=False)


def _arrived(walk: _Walk, at: Coordinates, code: int) -> bool:
    """At the place; for a file's beginning, past the events that tell its GTIDs."""
    if at.offset == FIRST_OFFSET:
        return walk.head_read or code in _GTID_EVENTS
    return walk.offset >= at.offset


def _event(packet: bytes, at: Coordinates, walk: _Walk) -> Event:
    """The packet as an event of unchecked type, for the readers of control events."""
    if packet[4] == EventType.FORMAT_DESCRIPTION:
        walk.checksum = packet[-5] == 1
    raw = packet[:-4] if walk.checksum or packet[4] == EventType.FORMAT_DESCRIPTION else packet
    crc32 = int.from_bytes(packet[-4:], "little") if walk.checksum else zlib.crc32(packet)
    timestamp, _, server_id, size, _, flags = HEADER.unpack_from(packet)
    known = packet[4] in EventType._value2member_map_
    kind = EventType(packet[4]) if known else EventType.HEARTBEAT
    return Event(kind, timestamp, server_id, flags, at.file, walk.offset, size, False, raw, crc32)


def _step(walk: _Walk, event: Event, timestamp: int, code: int, size: int) -> None:
    if code == EventType.FORMAT_DESCRIPTION:
        walk.created = timestamp
    elif code == EventType.PREVIOUS_GTIDS:
        walk.gtids = read_previous_gtids(event)
        walk.head_read = True
    elif code in _GTID_EVENTS:
        walk.opened_at, (walk.opened_gtid, walk.begun) = event.offset, _opening(event)
        walk.before_open = walk.witness
    closes = walk.opened_at is not None and _closes(walk, event, code)
    gtid_text = walk.opened_gtid if walk.opened_at is not None else ""
    walk.witness = Witness(walk.offset, size, event.crc32, gtid_text, walk.created)
    walk.offset += size
    if closes:
        if walk.opened_gtid:
            walk.gtids = walk.gtids.union(GtidSet.parse(walk.opened_gtid))
        walk.opened_at, walk.begun = None, False


def _opening(event: Event) -> tuple[str, bool]:
    """The GTID that an event announces, "" where positions carry none, and whether the
    transaction is begun with it."""
    if event.type is EventType.MARIADB_GTID:
        gtid = read_mariadb_gtid(event)
        return "", not gtid.standalone and (gtid.xid is None or gtid.prepares)
    if event.type is EventType.GTID_TAGGED:
        return read_tagged_gtid(event).text, False
    anonymous = event.type is EventType.ANONYMOUS_GTID
    return read_gtid(event, anonymous=anonymous).text, False


def _closes(walk: _Walk, event: Event, code: int) -> bool:
    if code in _SELF_ENDING:
        return True
    if code != EventType.QUERY:
        return False
    words = read_query(event).text[:16].upper().split()
    if not walk.begun and (words == ["BEGIN"] or words[:2] == ["XA", "START"]):
        walk.begun = True
        return False
    return not walk.begun or words in (["COMMIT"], ["ROLLBACK"])


def read_witness(packets: Iterable[bytes], offset: int, created: int) -> Witness | None:
    """The event that a dump from `offset` begins with, as a witness; None if it begins
    with none. `created` is the file's creation time, from `read_created`."""
    checksum = True
    for packet in packets:
        _, code, _, size, log_pos, flags = HEADER.unpack_from(packet)
        if code == EventType.FORMAT_DESCRIPTION:
            checksum = packet[-5] == 1
        if is_artificial(code, log_pos, flags):
            continue
        crc32 = int.from_bytes(packet[-4:], "little") if checksum else zlib.crc32(packet)
        return Witness(offset, size, crc32, "", created)
    return None


def read_created(packets: Iterable[bytes]) -> int:
    """When a log file was created (seconds since the epoch): the moment its format
    description was written. A dump from the file's beginning shows it."""
    for packet in packets:
        timestamp, code, *_ = HEADER.unpack_from(packet)
        if code == EventType.FORMAT_DESCRIPTION:
            return int(timestamp)
    raise DamagedEvent(
        "a log file begins without a format description",
        hint="look at the file with mysqlbinlog",
    )
