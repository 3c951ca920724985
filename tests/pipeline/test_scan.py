"""The anchor before a cursor, read again."""

from __future__ import annotations

from lockstep.pipeline.binlog.search.places import find_boundary, read_anchor
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.pipeline.logs_made import MadeServer
from tests.pipeline.made import Log

FILE = LogFile("binlog", 1)


def test_a_anchor_reads_back_as_it_was_found() -> None:
    """What the scan recorded is what a dump from its offset shows."""
    log = Log()
    log.transaction(1)
    second = log.transaction(2)
    server = MadeServer([log])
    anchor = find_boundary(server, Coordinates(FILE, second)).anchor
    assert anchor is not None
    again = read_anchor(server, Coordinates(FILE, anchor.offset))
    assert again is not None
    assert (again.length, again.crc32, again.file_created) == (
        anchor.length,
        anchor.crc32,
        anchor.file_created,
    )
