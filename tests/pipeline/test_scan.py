"""The witness before a cursor, read again."""

from __future__ import annotations

from pipeline.binlog.search.places import find_boundary
from pipeline.binlog.search.single_events import read_created, read_witness
from pipeline.binlog.stream.framing import EventType
from pipeline.position import Coordinates, LogFile
from tests.pipeline.logs_made import MadeServer
from tests.pipeline.made import Log

FILE = LogFile("binlog", 1)


def test_a_witness_reads_back_as_it_was_found() -> None:
    """What the scan recorded is what a dump from its offset shows."""
    log = Log()
    log.transaction(1)
    second = log.transaction(2)
    witness = find_boundary(MadeServer([log]), Coordinates(FILE, second)).witness
    assert witness is not None
    xid = next(p for p in log.packets if p[4] == EventType.XID)
    again = read_witness(
        [log.packets[0][:13] + bytes(4) + log.packets[0][17:], xid],
        witness.offset,
        read_created(log.packets),
    )
    assert again is not None
    assert (again.length, again.crc32, again.file_created) == (
        witness.length,
        witness.crc32,
        witness.file_created,
    )
