"""Places between two transactions, and whose log they are places of.

Values only; sets of transactions are `pipeline.gtid`, what a person may write for a
place is `pipeline.places`, which place a run starts at is `pipeline.start`, where it
ends is `pipeline.bounds`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import total_ordering
from typing import ClassVar

from pipeline.gtid import GtidSet

# find_uniq_filename() in sql/binlog.cc of MySQL and MariaDB: %06lu, up to 0x7FFFFFFF.
_FILE = re.compile(r"(?P<base>(?!\s)[^/\\\x00-\x1f\x7f]+)\.(?P<number>[0-9]{6}|[1-9][0-9]{6,9})")
_OFFSET = re.compile(r"[0-9]{1,19}")
_LAST_FILE = (1 << 31) - 1
_LAST_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """A binlog file: its base name and its number. Ordered by number, never by text."""

    base: str
    number: int

    @classmethod
    def parse(cls, text: str) -> LogFile:
        """`binlog.000012` → base and number; ValueError for anything else.

        The name is the one that SHOW BINARY LOGS lists: without a folder, its number from
        1 to 2147483647, in six digits or, beyond 999999, as many as it has.
        """
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
    """A file and an offset in bytes; the order of the log under one base name."""

    file: LogFile
    offset: int

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """`binlog.000012:4567`, as `str` gives it; ValueError for anything else.

        The offset has 64 bits in the log's own terms: from 0 to 2^63 - 1.
        """
        file, colon, offset = text.rpartition(":")
        if not colon:
            raise ValueError(f"{text!r} is not a place in a log such as binlog.000012:4567")
        at = LogFile.parse(file)
        if not _OFFSET.fullmatch(offset) or int(offset) > _LAST_OFFSET:
            raise ValueError(
                f"{offset!r} in {text!r} is not an offset: expected bytes from the beginning "
                f"of the file, 0 to {_LAST_OFFSET}, as in binlog.000012:4567"
            )
        return cls(at, int(offset))

    def __lt__(self, other: Coordinates) -> bool:
        if self.file.base != other.file.base:
            raise ValueError(f"{self} and {other} belong to different logs")
        return (self.file.number, self.offset) < (other.file.number, other.offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two transactions of one server's log.

    `gtid_set` holds every GTID executed up to here, empty where the log has none;
    `committed_at` is the commit time (UTC) of the transactions just before it, if known: the newest
    of those that were read together.
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
class Witness:
    """What the log must show just before a cursor, or it is another log.

    The event that ends at the cursor: its offset, its length in bytes and its CRC32
    (the event's own, or computed by us where the log has none), its transaction's
    GTID, and the moment its file was created (seconds, from the format description).
    A server that was reset and grew again to the same file name, offset and GTIDs
    cannot show the same witness.
    """

    offset: int
    length: int
    crc32: int
    gtid: str
    file_created: int


@dataclass(frozen=True, slots=True)
class SetWitness:
    """What every log that has a transaction must show of it, or it is another one under the
    same GTID: when it was committed first, on whichever server (microseconds since the
    epoch), or, where the log has no such time (0), a digest of what it says."""

    gtid: str
    committed_at: int
    digest: str = ""

    @property
    def origin(self) -> str:
        """What the transaction's number counts in: `uuid`, `uuid:tag`, or `domain-server`."""
        return self.gtid.rpartition(":" if ":" in self.gtid else "-")[0]


_APART = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class ServerLife:
    """Since when a server process runs, told in whole seconds of its uptime, and how many
    RESET statements it carried out. Within one life of a server without a RESET its
    history is one."""

    started_at: datetime
    resets: int

    def goes_on(self, earlier: ServerLife | None) -> bool:
        """Whether it is the same life, and nothing was reset since."""
        return (
            earlier is not None
            and self.resets == earlier.resets
            and abs(self.started_at - earlier.started_at) <= _APART
        )


@dataclass(frozen=True, slots=True)
class Reign:
    """The time a source was read from one server; `since_batch` is its first batch's id."""

    server_uuid: str
    since_batch: int

    def __str__(self) -> str:
        return f"{self.server_uuid} since batch {self.since_batch}"
