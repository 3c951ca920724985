"""The format description at the beginning of each log file.

Format: MySQL manual, `FORMAT_DESCRIPTION_EVENT`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from lockstep.pipeline.binlog.stream.event_reader import Reader
from lockstep.pipeline.binlog.stream.framing import HEADER, Event, EventType
from lockstep.pipeline.values.errors import UnsupportedEvent


@dataclass(frozen=True, slots=True)
class LogWriter:
    """The server that wrote a log file. `version` is a number such as 80015 or 101118; None if
    the file names a version in another form."""

    flavour: Literal["mysql", "mariadb"] = "mysql"
    version: int | None = 90704

    @property
    def mariadb(self) -> bool:
        return self.flavour == "mariadb"

    def between(self, first: int, last: int) -> bool:
        """Return whether a MySQL of a version from `first` to `last` may have written the log."""
        return not self.mariadb and (self.version is None or first <= self.version <= last)


@dataclass(frozen=True, slots=True)
class Description:
    """A log file's format description: the server's version and flavour, whether its events
    have a CRC32, and when the file was created (seconds since the epoch)."""

    version: str
    writer: LogWriter
    checksum: bool
    created: int

    @property
    def flavour(self) -> str:
        return self.writer.flavour


_VERSION: Final = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)")
"""MariaDB puts 5.5.5 before its version, for clients that compare numbers."""


def version_number(version: str) -> int | None:
    """Return a server's version as a number: 80015 for 8.0.15-log; None for another form."""
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
"""Lengths of the fixed parts of the events whose fixed parts we read. A log that declares another
length is in a format that this version does not know."""


def read_description(event: Event) -> Description:
    """Read a format description: format version 2 (always 4), server version 50, time 4,
    header length 1 (always 19), one byte per event type, then the checksum algorithm."""
    reader = Reader(event.raw[HEADER.size :], "the format description")
    format_version = reader.integer(2)
    version = reader.take(50).rstrip(b"\0").decode("latin-1")
    reader.take(4)
    header = reader.integer(1)
    lengths = reader.rest()[:-1]
    unexpected = [
        EventType(kind).name
        for kind, length in _POST_HEADERS.items()
        if kind <= len(lengths) and lengths[kind - 1] not in (length, 0)
    ]
    if format_version != 4 or header != HEADER.size or unexpected:
        what = f"format {format_version}, headers of {header} bytes"
        what += f", another form of {unexpected[0]}" if unexpected else ""
        raise UnsupportedEvent(
            f"the log at {event.at} has a format that this version does not read ({what})",
            hint="it was not recorded; MySQL 8.0 to 9, and MariaDB 10.5 to 11, write format 4",
        )
    flavour: Literal["mysql", "mariadb"] = "mariadb" if "mariadb" in version.lower() else "mysql"
    writer = LogWriter(flavour, version_number(version))
    return Description(version, writer, event.raw[-1] == 1, event.timestamp)
