"""The bodies of events without rows: format description, GTIDs and GTID sets, QUERY,
XA_PREPARE, ROTATE.

Formats: MySQL manual, `FORMAT_DESCRIPTION_EVENT`;
`libs/mysql/binlog/event/control_events.h` and `statement_events.h` of MySQL's source.
The docstrings list the fields of a body with their sizes in bytes. `rows` reads table
maps and row events.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from lockstep.pipeline.binlog.stream.framing import HEADER_BYTES, Event, EventType, Reader, damaged
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.values.errors import UnsupportedEvent
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_THREAD_SPECIFIC = 0x4
_LOAD_QUERY_BYTES = 13
LOGICAL_CLOCK, COMMIT_TIMESTAMP_MASK = 2, (1 << 55) - 1
"""The byte before a GTID event's logical clock; the bits of a commit timestamp. Bit 55
says that the original timestamp follows the immediate one."""

_MAX_GTID_NUMBER = (1 << 63) - 1
_MAX_OFFSET = (1 << 62) - 1
"""Largest offset: the sum of any two fits into a signed 64-bit number."""
_LAST_MOMENT = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
_LAST_GTID_FIELD: Final = 11
"""Fields of newer servers have higher numbers, and come after these."""


def read_gtid(event: Event) -> tuple[int, int, int, int, int]:
    """Read a GTID or ANONYMOUS_GTID event (sizes in bytes): flags 1, UUID 16, number 8;
    since 5.7 a logical clock, 1 + 16; since 8.0 commit timestamps, 7 each. Return the
    UUID's halves, the number, and the immediate and original commit timestamps."""
    reader = Reader(event.body, "a GTID event")
    reader.take(1)
    high, low = (int.from_bytes(reader.take(8), "big", signed=True) for _ in range(2))
    number = reader.integer(8)
    if event.type is EventType.GTID and not 1 <= number <= _MAX_GTID_NUMBER:
        raise damaged(f"a GTID event holds no GTID: its number is {number}", event.at)
    immediate = original = 0
    if reader.bytes_left >= 24 and reader.integer(1) == LOGICAL_CLOCK:
        reader.take(16)
        timestamp = reader.integer(7)
        immediate = original = timestamp & COMMIT_TIMESTAMP_MASK
        if timestamp >> 55:
            original = reader.integer(7)
    return high, low, number, immediate, original


def read_tagged_gtid(event: Event) -> tuple[str, int, int, int]:
    """Return a GTID_TAGGED event's source with its tag, its number, and its immediate
    and original commit timestamps (microseconds since the epoch).

    The event (MySQL 8.3+) has numbered fields, encoded by `mysql::serialization`
    (`libs/mysql/serialization/readme.md`): a version, the size, and the number of the
    last field that a reader may not ignore (0: it may ignore all), then each field's
    number and value, in ascending order. Fields: 1 the source's UUID, 2 the GTID's
    number (signed, so doubled), 3 its tag, 6 the immediate timestamp, 7 the original
    one if it differs."""
    reader = Reader(event.body, "a tagged GTID event")
    _, size, _ = (reader.serialized() for _ in range(3))
    if size != len(event.body):
        raise damaged(
            f"a tagged GTID event says that it has {size} bytes, not {len(event.body)}", event.at
        )
    source, number, immediate, original = "", 0, 0, 0
    while reader.bytes_left and (field := reader.serialized()) <= _LAST_GTID_FIELD:
        match field:
            case 1:
                uuid = bytes(reader.serialized() & 0xFF for _ in range(16))
                source = str(UUID(bytes=uuid))
            case 2:
                number = reader.serialized() >> 1
            case 3:
                tag = reader.take(reader.serialized()).decode("ascii", "replace")
                source = f"{source}:{tag}" if tag else source
            case 6:
                immediate = reader.serialized()
            case 7:
                original = reader.serialized()
            case _:
                reader.serialized()
    try:
        GtidSet.parse(f"{source}:{number}")
    except ValueError as error:
        raise damaged(f"a GTID event holds no GTID: {error}", event.at) from error
    return source, number, immediate, original or immediate


def read_xa_prepare(event: Event) -> tuple[Xid, bool]:
    """Return an XA_PREPARE's XID, and whether it was committed in one phase.

    The body: one phase 1, format id 4, lengths of gtrid and bqual 4 each, gtrid,
    bqual."""
    reader = Reader(event.body, "an XA_PREPARE event")
    one_phase = reader.integer(1) != 0
    return _take_xid(reader, length_bytes=4), one_phase


def _take_xid(reader: Reader, *, length_bytes: int) -> Xid:
    """Read an XID, in which the lengths of gtrid and bqual have `length_bytes` each."""
    format_id = _signed(reader.integer(4))
    gtrid_length, bqual_length = reader.integer(length_bytes), reader.integer(length_bytes)
    return Xid(format_id, reader.take(gtrid_length), reader.take(bqual_length))


