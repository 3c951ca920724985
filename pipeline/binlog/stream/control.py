"""The bodies of control events: GTIDs, QUERY, XA_PREPARE, PREVIOUS_GTIDS, ROTATE.

Formats: `libs/mysql/binlog/event/control_events.h` and `statement_events.h` of MySQL's
source. Table maps are `table_map`, row events the decoder's.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from pipeline.batch import Xid
from pipeline.binlog.stream.damage import damaged
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import Event, EventType
from pipeline.binlog.stream.gtid_sets import decoded
from pipeline.errors import DamagedEvent
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates, LogFile

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOGICAL_CLOCK = 2
_55_BITS = (1 << 55) - 1
_THREAD_SPECIFIC = 0x4
_LOAD_HEAD = 13
_MAX_NUMBER = (1 << 63) - 1
_LAST_MOMENT = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Gtid:
    """A transaction's identity. `text` is "" for an anonymous one; `committed_at` is when it was
    committed first, on whichever server, in microseconds since the epoch, `here` when the server
    committed it that wrote the log; None where the log does not say."""

    text: str
    committed_at: int | None
    here: int | None = None


def read_gtid(event: Event, *, anonymous: bool) -> Gtid:
    """GTID and ANONYMOUS_GTID share one body: flags 1, UUID 16, number 8, then since
    5.7 a logical clock (1 + 16), since 8.0 commit timestamps of 7 bytes each."""
    reader = Reader(event.body, "a GTID event")
    reader.take(1)
    uuid = UUID(bytes=reader.take(16))
    number = reader.integer(8)
    committed_at = here = 0
    if reader.left >= 24 and reader.integer(1) == _LOGICAL_CLOCK:
        reader.take(16)
        immediate = reader.integer(7)
        committed_at = here = immediate & _55_BITS
        if immediate >> 55:
            committed_at = reader.integer(7)
    if anonymous:
        return Gtid("", committed_at or None, here or None)
    if not 1 <= number <= _MAX_NUMBER:
        raise _no_gtid(f"its number is {number}")
    return Gtid(f"{uuid}:{number}", committed_at or None, here or None)


def _no_gtid(why: str) -> DamagedEvent:
    return DamagedEvent(
        f"a GTID event holds no GTID: {why}",
        hint="it was not recorded; look at that place with mysqlbinlog",
    )


def read_tagged_gtid(event: Event) -> Gtid:
    """GTID_TAGGED (MySQL 8.3+): numbered fields in the coding of `mysql::serialization`
    (`libs/mysql/serialization/readme.md`): after a version, a size and the last field that
    may not be ignored, a field's number and its value, in ascending order."""
    reader = Reader(event.body, "a tagged GTID event")
    _, size, _ = (reader.serialized() for _ in range(3))
    if size != len(event.body):
        raise DamagedEvent(
            f"a tagged GTID event says that it has {size} bytes, not {len(event.body)}, "
            f"at {event.at}",
            hint="it was not recorded; look at that place with mysqlbinlog",
        )
    source, number, immediate, original = "", 0, 0, 0
    while reader.left:
        match reader.serialized():
            case 0 | 9 | 10 | 11 | 8:
                reader.serialized()
            case 1:
                uuid = bytes(reader.serialized() & 0xFF for _ in range(16))
                source = str(UUID(bytes=uuid))
            case 2:
                number = reader.serialized() >> 1
            case 3:
                tag = reader.take(reader.serialized()).decode("ascii", "replace")
                source = f"{source}:{tag}" if tag else source
            case 4 | 5:
                reader.serialized()
            case 6:
                immediate = reader.serialized()
            case 7:
                original = reader.serialized()
            case _:
                break
    text = f"{source}:{number}"
    try:
        GtidSet.parse(text)
    except ValueError as error:
        raise _no_gtid(str(error)) from error
    return Gtid(text, original or immediate or None, immediate or None)


def read_xa_prepare(event: Event) -> tuple[Xid, bool]:
    """XA_PREPARE: one phase 1, format id 4, lengths of gtrid and bqual 4 each, both; the
    XID, and whether it was committed in one phase."""
    reader = Reader(event.body, "an XA_PREPARE event")
    one_phase = reader.integer(1) != 0
    format_id = _signed(reader.integer(4))
    lengths = reader.integer(4), reader.integer(4)
    return Xid(format_id, reader.take(lengths[0]), reader.take(lengths[1])), one_phase


_XA: Final = re.compile(
    r"XA\s+\w+\s+X'(?P<gtrid>(?:[0-9a-f]{2})*)'\s*,\s*X'(?P<bqual>(?:[0-9a-f]{2})*)'"
    r"\s*,\s*(?P<format>[0-9]{1,20})\b",
    re.IGNORECASE,
)


def read_xid(statement: str, at: Coordinates) -> Xid:
    """The XID of an XA statement as a server logs it: both parts in hex, all three there;
    `at` is where it stands. XA_PREPARE has 32 bits of the format id, so more count for
    nothing here; no server keeps two XIDs apart by their format ids."""
    match = _XA.match(statement)
    if match is None:
        raise DamagedEvent(
            f"an XA statement names no XID, at {at}: {statement[:80]!r}",
            hint="it was not recorded; look at that place with mysqlbinlog",
        )
    gtrid, bqual = (bytes.fromhex(match[part]) for part in ("gtrid", "bqual"))
    return Xid(_signed(int(match["format"]) & 0xFFFFFFFF), gtrid, bqual)


