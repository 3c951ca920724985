"""Positions in a server's log, and the values by which the log and the server are
recognised.

Not here: GTID sets (`pipeline.values.gtid`), how a person writes a place
(`pipeline.values.places`), where a run starts (`pipeline.start`) and ends
(`pipeline.start.bounds`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import total_ordering
from typing import ClassVar

from lockstep.pipeline.values.gtid import GtidSet

# find_uniq_filename() in sql/binlog.cc of MySQL and MariaDB: %06lu, up to 0x7FFFFFFF.
_FILE = re.compile(r"(?P<base>(?!\s)[^/\\\x00-\x1f\x7f]+)\.(?P<number>[0-9]{6}|[1-9][0-9]{6,9})")
_OFFSET = re.compile(r"[0-9]{1,19}")
_LAST_FILE = (1 << 31) - 1
_LAST_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """A binlog file: its base name and its number, which orders it."""

    base: str
    number: int

    @classmethod
    def parse(cls, text: str) -> LogFile:
        """Parse a name as SHOW BINARY LOGS lists it, such as `binlog.000012`: no
        folder, a number from 1 to 2147483647 with at least six digits. Raise ValueError
        for anything else."""
        match = _FILE.fullmatch(text)
        if match is None or not 1 <= int(match["number"]) <= _LAST_FILE:
            raise ValueError(
                f"{text!r} is not the name of a binlog file as SHOW BINARY LOGS lists it, such as "
                "binlog.000012"
            )
        return cls(match["base"], int(match["number"]))

    def __str__(self) -> str:
        return f"{self.base}.{self.number:06d}"


@total_ordering
@dataclass(frozen=True, slots=True)
class Coordinates:
    """A file and an offset in bytes. Places in files of one base name are ordered as in
    the log."""

    file: LogFile
    offset: int

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """Parse a text such as `binlog.000012:4567`, the inverse of `str`. The offset
        is from 0 to 2^63 - 1. Raise ValueError for anything else."""
        file, colon, offset = text.rpartition(":")
        if not colon:
            raise ValueError(f"{text!r} is not a place in a log such as binlog.000012:4567")
        log_file = LogFile.parse(file)
        if not _OFFSET.fullmatch(offset) or int(offset) > _LAST_OFFSET:
            raise ValueError(
                f"{offset!r} in {text!r} is not an offset: expected bytes from the beginning "
                f"of the file, 0 to {_LAST_OFFSET}, as in binlog.000012:4567"
            )
        return cls(log_file, int(offset))

    def __lt__(self, other: Coordinates) -> bool:
        if self.file.base != other.file.base:
            raise ValueError(f"{self} and {other} belong to different logs")
        return (self.file.number, self.offset) < (other.file.number, other.offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two transactions of one server's log.

    `gtid_set` has every GTID executed up to here, and is empty if the log has none.
    `committed_at` is the newest commit time (UTC) of the transactions that were read
    together just before it, or None if unknown.
    """

    json_keys: ClassVar = ("file", "offset", "gtid_set", "committed_at")

    at: Coordinates
    gtid_set: GtidSet
    server_uuid: str
    committed_at: datetime | None = None

    @property
    def file(self) -> LogFile:
        return self.at.file

    @property
    def offset(self) -> int:
        return self.at.offset

    def __str__(self) -> str:
        return str(self.at)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The event that ends at the position up to which a source was read. A log that has
    a different event there is not the log that was read.

    `offset` and `length` of the event are in bytes. `crc32` is its checksum from the
    log, or is computed if the log has none. `gtid` is the GTID of its transaction.
    `file_created` is the creation time of its file (seconds since the epoch), from the
    format description event. A server that was reset and then reached the same file
    name, offset and GTIDs again has a different anchor.
    """

    offset: int
    length: int
    crc32: int
    gtid: str
    file_created: int


@dataclass(frozen=True, slots=True)
class SetAnchor:
    """The identity of a transaction in any server's log. If a rebuilt server gave the
    same GTID to another transaction, the identities differ. `committed_at`: the time of
    the transaction's commit on its first server (microseconds since the epoch), or 0 if
    the log does not have that time; then `digest` is a hash of its events."""

    gtid: str
    committed_at: int
    digest: str = ""

    @property
    def origin(self) -> str:
        """The GTID without the transaction's number: `uuid`, `uuid:tag`, or
        `domain-server`."""
        return self.gtid.rpartition(":" if ":" in self.gtid else "-")[0]


_START_TOLERANCE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """The start of a server process, computed from its uptime in whole seconds, and the
    number of RESET statements that it carried out. Without a RESET a process has one
    continuous log."""

    started_at: datetime
    resets: int

    def is_same_process(self, earlier: ServerProcess | None) -> bool:
        """Return whether this is the same process, without a RESET since."""
        return (
            earlier is not None
            and self.resets == earlier.resets
            and abs(self.started_at - earlier.started_at) <= _START_TOLERANCE
        )


@dataclass(frozen=True, slots=True)
class ServerPeriod:
    """A period in which a source was read from one server. `since_batch`: id of its
    first batch."""

    server_uuid: str
    since_batch: int

    def __str__(self) -> str:
        return f"{self.server_uuid} since batch {self.since_batch}"
