"""What a transaction in a file, or beside the ring's last gap, does to those around it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.binlog.stream.framing import EventType
from pipeline.binlog.transactions.limits import Limits
from pipeline.position import Coordinates
from tests.pipeline.buffered import START, a_buffer, feed
from tests.pipeline.made import Log, gtid, query, xa, xa_prepare
from tests.twins.spool import MemorySpool

SIZES = st.lists(st.integers(1, 700), max_size=6)
"""Rows per event; the ring has room for 800 of them."""


@given(SIZES, SIZES)
def test_a_large_transaction_of_one_phase_comes_out_alone(
    large: list[int], after: list[int]
) -> None:
    """XA COMMIT … ONE PHASE ends a transaction in a file; its neighbours keep their rows."""
    log = Log()
    log.transaction(1)
    log.add(EventType.GTID, gtid(2))
    log.add(EventType.QUERY, xa("START", b"a"))
    expected = list(_written(log, large))
    log.add(EventType.QUERY, xa("END", b"a"))
    log.add(EventType.XA_PREPARE, xa_prepare(b"a", one_phase=True))
    for number, size in enumerate(after):
        _open(log, number)
        log.write(*[number] * size)
        log.end()
    spool = MemorySpool()
    out = [one.values for one in feed(a_buffer(spool=spool), [log.wire()])]
    assert out == [[1], expected, *([number] * size for number, size in enumerate(after))]
    assert all(file.closed for file in spool.made)


@given(SIZES, SIZES, SIZES)
def test_a_rollback_to_nothing_leaves_the_ring_whole(
    before: list[int], undone: list[int], kept: list[int]
) -> None:
    """A savepoint before the first row, wherever in the ring that is."""
    log = Log()
    for number, size in enumerate(before):
        _open(log, number)
        log.write(*[number] * size)
        log.end()
    _open(log, 100)
    log.add(EventType.QUERY, query("SAVEPOINT `s`"))
    list(_written(log, undone))
    log.add(EventType.QUERY, query("ROLLBACK TO `s`"))
    expected = list(_written(log, kept))
    log.end()
    log.transaction(101)
    out = [one.values for one in feed(a_buffer(), [log.wire()])]
    assert out == [*([n] * size for n, size in enumerate(before)), expected, [101]]


@pytest.mark.parametrize("what", ["end", "transactions", "log_bytes"])
def test_a_limit_holds_behind_a_file_too(what: str) -> None:
    """A transaction larger than the ring is the last one, if it reaches a limit."""
    log = Log()
    _open(log, 1)
    list(_written(log, [700, 700]))
    log.end()
    end = Coordinates(START.file, log.offset)
    log.transaction(2)
    limits = {"end": Limits(end=end), "transactions": Limits(transactions=1)}
    buffer = a_buffer(limits=limits.get(what, Limits(log_bytes=1)))
    assert [len(one.values) for one in feed(buffer, [log.wire()])] == [1400]
    assert (buffer.stopped, buffer.at) == (True, end)


def test_what_is_left_out_may_end_in_a_file() -> None:
    """A dump that begins before the start, and a transaction larger than the ring between."""
    log = Log()
    _open(log, 1)
    list(_written(log, [700, 700]))
    log.end()
    start = Coordinates(START.file, log.offset)
    log.transaction(2)
    buffer = a_buffer(start=start, begins=START)
    assert [one.values for one in feed(buffer, [log.wire()])] == [[2]]


def _open(log: Log, number: int) -> None:
    log.add(EventType.GTID, gtid(number))
    log.add(EventType.QUERY, query("BEGIN"))


def _written(log: Log, sizes: list[int]) -> Iterator[int]:
    """An event of so many rows each; their values."""
    for number, size in enumerate(sizes):
        log.write(*[1000 + number] * size)
        yield from [1000 + number] * size
