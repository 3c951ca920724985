"""Places between two transactions, and the sets of transactions before them.

Values only; which place a run starts at is `pipeline.start`, where it ends is
`pipeline.bounds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import total_ordering
from types import MappingProxyType

_FILE = re.compile(r"(?P<base>.+)\.(?P<number>\d{6,})", re.DOTALL)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A binlog file: its base name and its number. Ordered by number, never by text."""

    base: str
    number: int

    @classmethod
    def parse(cls, text: str) -> LogFile:
        """`binlog.000012` → base and number; ValueError for anything else."""
        match = _FILE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a binlog file name such as binlog.000012")
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
        """`binlog.000012:4567`, as `str` gives it; ValueError for anything else."""
        file, _, offset = text.rpartition(":")
        return cls(LogFile.parse(file), int(offset))

    def __lt__(self, other: Coordinates) -> bool:
        if self.file.base != other.file.base:
            raise ValueError(f"{self} and {other} belong to different logs")
        return (self.file.number, self.offset) < (other.file.number, other.offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True, slots=True)
class GtidSet:
    """A set of MySQL transactions: `uuid[:tag]` → disjoint, ascending [first, last].

    Canonical text as MySQL prints it: UUIDs ascending, the untagged intervals of a
    UUID before its tags (MySQL manual, "GTID Sets"). MariaDB's form is not this one.
    """

    intervals: Mapping[str, tuple[tuple[int, int], ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Text as in `gtid_executed` → a set; ValueError names what was expected."""
        found: dict[str, list[tuple[int, int]]] = {}
        for part in "".join(text.split()).split(","):
            if not part:
                continue
            uuid, *pieces = part.lower().split(":")
            if not _UUID.fullmatch(uuid) or not pieces:
                raise ValueError(f"{part!r} is not a GTID set such as <uuid>:1-5")
            source = uuid
            for piece in pieces:
                interval = _INTERVAL.fullmatch(piece)
                if interval:
                    first = int(interval["first"])
                    last = int(interval["last"] or first)
                    if not 1 <= first <= last:
                        raise ValueError(f"{piece!r} is not an interval such as 1-5")
                    found.setdefault(source, []).append((first, last))
                elif _TAG.fullmatch(piece):
                    source = f"{uuid}:{piece}"
                else:
                    raise ValueError(f"{piece!r} is neither an interval nor a tag")
        return cls._of(found)

    @classmethod
    def _of(cls, found: Mapping[str, Iterable[tuple[int, int]]]) -> GtidSet:
        merged = {source: _joined(spans) for source, spans in sorted(found.items())}
        return cls(MappingProxyType({s: spans for s, spans in merged.items() if spans}))

    def union(self, other: GtidSet) -> GtidSet:
        sources = self.intervals.keys() | other.intervals.keys()
        return self._of(
            {s: (*self.intervals.get(s, ()), *other.intervals.get(s, ())) for s in sources}
        )

    def difference(self, other: GtidSet) -> GtidSet:
        return self._of(
            {s: _without(spans, other.intervals.get(s, ())) for s, spans in self.intervals.items()}
        )

    def contains(self, other: GtidSet) -> bool:
        return not other.difference(self)

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __hash__(self) -> int:
        return hash(tuple(self.intervals.items()))

    def __str__(self) -> str:
        by_uuid: dict[str, list[str]] = {}
        for source, spans in self.intervals.items():
            uuid, _, tag = source.partition(":")
            texts = [f"{a}" if a == b else f"{a}-{b}" for a, b in spans]
            by_uuid.setdefault(uuid, []).extend([tag, *texts] if tag else texts)
        return ",".join(":".join((uuid, *texts)) for uuid, texts in by_uuid.items())


def _joined(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    result: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def _without(
    spans: Iterable[tuple[int, int]], holes: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    left = list(spans)
    for low, high in holes:
        left = [
            part
            for first, last in left
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if part[0] <= part[1]
        ]
    return left


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two transactions of one server's log.

    `gtid_set` holds every GTID executed up to here, empty where the log has none;
    `committed_at` is the commit time (UTC) of the last transaction before it, if known.
    """

    at: Coordinates
    gtid_set: GtidSet
    server_uuid: str
    committed_at: datetime | None = None

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
