"""The bodies of control events: GTIDs, QUERY, XA_PREPARE, ROTATE.

Formats: `libs/mysql/binlog/event/control_events.h` and `statement_events.h` of MySQL's
source. `rows` reads table maps and row events.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from lockstep.pipeline.binlog.stream.event_reader import Reader
from lockstep.pipeline.binlog.stream.framing import Event, EventType
from lockstep.pipeline.binlog.stream.outcomes import damaged
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_THREAD_SPECIFIC = 0x4
_LOAD_QUERY_BYTES = 13
_MAX_NUMBER = (1 << 63) - 1
_LAST_MOMENT = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def read_tagged_gtid(event: Event) -> tuple[str, int, int, int]:
    """Return a GTID_TAGGED event's source with its tag, its number, and its immediate and original
    commit timestamps, 0 if it has none.

    The event (MySQL 8.3+) has numbered fields, encoded by `mysql::serialization`
    (`libs/mysql/serialization/readme.md`): a version, a size and the last field that must not be
    ignored, then each field's number and value, in ascending order."""
    reader = Reader(event.body, "a tagged GTID event")
    _, size, _ = (reader.serialized() for _ in range(3))
    if size != len(event.body):
        raise damaged(
            f"a tagged GTID event says that it has {size} bytes, not {len(event.body)}", event.at
        )
    source, number, immediate, original = "", 0, 0, 0
    while reader.left:
        match reader.serialized():
            case 0 | 4 | 5 | 8 | 9 | 10 | 11:
                reader.serialized()
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
                break
    try:
        GtidSet.parse(f"{source}:{number}")
    except ValueError as error:
        raise damaged(f"a GTID event holds no GTID: {error}", event.at) from error
    return source, number, immediate, original or immediate


def read_xa_prepare(event: Event) -> tuple[Xid, bool]:
    """Return an XA_PREPARE's XID, and whether it was committed in one phase.

    The body: one phase 1, format id 4, lengths of gtrid and bqual 4 each, gtrid, bqual."""
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
    """Return the XID of an XA statement at `at`, in the form that servers log: gtrid and bqual in
    hexadecimal, and the format id. Only the format id's low 32 bits count, since XA_PREPARE has no
    more; no server tells two XIDs apart by their format ids."""
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


def savepoint_name(statement: str) -> str:
    """Return the name in SAVEPOINT `x` or ROLLBACK TO `x`, quotes included, in a form that is the
    same for all names that the server takes to be equal (by utf8mb3_general_ci)."""
    match = _SAVEPOINT.match(statement)
    name = unicodedata.normalize("NFD", match["name"].strip() if match else "")
    bare = "".join(letter for letter in name if not unicodedata.combining(letter))
    return bare.replace(_SHARP_S, "S").upper()


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@dataclass(frozen=True, slots=True)
class MariaDbGtid:
    """MariaDB's GTID event: domain, number, whether it belongs to a single statement that
    commits by itself (`standalone`), and the XID of an XA transaction, which is prepared
    (`prepares`) or ended."""

    domain: int
    number: int
    standalone: bool
    prepares: bool
    xid: Xid | None


def read_mariadb_gtid(event: Event) -> MariaDbGtid:
    """Read a GTID event: number 8, domain 4, flags 1; with flag 0x02 a commit id of 8 bytes; with
    0x40 (prepared) or 0x80 (completed) an XID: format id 4, two lengths 1 each, gtrid, bqual.
    (`Gtid_log_event` in MariaDB's `sql/log_event.h`.)"""
    reader = Reader(event.body, "a GTID event")
    number, domain, flags = reader.integer(8), reader.integer(4), reader.integer(1)
    if number > _MAX_NUMBER:
        raise damaged(f"a GTID event holds no GTID: its number is {number}", event.at)
    if flags & 0x02:
        reader.take(8)
    xid = None
    if flags & 0xC0:
        format_id = _signed(reader.integer(4))
        lengths = reader.integer(1), reader.integer(1)
        xid = Xid(format_id, reader.take(lengths[0]), reader.take(lengths[1]))
    return MariaDbGtid(domain, number, bool(flags & 0x01), bool(flags & 0x40), xid)


