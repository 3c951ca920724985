"""The log event by event, by headers alone: for the few events around a place."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.control import read_query, read_rotate
from pipeline.binlog.stream.framing import (
    FIRST_OFFSET,
    GTIDS,
    HEADER,
    PLACES,
    Event,
    EventType,
    is_artificial,
    read_event,
)
from pipeline.binlog.stream.intake import events
from pipeline.binlog.stream.outcomes import damaged
from pipeline.binlog.transactions.identity import IDENTITY, read_identity
from pipeline.ports.source import BinlogDump
from pipeline.position import Coordinates, LogFile

_BETWEEN: Final = GTIDS | PLACES
"""Events that no transaction holds behind its first."""

_ENDS: Final = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD})


@dataclass(frozen=True, slots=True)
class Seen:
    """An event of the log: where it stands, and its bytes as the server sent them. `log_server`:
    the id of the server that wrote the log, by the format description before it."""

    at: Coordinates
    code: int
    timestamp: int
    server_id: int
    packet: bytes
    checksum: bool
    log_server: int = -1

    @property
    def size(self) -> int:
        return len(self.packet)

    @property
    def after(self) -> Coordinates:
        return Coordinates(self.at.file, self.at.offset + self.size)

    @property
    def crc32(self) -> int:
        """Its own checksum, or one computed where the log has none."""
        if self.checksum:
            return int.from_bytes(self.packet[-4:], "little")
        return zlib.crc32(self.packet)

    @property
    def event(self) -> Event:
        """For the readers of bodies; UnsupportedEvent for a type that is not on their list."""
        return read_event(self.packet, self.at, checksum=self.checksum)


def walk(dump: BinlogDump, start: Coordinates) -> Iterator[Seen]:
    """Every event that takes a place in the log, from where the dump begins (`start`, or
    before it) to the log's present end."""
    at = dump.begins or start
    checksum, log_server = True, -1
    for packet in events(dump):
        timestamp, code, server_id, size, log_pos, flags = HEADER.unpack_from(packet)
        if size != len(packet):
            raise damaged(f"an event says that it has {size} bytes, not {len(packet)}", at)
        if code == EventType.FORMAT_DESCRIPTION:
            checksum, log_server = packet[-5] == 1, server_id
        made = is_artificial(code, log_pos, flags)
        if not made:
            seen = Seen(at, code, timestamp, server_id, packet, checksum, log_server)
            yield seen
            at = seen.after
        if code == EventType.ROTATE:
            file = _rotated(packet, at)
            if not made or file != at.file:
                at = Coordinates(file, FIRST_OFFSET)


def behind_transaction(dump: BinlogDump, begin: Coordinates, head: Coordinates) -> Coordinates:
    """The end of the transaction that an event at `begin` belongs to, the log's end `head` at the
    latest."""
    for seen in walk(dump, begin):
        if seen.at < begin:
            continue
        if seen.code in _BETWEEN and begin < seen.at:
            return seen.at
        if _ends(seen) or not seen.after < head:
            return seen.after
    return head


def _rotated(packet: bytes, at: Coordinates) -> LogFile:
    """The file that a ROTATE names. Whether a checksum is behind the name only the bytes
    tell: the one that a dump begins with comes before anything says so."""
    checked = zlib.crc32(packet[:-4]) == int.from_bytes(packet[-4:], "little")
    return read_rotate(packet[HEADER.size : -4 if checked else None], at).file


@dataclass(slots=True)
class SteppedOver:
    """Index rows of transactions, what they count in, and the place behind them."""

    at: Coordinates
    rows: list[list[int]] = field(default_factory=list)
    files: list[LogFile] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def step_over(dump: BinlogDump, start: Coordinates, end: Coordinates, count: int) -> SteppedOver:
    """So many transactions from `start` on, fewer where `end` or the log's end comes first.
    One whose end is none of the usual reaches to the next event that stands between two."""
    found = SteppedOver(start)
    row: list[int] | None = None
    for seen in walk(dump, start):
        if seen.at < start:
            continue
        if seen.code in _BETWEEN:
            row = None
        if row is None and (len(found.rows) >= count or seen.at >= end):
            return found
        if seen.code in GTIDS:
            row = _opened(seen, found)
        if row is not None:
            _add(row, seen)
            if _ends(seen):
                row = None
        found.at = seen.after
    return found


def _opened(seen: Seen, found: SteppedOver) -> list[int]:
    row = [0] * columns.TRANSACTION_COLUMNS
    if found.files[-1:] != [seen.at.file]:
        found.files.append(seen.at.file)
    row[columns.FILE] = len(found.files) - 1
    row[columns.BEGIN_OFFSET] = seen.at.offset
    row[columns.SERVER] = seen.server_id
    identity = read_identity(seen.event, found.sources, seen.log_server)
    for column, value in zip(IDENTITY, identity, strict=True):
        row[column] = value
    found.rows.append(row)
    return row


def _ends(seen: Seen) -> bool:
    if seen.code == EventType.QUERY:
        return read_query(seen.event).text.upper() in ("COMMIT", "ROLLBACK")
    return seen.code in _ENDS


def _add(row: list[int], seen: Seen) -> None:
    row[columns.END_OFFSET] = seen.after.offset
    row[columns.LAST_OFFSET], row[columns.LAST_SIZE] = seen.at.offset, seen.size
    row[columns.LAST_CRC], row[columns.LAST_TIMESTAMP] = seen.crc32, seen.timestamp
    row[columns.LOG_BYTES] += seen.size
