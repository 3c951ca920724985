"""A log that is written event by event, what must come of it, and its dump, as a server sends it
while the log grows.

The model of the transaction buffer's rules is a few lists. The buffer itself is not used here.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.pipeline.dialects_made import tagged_gtid
from tests.pipeline.made import (
    SERVER,
    format_description,
    gtid,
    mariadb_gtid,
    nested,
    packet,
    payload,
    query,
    rotate,
    rows,
    table_map,
    xa_prepare,
)

TAGGED: Final = UUID(int=1 << 64)
UNWANTED: Final = "unwanted"


@dataclass(frozen=True, slots=True)
class Expected:
    """A transaction as it must come out; `waiting`: the XIDs prepared and not ended then."""

    gtid: str
    values: tuple[int, ...]
    statements: tuple[str, ...]
    end: Coordinates
    waiting: frozenset[bytes]
    texts: tuple[str, ...] = ()


@dataclass(slots=True)
class WrittenLog:
    """The log so far: `events`, each with its place and as it is sent; `expected`."""

    file: LogFile = field(default_factory=lambda: LogFile("binlog", 1))
    offset: int = 4
    events: list[tuple[Coordinates, bytes]] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    prepared: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    xid: bytes | None = None
    open: bool = False
    inside: list[bytes] | None = None
    savepoints: list[tuple[str, int, int]] = field(default_factory=list)
    _compressed: bool = False
    _number: int = 0
    _value: int = 0
    _gtid: str = ""
    _values: list[int] = field(default_factory=list)
    _statements: list[str] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)

    @property
    def at(self) -> Coordinates:
        return Coordinates(self.file, self.offset)

    def add(self, kind: int, body: bytes, *, artificial: bool = False) -> None:
        """The next event, in the payload that is open if one is."""
        if self.inside is not None:
            self.inside.append(nested(kind, body))
            return
        if artificial:
            made = packet(kind, body, self.offset, flags=0x20, end=0)
        else:
            made = packet(kind, body, self.offset)
        self.events.append((self.at, made))
        self.offset += 0 if artificial else len(made)

    def add_query(self, text: str) -> None:
        self.add(EventType.QUERY, query(text))

    def head(self) -> None:
        """What a file begins with."""
        self.add(EventType.FORMAT_DESCRIPTION, format_description())
        self.add(EventType.PREVIOUS_GTIDS, struct.pack("<Q", 0))

    def rotate(self) -> None:
        following = LogFile("binlog", self.file.number + 1)
        self.add(EventType.ROTATE, rotate(str(following)))
        self.file, self.offset = following, 4
        self.add(EventType.ROTATE, rotate(str(self.file)), artificial=True)
        self.head()

    def beat(self) -> None:
        """A heartbeat, which moves nothing."""
        self.add(EventType.HEARTBEAT, str(self.file).encode(), artificial=True)

    # -- transactions -------------------------------------------------------------------

    def announce(self, kind: str, *, begins: bool = False, prepares: bytes = b"") -> None:
        """A GTID event of its kind; MariaDB's begins its transaction, or stands alone."""
        self._number += 1
        self.open = True
        match kind:
            case "mariadb":
                self._gtid = f"0-7-{self._number}"
                alone = not begins and not prepares
                body = mariadb_gtid(self._number, standalone=alone, gtrid=prepares)
                self.add(EventType.MARIADB_GTID, body)
            case "tagged":
                self._gtid = f"{TAGGED}:tag:{self._number}"
                self.add(EventType.GTID_TAGGED, tagged_gtid(TAGGED, "tag", self._number, 1))
            case _:
                self._gtid = f"{SERVER}:{self._number}"
                self.add(EventType.GTID, gtid(self._number))

    def begin(self, kind: str, *, packed: bool, compressed: bool) -> None:
        self.announce(kind, begins=True)
        self._enter(packed and kind != "mariadb", compressed)
        if kind != "mariadb":
            self.add_query("BEGIN")

    def begin_xa(self, kind: str, xid: bytes, *, packed: bool) -> None:
        self.announce(kind, prepares=xid)
        self.xid = xid
        self._enter(packed and kind != "mariadb", bool(self._number % 2))
        if kind != "mariadb":
            self.add_query(f"XA START {_xid_text(xid)}")

    def _enter(self, packed: bool, compressed: bool) -> None:
        if packed:
            self.inside, self._compressed = [], compressed

    def write(self, count: int, table: str, *, deflated: bool = False) -> None:
        """A statement's rows, with values that no other row has."""
        values = range(self._value, self._value + count)
        self._value += count
        number = sum(table.encode())
        body = rows(*values, table_id=number)
        self.add(EventType.TABLE_MAP, table_map(number, table))
        if deflated and self.inside is None:
            plain = body[12:]
            packed = b"\x84" + struct.pack(">I", len(plain)) + zlib.compress(plain)
            self.add(EventType.MARIADB_WRITE_ROWS_COMPRESSED, body[:12] + packed)
        else:
            self.add(EventType.WRITE_ROWS, body)
        if table != UNWANTED:
            self._values += values

    def savepoint(self, name: str) -> None:
        self.add_query(f"SAVEPOINT `{name}`")
        self.savepoints = [one for one in self.savepoints if one[0] != name]
        self.savepoints.append((name, len(self._values), len(self._texts)))

    def rollback_to(self, which: int) -> None:
        name, count, texts = self.savepoints[which]
        self.add_query(f"ROLLBACK TO `{name}`")
        del self.savepoints[which + 1 :]
        del self._values[count:]
        del self._texts[texts:]

    def note(self, text: str) -> None:
        """A statement's text, as either server logs it."""
        self._texts.append(text)
        if len(text) % 2:
            self.add(EventType.MARIADB_ANNOTATE_ROWS, text.encode())
        else:
            self.add(EventType.ROWS_QUERY, bytes([len(text) & 0xFF]) + text.encode())

    def create(self) -> None:
        text = "CREATE TABLE `t` (`i` int) START TRANSACTION"
        self.add_query(text)
        self._statements.append(text)

    def commit(self, how: str) -> None:
        if how == "xid":
            self.add(EventType.XID, bytes(8))
        else:
            self.add_query(how)
        if how == "ROLLBACK":
            self._values.clear()
            self._statements.clear()
            self._texts.clear()
        self._leave()

    def end_xa(self, how: str) -> None:
        """Prepared, or ended at once."""
        assert self.xid is not None
        text = _xid_text(self.xid)
        self.add_query(f"XA END {text}")
        if how in ("prepare", "one phase"):
            one_phase = how == "one phase"
            self.add(EventType.XA_PREPARE, xa_prepare(self.xid, one_phase=one_phase))
        else:
            self.add_query(f"{how} {text}" if how.startswith("XA") else how)
        if how == "prepare":
            self.prepared[self.xid] = tuple(self._values)
        if how in ("prepare", "ROLLBACK", "XA ROLLBACK"):
            self._values.clear()
        if how in ("ROLLBACK", "XA ROLLBACK"):
            self._texts.clear()
        self._leave()

    def settle_xa(self, kind: str, xid: bytes, *, commits: bool) -> None:
        """XA COMMIT or XA ROLLBACK of what was prepared."""
        self.announce(kind)
        values = self.prepared.pop(xid, ())
        if commits:
            self._values += values
        self.add_query(f"XA {'COMMIT' if commits else 'ROLLBACK'} {_xid_text(xid)}")
        self._leave()

    def statement(self, kind: str, text: str, *, packed: bool) -> None:
        self.announce(kind)
        self._enter(packed and kind != "mariadb", True)
        self.add_query(text)
        self._statements.append(text)
        self._leave()

    def _leave(self) -> None:
        if self.inside is not None:
            inside, self.inside = b"".join(self.inside), None
            body = payload(inside, compressed=self._compressed)
            self.add(EventType.TRANSACTION_PAYLOAD, body)
        found = tuple(self._values), tuple(self._statements)
        waiting = frozenset(self.prepared)
        texts = tuple(self._texts)
        self.expected.append(Expected(self._gtid, *found, self.at, waiting, texts))
        for left in (self._values, self._statements, self._texts, self.savepoints):
            left.clear()
        self.open, self.xid = False, None


def _xid_text(xid: bytes) -> str:
    return f"X'{xid.hex()}',X'',1"


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