_XA: Final = re.compile(
    r"XA\s+\w+\s+X'(?P<gtrid>(?:[0-9a-f]{2})*)'\s*,\s*X'(?P<bqual>(?:[0-9a-f]{2})*)'"
    r"\s*,\s*(?P<format>[0-9]{1,20})\b",
    re.IGNORECASE,
)


def read_xid(statement: str, at: Coordinates) -> Xid:
    """Return the XID of an XA statement at `at`, in the form that servers log: gtrid
    and bqual in hexadecimal, and the format id. Only the low 32 bits of the format id
    are kept, because XA_PREPARE has only these; no server tells two XIDs apart by their
    format ids."""
    match = _XA.match(statement)
    if match is None:
        raise damaged(f"an XA statement names no XID ({statement[:80]!r})", at)
    gtrid, bqual = (bytes.fromhex(match[part]) for part in ("gtrid", "bqual"))
    return Xid(_signed(int(match["format"]) & 0xFFFFFFFF), gtrid, bqual)


_SAVEPOINT: Final = re.compile(
    r"(?:SAVEPOINT|ROLLBACK\s+(?:WORK\s+)?TO(?:\s+SAVEPOINT)?)\s+(?P<name>.+)",
    re.IGNORECASE | re.DOTALL,
)
_SHARP_S: Final = "\N{LATIN SMALL LETTER SHARP S}"
"""The collation takes it for an S, whereas Python's upper case of it is SS."""


def savepoint_name(statement: str) -> str:
    """Return the name in SAVEPOINT `x` or ROLLBACK TO `x`, quotes included, without
    case and accents. The server compares such names by utf8mb3_general_ci, which
    ignores both."""
    match = _SAVEPOINT.match(statement)
    name = unicodedata.normalize("NFD", match["name"].strip() if match else "")
    bare = "".join(letter for letter in name if not unicodedata.combining(letter))
    return bare.replace(_SHARP_S, "S").upper()


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@dataclass(frozen=True, slots=True)
class MariaDbGtid:
    """MariaDB's GTID event. `is_standalone`: a statement that commits by itself
    follows. `xid`: the XID of the XA transaction that this event prepares
    (`is_prepare`) or ends; None for other transactions."""

    domain: int
    number: int
    is_standalone: bool
    is_prepare: bool
    xid: Xid | None


def read_mariadb_gtid(event: Event) -> MariaDbGtid:
    """Read a GTID event: number 8, domain 4, flags 1; with flag 0x02 a commit id of 8
    bytes; with 0x40 (prepared) or 0x80 (completed) an XID: format id 4, two lengths 1
    each, gtrid, bqual. (`Gtid_log_event` in MariaDB's `sql/log_event.h`.)"""
    reader = Reader(event.body, "a GTID event")
    number, domain, flags = reader.integer(8), reader.integer(4), reader.integer(1)
    if number > _MAX_GTID_NUMBER:
        raise damaged(f"a GTID event holds no GTID: its number is {number}", event.at)
    if flags & 0x02:
        reader.take(8)
    xid = _take_xid(reader, length_bytes=1) if flags & 0xC0 else None
    return MariaDbGtid(domain, number, bool(flags & 0x01), bool(flags & 0x40), xid)


_QUOTED_NAME_LENGTH: Final = 80
"""Most characters of an invalid file name that an error quotes."""


def read_rotate(body: bytes, at: Coordinates) -> Coordinates:
    """Return the place where the log continues after a ROTATE at `at`. DamagedEvent if
    that is not in a file of the same log. `body`, without a checksum: offset 8, the
    file's name."""
    offset = int.from_bytes(body[:8], "little")
    name = body[8:].decode("utf-8", "replace")
    if offset > _MAX_OFFSET:
        raise damaged(f"the log continues at offset {offset}, which no file has", at)
    quoted_name = name[:_QUOTED_NAME_LENGTH]
    try:
        file = LogFile.parse(name)
    except ValueError:
        raise damaged(f"the log continues in {quoted_name!r}, which is no log file", at) from None
    if file.base != at.file.base:
        raise damaged(f"the log continues in {quoted_name}, a file of another log", at)
    return Coordinates(file, offset)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as logged, with its default database.

    `text` is decoded as UTF-8 if possible, else as latin1, which is enough to classify
    a statement. To parse it, decode `raw` in its client's character set, which the
    status variables name (`status_variables`, read by `schema.context`). `timestamp`:
    when it began, in seconds since the epoch. `is_thread_specific`: the header's flag
    for statements that use temporary tables. `error_number`: that of a statement that
    failed halfway, else 0. `replaces_rows`: it was logged inside a transaction instead
    of its rows, because its session logs in statement format.
    """

    database: str
    text: str
    status_variables: bytes = b""
    raw: bytes = b""
    timestamp: int = 0
    is_thread_specific: bool = False
    error_number: int = 0
    replaces_rows: bool = False


def read_query(event: Event) -> Query:
    """Read a QUERY: thread id 4, seconds 4, database length 1, error code 2, status
    length 2, status variables, database, NUL, statement. An EXECUTE_LOAD_QUERY has 13
    bytes more before the status variables: file id 4, start 4 and end 4 of the file
    name in the statement, handling of duplicates 1."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(8)
    database_length = reader.integer(1)
    error_number = reader.integer(2)
    status_length = reader.integer(2)
    if event.type is EventType.EXECUTE_LOAD_QUERY:
        reader.take(_LOAD_QUERY_BYTES)
    status = reader.take(status_length)
    database = reader.take(database_length)
    reader.take(1)
    raw = reader.rest()
    return Query(
        database=_decoded(database),
        text=_decoded(raw),
        status_variables=status,
        raw=raw,
        timestamp=event.timestamp,
        is_thread_specific=bool(event.flags & _THREAD_SPECIFIC),
        error_number=error_number,
    )


