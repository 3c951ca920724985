"""Several made log files, dumped as a server does it, every byte counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from lockstep.pipeline.binlog.stream.control import encode_gtid_set
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.ports.source import BinlogSize, Received
from lockstep.pipeline.values.errors import PositionPurged
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.pipeline.made import Log, format_description, gtid, query, received, rotate, wire
from tests.pipeline.made import packet as made_packet

ARTIFICIAL = 0x20


def clock(microseconds: int, original: int | None = None) -> bytes:
    """What follows the number in a GTID event since 8.0: logical clock, commit times."""
    head = b"\x02" + struct.pack("<QQ", 0, 1)
    if original is None:
        return head + microseconds.to_bytes(7, "little")
    both = microseconds | 1 << 55
    return head + both.to_bytes(7, "little") + original.to_bytes(7, "little")


def file_of(created: int, before: str = "") -> Log:
    """A log file made at that second, after those GTIDs."""
    log = Log()
    log.offset, log.packets = 4, []
    log.add(EventType.FORMAT_DESCRIPTION, format_description(), timestamp=created)
    log.add(EventType.PREVIOUS_GTIDS, encode_gtid_set(GtidSet.parse(before)), timestamp=created)
    return log


def commit(log: Log, number: int, microseconds: int, *, header: int = 0) -> int:
    """A transaction committed at that moment; where it begins. `header`: the seconds that
    its events' headers have."""
    begin = log.add(EventType.GTID, gtid(number) + clock(microseconds), timestamp=header)
    log.add(EventType.QUERY, query("BEGIN"), timestamp=header)
    log.add(EventType.XID, struct.pack("<Q", number), timestamp=header)
    return begin


@dataclass(slots=True)
class MadeDump:
    """One dump of made files; `read` bytes were taken out of it."""

    begins: Coordinates
    data: bytes
    piece: int
    read: int = 0
    closed: bool = False

    def __iter__(self) -> Iterator[Received]:
        for at in range(0, len(self.data), self.piece):
            part = self.data[at : at + self.piece]
            self.read += len(part)
            yield received(part)

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


@dataclass(slots=True)
class MadeServer:
    """Files binlog.000001 and on. Each but the last ends with a ROTATE unless it is `cut`.
    `from_beginning`: every dump begins with its file, wherever it was to begin."""

    logs: list[Log]
    piece: int = 512
    cut: bool = False
    from_beginning: bool = False
    dumps: list[MadeDump] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, log in enumerate(self.logs[:-1], start=2):
            if not self.cut:
                log.add(EventType.ROTATE, rotate(str(LogFile("binlog", number))))

    @property
    def binlogs(self) -> tuple[BinlogSize, ...]:
        return tuple(
            BinlogSize(LogFile("binlog", number), log.offset)
            for number, log in enumerate(self.logs, start=1)
        )

    @property
    def head(self) -> Coordinates:
        last = self.binlogs[-1]
        return Coordinates(last.file, last.size)

    @property
    def read(self) -> int:
        """Bytes taken out of all dumps; each must be closed."""
        assert all(dump.closed for dump in self.dumps)
        return sum(dump.read for dump in self.dumps)

    def dump(self, start: Coordinates) -> MadeDump:
        if not 1 <= start.file.number <= len(self.logs):
            raise PositionPurged("Could not find first log file", hint="choose another")
        if self.from_beginning:
            start = Coordinates(start.file, 4)
        packets: list[bytes] = []
        for number in range(start.file.number, len(self.logs) + 1):
            first = start if number == start.file.number else Coordinates(_file(number), 4)
            packets += self._of_file(self.logs[number - 1], first)
        made = MadeDump(start, wire(packets), self.piece)
        self.dumps.append(made)
        return made

    def _of_file(self, log: Log, start: Coordinates) -> list[bytes]:
        name = rotate(str(start.file), start.offset)
        sent = [made_packet(EventType.ROTATE, name, 0, flags=ARTIFICIAL, end=0)]
        offset = 4
        for packet in log.packets:
            if offset == 4 and start.offset > 4:
                body = packet[19:-4]
                sent.append(made_packet(EventType.FORMAT_DESCRIPTION, body, 0, end=0))
            elif offset >= start.offset:
                sent.append(packet)
            offset += len(packet)
        return sent


def _file(number: int) -> LogFile:
    return LogFile("binlog", number)