_SAVEPOINT: Final = re.compile(
    r"(?:SAVEPOINT|ROLLBACK\s+(?:WORK\s+)?TO(?:\s+SAVEPOINT)?)\s+(?P<name>.+)",
    re.IGNORECASE | re.DOTALL,
)
_SHARP_S: Final = "\N{LATIN SMALL LETTER SHARP S}"


def savepoint_name(statement: str) -> str:
    """The name in SAVEPOINT `x` or ROLLBACK TO `x`, quotes included. Names that are one to
    the server, which compares them by utf8mb3_general_ci, are one here."""
    match = _SAVEPOINT.match(statement)
    name = unicodedata.normalize("NFD", match["name"].strip() if match else "")
    bare = "".join(letter for letter in name if not unicodedata.combining(letter))
    return bare.replace(_SHARP_S, "S").upper()


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@dataclass(frozen=True, slots=True)
class MariaDbGtid:
    """MariaDB's GTID event: number, domain, whether a lone statement follows, and the XID
    of an XA transaction that begins (`prepares`) or ends here."""

    domain: int
    number: int
    standalone: bool
    prepares: bool
    xid: Xid | None


def read_mariadb_gtid(event: Event) -> MariaDbGtid:
    """Number 8, domain 4, flags 1; with flag 0x02 a commit id of 8 bytes; with 0x40
    (prepared) or 0x80 (completed) an XID: format id 4, two lengths 1 each, gtrid, bqual.
    (`Gtid_log_event` in MariaDB's `sql/log_event.h`.)"""
    reader = Reader(event.body, "a GTID event")
    number, domain, flags = reader.integer(8), reader.integer(4), reader.integer(1)
    if number > _MAX_NUMBER:
        raise _no_gtid(f"its number is {number}")
    if flags & 0x02:
        reader.take(8)
    xid = None
    if flags & 0xC0:
        format_id = _signed(reader.integer(4))
        lengths = reader.integer(1), reader.integer(1)
        xid = Xid(format_id, reader.take(lengths[0]), reader.take(lengths[1]))
    return MariaDbGtid(domain, number, bool(flags & 0x01), bool(flags & 0x40), xid)


def read_previous_gtids(event: Event) -> GtidSet:
    """The set executed before this file."""
    return decoded(event.body)


_NAME_SHOWN: Final = 80
"""Of a file's name that is none so much is shown."""


def read_rotate(body: bytes, at: Coordinates) -> Coordinates:
    """Where the log goes on: the offset 8, the file's name. `at`: where the ROTATE stands;
    DamagedEvent for what is no file of the log that it stands in."""
    offset = int.from_bytes(body[:8], "little")
    name = body[8:].decode("utf-8", "replace")
    if offset >> 62:
        raise damaged(f"the log rotates to offset {offset}", at)
    shown = name[:_NAME_SHOWN]
    try:
        file = LogFile.parse(name)
    except ValueError:
        raise damaged(f"the log rotates to {shown!r}, which is no log file", at) from None
    if file.base != at.file.base:
        raise damaged(f"the log rotates to {shown}, another log", at)
    return Coordinates(file, offset)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as logged: its default database and its bytes as text.

    `text` is decoded as UTF-8 where it can be, else as latin1, which keeps every byte:
    enough to tell statements apart. Who reads one takes `raw` in its client's character
    set, which is among the status variables (`status`; `schema.context`). `second`: when it
    began, in seconds since the epoch. `thread_specific`: its header's flag of that name, which
    statements have that use temporary tables. `error`: the number of the error that the
    statement failed with after a part of it was done, else 0. `for_rows`: it stands inside a
    transaction, where rows are otherwise: its session logs in statement format.
    """

    database: str
    text: str
    status: bytes = b""
    raw: bytes = b""
    second: int = 0
    thread_specific: bool = False
    error: int = 0
    for_rows: bool = False


def read_query(event: Event) -> Query:
    """thread id 4, seconds 4, database length 1, error code 2, status length 2, status
    variables, database, NUL, statement. In an EXECUTE_LOAD_QUERY, before the status variables: file
    id 4, the file name's begin 4 and end 4 in the statement, what is done about duplicates 1."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(8)
    database_length = reader.integer(1)
    error = reader.integer(2)
    status_length = reader.integer(2)
    if event.type is EventType.EXECUTE_LOAD_QUERY:
        reader.take(_LOAD_HEAD)
    status = reader.take(status_length)
    database = reader.take(database_length)
    reader.take(1)
    raw = reader.rest()
    thread_specific = bool(event.flags & _THREAD_SPECIFIC)
    names = _text(database), _text(raw)
    return Query(*names, status, raw, event.timestamp, thread_specific, error)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def moment(microseconds: int) -> datetime:
    """Microseconds since the epoch → UTC; DamagedEvent beyond the year 9999."""
    if microseconds > _LAST_MOMENT:
        raise _no_gtid(f"it was committed {microseconds} microseconds after the epoch")
    return EPOCH + timedelta(microseconds=microseconds)
