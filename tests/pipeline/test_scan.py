"""The witness before a cursor, read again."""

from __future__ import annotations

from pipeline.binlog.search.places import find_boundary, read_witness
from pipeline.position import Coordinates, LogFile
from tests.pipeline.logs_made import MadeServer
from tests.pipeline.made import Log

FILE = LogFile("binlog", 1)


def test_a_witness_reads_back_as_it_was_found() -> None:
    """What the scan recorded is what a dump from its offset shows."""
    log = Log()
    log.transaction(1)
    second = log.transaction(2)
    server = MadeServer([log])
    witness = find_boundary(server, Coordinates(FILE, second)).witness
    assert witness is not None
    again = read_witness(server, Coordinates(FILE, witness.offset))
    assert again is not None
    assert (again.length, again.crc32, again.file_created) == (
        witness.length,
        witness.crc32,
        witness.file_created,
    )
