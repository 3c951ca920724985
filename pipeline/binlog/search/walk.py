"""A walk over a log's events by their headers, in Python: for the few events around a place."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.control import read_query, read_rotate
from lockstep.pipeline.binlog.stream.framing import (
    FIRST_OFFSET,
    GTIDS,
    HEADER,
    PLACES,
    Event,
    EventType,
    is_artificial,
    read_event,
)
from lockstep.pipeline.binlog.stream.intake import events
from lockstep.pipeline.binlog.stream.outcomes import damaged
from lockstep.pipeline.binlog.transactions.identity import IDENTITY, read_identity
from lockstep.pipeline.ports.source import BinlogDump
from lockstep.pipeline.values.position import Coordinates, LogFile

_BETWEEN: Final = GTIDS | PLACES
"""Events that end a transaction before them: each begins one, or stands between two."""

_ENDS: Final = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD})


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event of the log: its place, and its bytes as the server sent them. `log_server`:
    the id of the server that wrote the log, from the last format description."""

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
        """Its own checksum, or one computed here if the log has none."""
        if self.checksum:
            return int.from_bytes(self.packet[-4:], "little")
        return zlib.crc32(self.packet)

    @property
    def parsed(self) -> Event:
        """The event for the functions that read bodies; UnsupportedEvent if its type is not on the
        allow-list."""
        return read_event(self.packet, self.at, checksum=self.checksum)


def walk(dump: BinlogDump, start: Coordinates) -> Iterator[LoggedEvent]:
    """Yield every event that is in the log itself, from where the dump begins (`start`, or
    before it) to the log's present end."""
    at = dump.begins or start
    checksum, log_server = True, -1
    for packet in events(dump):
        timestamp, code, server_id, size, log_pos, flags = HEADER.unpack_from(packet)
        if size != len(packet):
            raise damaged(f"an event says that it has {size} bytes, not {len(packet)}", at)
        if code == EventType.FORMAT_DESCRIPTION:
            checksum, log_server = packet[-5] == 1, server_id
        artificial = is_artificial(code, log_pos, flags)
        if not artificial:
            event = LoggedEvent(at, code, timestamp, server_id, packet, checksum, log_server)
            yield event
            at = event.after
        if code == EventType.ROTATE:
            file = _rotated(packet, at)
            if not artificial or file != at.file:
                at = Coordinates(file, FIRST_OFFSET)


def end_of_transaction(dump: BinlogDump, begin: Coordinates, head: Coordinates) -> Coordinates:
    """Return the end of the transaction that the event at `begin` belongs to, at most the log's
    end `head`."""
    for event in walk(dump, begin):
        if event.at < begin:
            continue
        if event.code in _BETWEEN and begin < event.at:
            return event.at
        if _ends(event) or not event.after < head:
            return event.after
    return head


def _rotated(packet: bytes, at: Coordinates) -> LogFile:
    """Return the file that a ROTATE names. A dump begins with a ROTATE, before a format description
    says whether events have checksums, so the bytes have to decide."""
    has_checksum = zlib.crc32(packet[:-4]) == int.from_bytes(packet[-4:], "little")
    return read_rotate(packet[HEADER.size : -4 if has_checksum else None], at).file


@dataclass(slots=True)
class WalkedTransactions:
    """Index rows of transactions, the files and sources that they refer to, and the place after
    them."""

    at: Coordinates
    rows: list[list[int]] = field(default_factory=list)
    files: list[LogFile] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def step_over(
    dump: BinlogDump, start: Coordinates, end: Coordinates, count: int
) -> WalkedTransactions:
    """Return `count` transactions from `start` on, fewer if `end` or the log's end comes first.
    A transaction without one of the usual ends reaches to the next event that begins a transaction
    or stands between two."""
    transactions = WalkedTransactions(start)
    row: list[int] | None = None
    for event in walk(dump, start):
        if event.at < start:
            continue
        if event.code in _BETWEEN:
            row = None
        if row is None and (len(transactions.rows) >= count or event.at >= end):
            return transactions
        if event.code in GTIDS:
            row = _open(event, transactions)
        if row is not None:
            _add(row, event)
            if _ends(event):
                row = None
        transactions.at = event.after
    return transactions


def _open(event: LoggedEvent, transactions: WalkedTransactions) -> list[int]:
    row = [0] * columns.TRANSACTION_COLUMNS
    if transactions.files[-1:] != [event.at.file]:
        transactions.files.append(event.at.file)
    row[columns.FILE] = len(transactions.files) - 1
    row[columns.BEGIN_OFFSET] = event.at.offset
    row[columns.SERVER] = event.server_id
    identity = read_identity(event.parsed, transactions.sources, event.log_server)
    for column, value in zip(IDENTITY, identity, strict=True):
        row[column] = value
    transactions.rows.append(row)
    return row


def _ends(event: LoggedEvent) -> bool:
    if event.code == EventType.QUERY:
        return read_query(event.parsed).text.upper() in ("COMMIT", "ROLLBACK")
    return event.code in _ENDS


def _add(row: list[int], event: LoggedEvent) -> None:
    row[columns.END_OFFSET] = event.after.offset
    row[columns.LAST_OFFSET], row[columns.LAST_SIZE] = event.at.offset, event.size
    row[columns.LAST_CRC], row[columns.LAST_TIMESTAMP] = event.crc32, event.timestamp
    row[columns.LOG_BYTES] += event.size
