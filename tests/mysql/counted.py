"""Dumps of a server whose bytes are counted, and what a server itself lists of its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lockstep.pipeline.ports.source import BinlogDump, Received
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand


@dataclass(slots=True)
class CountedDump:
    """A dump that counts what is taken out of it."""

    dump: BinlogDump
    read: int = 0
    closed: bool = False

    @property
    def begins(self) -> Coordinates | None:
        return self.dump.begins

    def __iter__(self) -> Iterator[Received]:
        for received in self.dump:
            self.read += received.end - received.begin
            yield received

    def close(self) -> None:
        self.closed = True
        self.dump.close()


@dataclass(slots=True)
class CountedDumps:
    """`looking.Dumps` of a server."""

    server: MySqlServer
    dumps: list[CountedDump] = field(default_factory=list)

    def dump(self, start: Coordinates) -> CountedDump:
        self.dumps.append(CountedDump(self.server.dump(start)))
        return self.dumps[-1]

    @property
    def read(self) -> int:
        """Bytes taken out of all dumps; each must be closed."""
        assert all(dump.closed for dump in self.dumps)
        return sum(dump.read for dump in self.dumps)


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of SHOW BINLOG EVENTS."""

    begin: int
    kind: str
    end: int
    info: str


def listed(stand: MySqlStand, file: LogFile) -> list[Listed]:
    """The file's events, as the server lists them, those inside a payload left out."""
    rows = stand.rows(f"show binlog events in '{file}'")
    found = [Listed(int(row[1]), row[2], int(row[4]), row[5]) for row in rows]
    # MariaDB 11 may say 0 for an end; what a payload holds begins and ends at its end.
    return [event for event in found if event.begin != event.end]
