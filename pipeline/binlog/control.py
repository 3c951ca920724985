"""The bodies of control events: GTID, QUERY, PREVIOUS_GTIDS, FORMAT_DESCRIPTION.

Formats: `libs/mysql/binlog/event/control_events.h` and `statement_events.h` of MySQL's
source. Table maps are `table_map`, row events the decoder's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from pipeline.binlog.framing import Event
from pipeline.binlog.reading import Reader
from pipeline.errors import DamagedEvent
from pipeline.position import GtidSet

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GTID_LENGTH = 25  # flags, UUID, number
_LOGICAL_CLOCK = 2
_55_BITS = (1 << 55) - 1


@dataclass(frozen=True, slots=True)
class Gtid:
    """A transaction's identity. `text` is "" for an anonymous one; `committed_at` is the
    original commit time in microseconds since the epoch, None where the log has none."""

    text: str
    committed_at: int | None

    def as_set(self) -> GtidSet:
        return GtidSet.parse(self.text)


def read_gtid(event: Event, *, anonymous: bool) -> Gtid:
    """GTID and ANONYMOUS_GTID share one body: flags 1, UUID 16, number 8, then since
    5.7 a logical clock (1 + 16), since 8.0 commit timestamps of 7 bytes each."""
    reader = Reader(event.body, "a GTID event")
    reader.take(1)
    uuid = UUID(bytes=reader.take(16))
    number = reader.integer(8)
    committed_at = None
    if reader.left >= 24 and reader.integer(1) == _LOGICAL_CLOCK:
        reader.take(16)
        immediate = reader.integer(7)
        committed_at = immediate & _55_BITS
        if immediate >> 55:
            committed_at = reader.integer(7)
    return Gtid("" if anonymous else f"{uuid}:{number}", committed_at or None)


def read_previous_gtids(event: Event) -> GtidSet:
    """The set executed before this file: count, then per UUID its half-open intervals.

    The tagged form (first byte 1, eighth byte 1: MySQL 8.3+, only when tags are there)
    carries twice the tag's length and the tag behind each UUID.
    """
    reader = Reader(event.body, "a PREVIOUS_GTIDS event")
    head = reader.take(8)
    tagged = head[7] == 1
    count = int.from_bytes(head[1:7] if tagged else head, "little")
    parts = []
    for _ in range(count):
        source = str(UUID(bytes=reader.take(16)))
        if tagged:
            tag = reader.take(reader.packed() // 2).decode("ascii", "replace")
            source = f"{source}:{tag}" if tag else source
        for _ in range(reader.integer(8)):
            first, end = reader.integer(8), reader.integer(8)
            parts.append(f"{source}:{first}-{end - 1}")
    try:
        return GtidSet.parse(",".join(parts))
    except ValueError as error:
        raise DamagedEvent(
            f"a PREVIOUS_GTIDS event is not a GTID set: {error}",
            hint="nothing was recorded; look at the file with mysqlbinlog",
        ) from error


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as logged: its default database and its bytes as text.

    `text` is decoded as UTF-8 where it can be, else as latin1, which keeps every byte;
    names that a pattern could match are compared only after `schema.ddl` read them.
    """

    database: str
    text: str


def read_query(event: Event) -> Query:
    """thread id 4, seconds 4, database length 1, error code 2, status length 2, status
    variables, database, NUL, statement."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(8)
    database_length = reader.integer(1)
    reader.take(2)
    reader.take(reader.integer(2))
    database = reader.take(database_length)
    reader.take(1)
    return Query(_text(database), _text(reader.rest()))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def moment(microseconds: int) -> datetime:
    """Microseconds since the epoch → UTC."""
    return EPOCH + timedelta(microseconds=microseconds)
