"""Statements' texts beside their rows: of which transaction, how much of them, and as what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES
from tests.pipeline.buffered import Out, a_buffer, feed
from tests.pipeline.made import (
    Log,
    gtid,
    query,
)


def noted(log: Log, text: bytes) -> None:
    log.add(EventType.ROWS_QUERY, bytes([len(text) & 0xFF]) + text)


def logged(*texts: bytes, log: Log | None = None, number: int = 1, count: int = 1) -> Log:
    """A transaction of so many statements, with so many rows each."""
    log = log or Log()
    log.add(EventType.GTID, gtid(number))
    log.add(EventType.QUERY, query("BEGIN"))
    for text in texts:
        noted(log, text)
        log.write(*range(count))
    log.end()
    return log


def read(log: Log, **options: int) -> list[Out]:
    return list(feed(a_buffer(**options), [log.wire()]))


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([b"x" * (MOST_TEXT_BYTES - 1)], None),
        ([b"x" * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 1]),
        ([b"x" * 60_000, b"y" * 10_000, b"z"], [60_000, MOST_TEXT_BYTES - 60_002]),
        ([b"x" * (MOST_TEXT_BYTES - 2), b"y"], [MOST_TEXT_BYTES - 2]),
        ([b"x" * (MOST_TEXT_BYTES - 1), b""], [MOST_TEXT_BYTES - 1]),
        (["ä".encode() * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 2]),
        (["x€".encode() * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 3]),
        (["\N{GRINNING FACE}".encode() * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 4]),
        ([b"\x80" * 2 * MOST_TEXT_BYTES], [MOST_TEXT_BYTES - 1]),
        ([b""] * (MOST_TEXT_BYTES + 5), [0] * MOST_TEXT_BYTES),
    ],
)
def test_so_much_text_is_kept(texts: list[bytes], kept: list[int] | None) -> None:
    """In whole characters; that something is left out is said, and the next one is whole."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, query("BEGIN"))
    for text in texts:
        noted(log, text)
    log.write(1)
    log.end()
    logged(b"next", log=log, number=2)
    cut, whole = read(log, text_bytes=0)
    expected = texts if kept is None else [t[:n] for t, n in zip(texts, kept, strict=False)]
    shown = tuple(text.decode("utf-8", "backslashreplace") for text in expected)
    assert (cut.texts, cut.cut) == (shown, kept is not None)
    assert (whole.texts, whole.cut) == (("next",), False)


@given(st.lists(st.lists(st.binary(max_size=12), max_size=4), max_size=5))
def test_any_bytes_are_a_text(transactions: list[list[bytes]]) -> None:
    """A client's character set is not logged with them: what is no UTF-8 is shown."""
    log = Log()
    for number, texts in enumerate(transactions, start=1):
        logged(*texts, log=log, number=number)
    expected = [
        tuple(text.decode("utf-8", "backslashreplace") for text in texts) for texts in transactions
    ]
    assert [one.texts for one in read(log)] == expected


@pytest.mark.parametrize("body", [b"", b"\xff", b"\x00insert", b"\xffinsert"])
def test_the_length_before_a_text_says_nothing(body: bytes) -> None:
    """It has one byte, and wraps; the event's end counts, also where it is missing."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, query("BEGIN"))
    log.add(EventType.ROWS_QUERY, body)
    log.end()
    assert [one.texts for one in read(log)] == [(body[1:].decode(),)]
