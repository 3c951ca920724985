"""A chosen start is proven to lie between two transactions, or rewound to one."""

from __future__ import annotations

import pytest

from pipeline.binlog.framing import EventType
from pipeline.binlog.scan import find_boundary, read_created, read_witness
from pipeline.errors import NotAnEventBoundary
from pipeline.position import Coordinates, LogFile
from tests.pipeline.made import SERVER, Log, gtid, query

FILE = LogFile("binlog", 1)


def two_transactions() -> tuple[Log, int, int]:
    log = Log()
    first = log.transaction(1)
    second = log.transaction(2)
    return log, first, second


def test_between_transactions_is_a_boundary() -> None:
    """The place stays, with the GTIDs before it and the event before it as witness."""
    log, _, second = two_transactions()
    boundary = find_boundary(log.packets, Coordinates(FILE, second))
    assert (boundary.at.offset, str(boundary.gtid_set), boundary.rewound) == (
        second,
        f"{SERVER}:1",
        False,
    )
    assert boundary.witness is not None
    assert boundary.witness.offset + boundary.witness.length == second


def test_the_end_of_the_log_is_a_boundary() -> None:
    """Where the next event will be written."""
    log, *_ = two_transactions()
    boundary = find_boundary(log.packets, Coordinates(FILE, log.offset))
    assert (boundary.at.offset, str(boundary.gtid_set)) == (log.offset, f"{SERVER}:1-2")


def test_inside_a_transaction_is_rewound() -> None:
    """Every event start inside a transaction leads back to its beginning."""
    log, first, second = two_transactions()
    offset = first
    inside = []
    for packet in log.packets[2:7]:
        inside.append(offset)
        offset += len(packet)
    found = [find_boundary(log.packets, Coordinates(FILE, place)) for place in inside[1:]]
    assert [(b.at.offset, b.rewound, str(b.gtid_set)) for b in found] == [(first, True, "")] * 4
    assert offset == second


@pytest.mark.parametrize("shift", [-1, 1, 5])
def test_between_events_is_nowhere(shift: int) -> None:
    """Bytes inside an event are not a place; the refusal names one that is."""
    log, _, second = two_transactions()
    with pytest.raises(NotAnEventBoundary, match="no event begins"):
        find_boundary(log.packets, Coordinates(FILE, second + shift))


def test_beyond_the_end_is_nowhere() -> None:
    """A file's end is the last place there is."""
    log, *_ = two_transactions()
    with pytest.raises(NotAnEventBoundary):
        find_boundary(log.packets, Coordinates(FILE, log.offset + 100))


def test_the_beginning_of_a_file() -> None:
    """Offset 4 is a boundary whose GTIDs the file's head tells."""
    log, *_ = two_transactions()
    boundary = find_boundary(log.packets, Coordinates(FILE, 4))
    assert (boundary.at.offset, boundary.witness, boundary.rewound) == (4, None, False)


def test_events_of_unknown_types_do_not_stop_a_scan() -> None:
    """Only what is read must be understood; what stands before a start need not be."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(40, b"payload")
    log.add(EventType.GTID, gtid(2))
    log.add(EventType.QUERY, query("XA START X'01'"))
    log.add(38, b"prepare")
    boundary = find_boundary(log.packets, Coordinates(FILE, log.offset))
    assert (str(boundary.gtid_set), boundary.rewound) == (f"{SERVER}:1-2", False)


def test_a_witness_reads_back_as_it_was_found() -> None:
    """What the scan recorded is what a dump from its offset shows."""
    log, _, second = two_transactions()
    witness = find_boundary(log.packets, Coordinates(FILE, second)).witness
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
