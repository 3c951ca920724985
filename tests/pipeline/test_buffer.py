"""Only whole transactions leave the buffer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.binlog.buffer import (
    TRANSITIONS,
    Input,
    Phase,
    Place,
    Transaction,
    TransactionBuffer,
)
from pipeline.binlog.framing import Event, EventType, Framing
from pipeline.errors import DamagedEvent, UnsupportedStatement
from pipeline.position import Coordinates, LogFile
from tests.pipeline.made import SERVER, Log, gtid, query

START = Coordinates(LogFile("binlog", 1), 4)


def events(log: Log) -> list[Event]:
    framing = Framing(START)
    return [framing.frame(whole) for whole in log.packets]


def put_all(log: Log) -> list[Transaction]:
    buffer = TransactionBuffer()
    return [out for event in events(log) if isinstance(out := buffer.put(event), Transaction)]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["xid", "COMMIT", "ROLLBACK"]))))
def test_transactions_come_out_whole_and_in_order(shape: list[tuple[int, str]]) -> None:
    """As many as went in, each with all its rows; a rolled back one without any."""
    log = Log()
    for number, (rows, end) in enumerate(shape, start=1):
        log.transaction(number, end=end, rows=rows)
    out = put_all(log)
    assert [t.gtid.text for t in out] == [f"{SERVER}:{n}" for n in range(1, len(shape) + 1)]
    expected = [0 if end == "ROLLBACK" else rows for rows, end in shape]
    written = [[e for e in t.events if e.type is EventType.WRITE_ROWS] for t in out]
    assert [len(rows) for rows in written] == expected


@given(st.integers(1, 12))
def test_a_cut_stream_gives_no_part_of_a_transaction(cut: int) -> None:
    """However the stream ends, what came out had come in whole."""
    log = Log()
    log.transaction(1)
    log.transaction(2, rows=2)
    buffer = TransactionBuffer()
    seen = events(log)[: 2 + cut]
    out = [t for e in seen if isinstance(t := buffer.put(e), Transaction)]
    ends = sum(event.type is EventType.XID for event in seen)
    assert len(out) == ends


def test_a_lone_statement_is_a_transaction() -> None:
    """DDL has no BEGIN and no XID."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, query("CREATE TABLE t (id INT)"))
    (one,) = put_all(log)
    assert [s.text for s in one.statements] == ["CREATE TABLE t (id INT)"]
    assert one.end.offset == log.offset


def test_create_as_select_keeps_its_rows() -> None:
    """CREATE TABLE … START TRANSACTION stands inside BEGIN … XID, before its rows."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, query("BEGIN"))
    log.add(EventType.QUERY, query("CREATE TABLE `t` (`id` int) START TRANSACTION"))
    log.add(EventType.XID, bytes(8))
    (one,) = put_all(log)
    assert len(one.statements) == 1


@pytest.mark.parametrize(
    "text", ["UPDATE t SET a = 1", "ROLLBACK TO `a`", "INSERT INTO t VALUES (1)"]
)
def test_a_statement_among_rows_stops(text: str) -> None:
    """A session that writes in statement format leaves rows out of the log."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, query("BEGIN"))
    log.add(EventType.QUERY, query(text))
    with pytest.raises(UnsupportedStatement, match="instead of rows"):
        put_all(log)


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("kind", list(Input))
def test_every_pair_is_ruled(phase: Phase, kind: Input) -> None:
    """Each state meets each input: the table's answer, or a refusal that changes nothing."""
    log = Log()
    if phase is not Phase.BETWEEN:
        log.add(EventType.GTID, gtid(1))
    if phase is Phase.OPEN:
        log.add(EventType.QUERY, query("BEGIN"))
    before = len(log.packets)
    _add(log, kind)
    buffer = TransactionBuffer()
    made = events(log)
    for event in made[:before]:
        buffer.put(event)
    assert buffer.phase is phase
    rule = TRANSITIONS.get((phase, kind))
    if rule is None:
        with pytest.raises((DamagedEvent, UnsupportedStatement)):
            buffer.put(made[before])
        assert buffer.phase is phase
    else:
        out = buffer.put(made[before])
        assert buffer.phase is rule[1]
        assert isinstance(out, Transaction) == rule[0].name.startswith("EMIT")
        assert isinstance(out, Place) == (rule[0].name == "MOVE")


def _add(log: Log, kind: Input) -> None:
    match kind:
        case Input.GTID:
            log.add(EventType.GTID, gtid(2))
        case Input.BEGIN:
            log.add(EventType.QUERY, query("BEGIN"))
        case Input.STATEMENT:
            log.add(EventType.QUERY, query("DROP TABLE t"))
        case Input.CHANGE:
            log.add(EventType.ROWS_QUERY, b"\0")
        case Input.COMMIT:
            log.add(EventType.XID, bytes(8))
        case Input.ROLLBACK:
            log.add(EventType.QUERY, query("ROLLBACK"))
        case Input.SAVEPOINT:
            log.add(EventType.QUERY, query("SAVEPOINT `a`"))
        case Input.CREATE_AS_SELECT:
            log.add(EventType.QUERY, query("CREATE TABLE `t` (`i` int) START TRANSACTION"))
        case Input.PLACE:
            log.add(EventType.STOP, b"")
        case Input.HEARTBEAT:
            log.add(EventType.HEARTBEAT, b"binlog.000001")