_GTID_FLAGS, _COLLATIONS = 0x82, 0x83
_START_ALTER, _ROLLBACK_ALTER = 0x02, 0x08
_VALUE_SIZES: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 0x80: 3, 0x81: 8}
"""Status variables of a MariaDB QUERY (`Q_…` in `sql/log_event.h` of its source), by
code: the number of bytes of the value."""
_STRING_COUNTS: Final = {5: 1, 6: 1, 11: 2}
"""Status variables that are strings, by code: how many. A length of one byte comes
before each."""


def is_uncommitted_alter(event: Event) -> bool:
    """Return whether a QUERY begins MariaDB's two-phase ALTER (START ALTER) or undoes
    it (ROLLBACK ALTER). Both have the text of the COMMIT ALTER, but only the COMMIT
    ALTER changes the table."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(11)
    variables = Reader(reader.take(reader.integer(2)), "the status of a QUERY event")
    while variables.bytes_left:
        code = variables.integer(1)
        if code == _GTID_FLAGS:
            return bool(variables.integer(1) & (_START_ALTER | _ROLLBACK_ALTER))
        if not _skip_value(variables, code):
            break
    return False


def _skip_value(variables: Reader, code: int) -> bool:
    """Skip a status variable's value. Return False if its length is unknown, so that
    the variables after it cannot be read."""
    if code in _VALUE_SIZES:
        variables.take(_VALUE_SIZES[code])
    elif code in _STRING_COUNTS:
        for _ in range(_STRING_COUNTS[code]):
            variables.take(variables.integer(1))
    elif code == _COLLATIONS:
        variables.take(4 * variables.integer(1))
    else:
        return False
    return True


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def to_datetime(microseconds: int) -> datetime:
    """Return a time given in microseconds since the epoch; DamagedEvent after the year
    9999."""
    if microseconds > _LAST_MOMENT:
        raise damaged(f"a commit time lies after the year 9999 ({microseconds} µs since 1970)")
    return EPOCH + timedelta(microseconds=microseconds)


@dataclass(frozen=True, slots=True)
class LogWriter:
    """The kind of server that wrote a log file. `version`: 80015 for MySQL 8.0.15,
    101118 for MariaDB 10.11.18; None if the file has a version of another form. The
    defaults are a recent MySQL, for events that come without a format description."""

    flavour: Literal["mysql", "mariadb"] = "mysql"
    version: int | None = 90704

    @property
    def is_mariadb(self) -> bool:
        return self.flavour == "mariadb"

    def is_mysql_between(self, first: int, last: int) -> bool:
        """Return whether a MySQL of a version from `first` to `last`, or of an unknown
        version, wrote the log."""
        return not self.is_mariadb and (self.version is None or first <= self.version <= last)


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """A log file's format description. `server_version`: as the server writes it, such
    as 8.0.15-log. `has_checksums`: its events have a CRC32. `created_at`: when the file
    was created, in seconds since the epoch."""

    server_version: str
    writer: LogWriter
    has_checksums: bool
    created_at: int


_VERSION: Final = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)")
"""MariaDB puts 5.5.5 before its version, for clients that compare numbers."""


def version_number(version: str) -> int | None:
    """Return a server's version as a number (80015 for 8.0.15-log); None if it has no
    such form."""
    match = _VERSION.match(version)
    if match is None:
        return None
    major, minor, patch = map(int, match.groups())
    return major * 10_000 + minor * 100 + patch


_ROW_EVENTS_V1: Final = range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1)
_POST_HEADERS: Final[dict[int, int]] = {
    EventType.QUERY: 13,
    EventType.TABLE_MAP: 8,
    **dict.fromkeys(_ROW_EVENTS_V1, 8),
    EventType.WRITE_ROWS: 10,
    EventType.UPDATE_ROWS: 10,
    EventType.DELETE_ROWS: 10,
}
"""Event type → bytes of the fixed part after its header, for the types that we read. A
log that declares another length has a format that this version does not know; 0 says
that the server does not write the type."""


def read_description(event: Event) -> FormatDescription:
    """Read a format description: format version 2 (always 4), server version 50, time
    4, header length 1 (always 19), one byte per event type, checksum algorithm 1 (1:
    CRC32)."""
    reader = Reader(event.body, "the format description")
    format_version = reader.integer(2)
    version = reader.take(50).rstrip(b"\0").decode("latin-1")
    reader.take(4)
    header_bytes = reader.integer(1)
    lengths = reader.take(max(reader.bytes_left - 1, 0))
    has_checksums = reader.integer(1) == 1
    unexpected = [
        EventType(kind).name
        for kind, length in _POST_HEADERS.items()
        if kind <= len(lengths) and lengths[kind - 1] not in (length, 0)
    ]
    if format_version != 4 or header_bytes != HEADER_BYTES or unexpected:
        difference = f"format {format_version}, headers of {header_bytes} bytes"
        difference += f", another form of {unexpected[0]}" if unexpected else ""
        raise UnsupportedEvent(
            f"the log at {event.at} has a format that this version does not read ({difference})",
            hint="the log was not recorded; MySQL 8.0 to 9, and MariaDB 10.5 to 11, write format 4",
        )
    flavour: Literal["mysql", "mariadb"] = "mariadb" if "mariadb" in version.lower() else "mysql"
    writer = LogWriter(flavour, version_number(version))
    return FormatDescription(version, writer, has_checksums, event.timestamp)


def encode_gtid_set(gtids: GtidSet) -> bytes:
    """Return a GTID set's bytes for COM_BINLOG_DUMP_GTID: number of sources 8; for each
    source its UUID 16, number of intervals 8; for each interval its first number 8, the
    number after its last 8.

    If a source has a tag, the number of sources has 6 bytes, with a byte 1 before and
    after it, and after each UUID come the tag's doubled length 1 and the tag. Servers
    before MySQL 8.3 do not read this form."""
    has_tags = any(":" in source for source in gtids.intervals)
    count = len(gtids.intervals)
    count_bytes = count.to_bytes(6, "little")
    parts = [b"\x01" + count_bytes + b"\x01" if has_tags else struct.pack("<Q", count)]
    for source, spans in gtids.intervals.items():
        uuid, _, tag = source.partition(":")
        parts.append(UUID(uuid).bytes)
        if has_tags:
            parts.append(bytes([2 * len(tag)]) + tag.encode("ascii"))
        parts.append(struct.pack("<Q", len(spans)))
        parts += [struct.pack("<QQ", first, last + 1) for first, last in spans]
    return b"".join(parts)


def decode_gtid_set(data: bytes) -> GtidSet:
    """Read a GTID set in the form that `encode_gtid_set` writes; DamagedEvent if it has
    another."""
    reader = Reader(data, "a PREVIOUS_GTIDS event")
    header = reader.take(8)
    has_tags = header[7] == 1
    count = int.from_bytes(header[1:7] if has_tags else header, "little")
    parts = []
    for _ in range(count):
        source = str(UUID(bytes=reader.take(16)))
        if has_tags:
            tag = reader.take(reader.length_encoded() // 2).decode("ascii", "replace")
            source = f"{source}:{tag}" if tag else source
        for _ in range(reader.integer(8)):
            first, end = reader.integer(8), reader.integer(8)
            parts.append(f"{source}:{first}-{end - 1}")
    try:
        return GtidSet.parse(",".join(parts))
    except ValueError as error:
        raise damaged(f"a PREVIOUS_GTIDS event is not a GTID set: {error}") from error


def read_gtid_list(event: Event) -> GtidSet:
    """Read MariaDB's GTID_LIST, which has the last transaction of each domain and
    server: count 4 (the low 28 bits), then domain 4, server 4, number 8
    (`Gtid_list_log_event` in MariaDB's `sql/log_event.h`)."""
    reader = Reader(event.body, "a GTID_LIST event")
    count = reader.integer(4) & (1 << 28) - 1
    parts = [f"{reader.integer(4)}-{reader.integer(4)}-{reader.integer(8)}" for _ in range(count)]
    try:
        return GtidSet.parse(",".join(parts))
    except ValueError as error:
        raise damaged(f"a GTID_LIST event is not a list of GTIDs: {error}", event.at) from error
