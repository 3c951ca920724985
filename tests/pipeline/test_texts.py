"""Statements' texts beside their rows: of which transaction, how much of them, and as what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.binlog.stream.framing import EventType
from pipeline.binlog.stream.texts import MOST_BYTES
from pipeline.gtid import GtidSet
from tests.pipeline.buffered import Out, a_buffer, feed
from tests.pipeline.made import (
    SERVER,
    Log,
    gtid,
    mariadb_gtid,
    nested,
    payload,
    query,
    rows,
    table_map,
    xa,
    xa_prepare,
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


def test_texts_come_with_their_transaction() -> None:
    """In the order of the log, and not with the next one, which has none."""
    log = logged(b"insert", b"update", number=1)
    log.transaction(2)
    logged(b"delete", log=log, number=3)
    assert [one.texts for one in read(log)] == [("insert", "update"), (), ("delete",)]


def test_mariadb_logs_the_text_alone() -> None:
    """Without a length before it."""
    log = Log()
    log.add(EventType.MARIADB_GTID, mariadb_gtid(1))
    log.add(EventType.MARIADB_ANNOTATE_ROWS, b"insert into t values (1)")
    log.write(1)
    log.end()
    assert [one.texts for one in read(log)] == [("insert into t values (1)",)]


def test_a_transaction_in_a_file_keeps_them() -> None:
    """Though its rows left the ring."""
    log = logged(b"a", b"b", b"c", count=500)
    logged(b"d", log=log, number=2)
    found = read(log, ring_bytes=1 << 12)
    assert [(one.texts, len(one.values)) for one in found] == [(("a", "b", "c"), 1500), (("d",), 1)]


@pytest.mark.parametrize("compressed", [True, False])
def test_a_payload_has_them_inside(compressed: bool) -> None:
    """As it has the rows."""
    inside = b"".join(
        [
            nested(EventType.QUERY, query("BEGIN")),
            nested(EventType.ROWS_QUERY, b"\x06insert"),
            nested(EventType.TABLE_MAP, table_map()),
            nested(EventType.WRITE_ROWS, rows(1)),
            nested(EventType.XID, bytes(8)),
        ]
    )
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.TRANSACTION_PAYLOAD, payload(inside, compressed=compressed))
    assert [(one.texts, one.values) for one in read(log)] == [(("insert",), [1])]


def test_what_the_log_takes_back_it_takes_with_its_texts() -> None:
    """Behind a savepoint, or all of it."""
    log = Log()
    for number, end in ((1, "xid"), (2, "ROLLBACK")):
        log.add(EventType.GTID, gtid(number))
        log.add(EventType.QUERY, query("BEGIN"))
        noted(log, b"kept")
        log.write(1)
        log.add(EventType.QUERY, query("SAVEPOINT `a`"))
        noted(log, b"taken back")
        log.write(2)
        log.add(EventType.QUERY, query("ROLLBACK TO `a`"))
        noted(log, b"after")
        log.write(3)
        log.end(end)
    assert [(one.texts, one.values) for one in read(log)] == [(("kept", "after"), [1, 3]), ((), [])]


def test_a_prepared_transaction_has_them_where_it_was_prepared() -> None:
    """Its rows come out with its commit, perhaps runs later; the texts are its prepare's."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, xa("START", b"x"))
    noted(log, b"insert")
    log.write(1)
    log.add(EventType.QUERY, xa("END", b"x"))
    log.add(EventType.XA_PREPARE, xa_prepare(b"x"))
    log.add(EventType.GTID, gtid(2))
    log.add(EventType.QUERY, xa("COMMIT", b"x"))
    assert [(one.texts, one.values) for one in read(log)] == [(("insert",), []), ((), [1])]


def test_those_of_transactions_left_out_are_left_out() -> None:
    """The others keep theirs."""
    log = Log()
    for number in range(1, 6):
        logged(b"number %d" % number, log=log, number=number)
    buffer = a_buffer(leave_out=GtidSet.parse(f"{SERVER}:2-3:5"), group_bytes=1 << 20)
    assert [one.texts for one in feed(buffer, [log.wire()])] == [("number 1",), ("number 4",)]


def test_many_texts_go_out_in_several_runs() -> None:
    """Their room is that of one transaction here: the ones before make place."""
    log = Log()
    texts = [b"%d " % number + b"x" * 30_000 for number in range(1, 9)]
    for number, text in enumerate(texts, start=1):
        logged(text, text[:7], log=log, number=number)
    found = read(log, text_bytes=0, group_bytes=1 << 20)
    assert [one.texts for one in found] == [(t.decode(), t[:7].decode()) for t in texts]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([b"x" * (MOST_BYTES - 1)], None),
        ([b"x" * MOST_BYTES], [MOST_BYTES - 1]),
        ([b"x" * 60_000, b"y" * 10_000, b"z"], [60_000, MOST_BYTES - 60_002]),
        ([b"x" * (MOST_BYTES - 2), b"y"], [MOST_BYTES - 2]),
        ([b"x" * (MOST_BYTES - 1), b""], [MOST_BYTES - 1]),
        (["ä".encode() * MOST_BYTES], [MOST_BYTES - 2]),
        (["x€".encode() * MOST_BYTES], [MOST_BYTES - 3]),
        (["\N{GRINNING FACE}".encode() * MOST_BYTES], [MOST_BYTES - 4]),
        ([b"\x80" * 2 * MOST_BYTES], [MOST_BYTES - 1]),
        ([b""] * (MOST_BYTES + 5), [0] * MOST_BYTES),
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