_NAME_SHOWN: Final = 80
"""Most characters of an invalid file name that an error quotes."""


def read_rotate(body: bytes, at: Coordinates) -> Coordinates:
    """Return where the log continues after a ROTATE at `at`: offset 8, name of the file.
    DamagedEvent if the file is not one of the same log."""
    offset = int.from_bytes(body[:8], "little")
    name = body[8:].decode("utf-8", "replace")
    if offset >> 62:
        raise damaged(f"the log continues at offset {offset}, which no file has", at)
    shown = name[:_NAME_SHOWN]
    try:
        file = LogFile.parse(name)
    except ValueError:
        raise damaged(f"the log continues in {shown!r}, which is no log file", at) from None
    if file.base != at.file.base:
        raise damaged(f"the log continues in {shown}, a file of another log", at)
    return Coordinates(file, offset)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as logged: its default database and its bytes as text.

    `text` is decoded as UTF-8 if possible, else as latin1, which keeps every byte: enough to
    classify a statement. To parse it, decode `raw` in its client's character set, which is one of
    the status variables (`status`; `schema.context`). `second`: when it began, in seconds since
    the epoch. `thread_specific`: the header flag that is set if the statement uses temporary
    tables. `error`: the error number of a statement that failed halfway, else 0. `for_rows`: it was
    logged inside a transaction in place of rows, because its session logs in statement format.
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
    """Read a QUERY: thread id 4, seconds 4, database length 1, error code 2, status length 2,
    status variables, database, NUL, statement. An EXECUTE_LOAD_QUERY has before the status
    variables: file id 4, start 4 and end 4 of the file name in the statement, handling of
    duplicates 1."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(8)
    database_length = reader.integer(1)
    error = reader.integer(2)
    status_length = reader.integer(2)
    if event.type is EventType.EXECUTE_LOAD_QUERY:
        reader.take(_LOAD_QUERY_BYTES)
    status = reader.take(status_length)
    database = reader.take(database_length)
    reader.take(1)
    raw = reader.rest()
    thread_specific = bool(event.flags & _THREAD_SPECIFIC)
    texts = _text(database), _text(raw)
    return Query(*texts, status, raw, event.timestamp, thread_specific, error)


_GTID_FLAGS, _COLLATIONS = 0x82, 0x83
_START_ALTER, _ROLLBACK_ALTER = 0x02, 0x08
_SIZES: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 0x80: 3, 0x81: 8}
_STRINGS: Final = {5: 1, 6: 1, 11: 2}
"""Status variables of a QUERY on MariaDB (`Q_…` in `sql/log_event.h` of its source): the number of
bytes of a variable, or its number of strings, each with a length of one byte before it."""


def is_uncommitted_alter(event: Event) -> bool:
    """Return whether a QUERY is the first phase of MariaDB's two-phase ALTER (START ALTER) or its
    failure (ROLLBACK ALTER). Their text is that of COMMIT ALTER, which alone changes the table."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(11)
    variables = Reader(reader.take(reader.integer(2)), "the status of a QUERY event")
    while variables.left and (code := variables.integer(1)) != _GTID_FLAGS:
        if not _skip(variables, code):
            return False
    return bool(variables.left and variables.integer(1) & (_START_ALTER | _ROLLBACK_ALTER))


def _skip(variables: Reader, code: int) -> bool:
    """Skip a status variable's value; return False for a variable of unknown length, after which
    the rest cannot be read."""
    if code in _SIZES:
        variables.take(_SIZES[code])
    elif code in _STRINGS:
        for _ in range(_STRINGS[code]):
            variables.take(variables.integer(1))
    elif code == _COLLATIONS:
        variables.take(4 * variables.integer(1))
    else:
        return False
    return True


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def to_datetime(microseconds: int) -> datetime:
    """Return a time given in microseconds since the epoch; DamagedEvent after the year 9999."""
    if microseconds > _LAST_MOMENT:
        raise damaged(f"a commit time is {microseconds} microseconds after the epoch, too late")
    return EPOCH + timedelta(microseconds=microseconds)
