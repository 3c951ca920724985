"""The order of changes comes from the log, whatever table maps it has.

One table may have several table maps in one batch: the flags of a foreign key's child differ from
statement to statement, and `binlog_row_metadata` may be set at any moment.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.run.dump import captured_tables
from tests.pipeline.made import Log, gtid, nested, payload, query, rows, table_map, xa, xa_prepare
from tests.pipeline.segmented import captured, named

TABLES = ("a", "b", "c")
_VISIBLE = b"\x0c\x01\x80"
BASE = 100


def maps(table: str, table_id: int) -> tuple[bytes, ...]:
    """Table maps of one structure: with other flags, with more said and with less."""
    whole = named(table, table_id)
    flagged = whole[:6] + struct.pack("<H", 3) + whole[8:]
    return whole, flagged, whole + _VISIBLE, table_map(table_id, table)


@dataclass(frozen=True, slots=True)
class Statement:
    """Rows of a table under one of its maps; `kind`: of their row events."""

    table: str
    map: int
    kind: EventType
    rows: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """How it stands in the log, and what it does. A prepared one is committed behind the
    next."""

    how: str
    statements: list[Statement]


statements = st.builds(
    Statement,
    st.sampled_from(TABLES),
    st.integers(0, 3),
    st.sampled_from([EventType.WRITE_ROWS, EventType.DELETE_ROWS]),
    st.integers(1, 4) | st.just(150),
)
transactions = st.builds(
    Transaction,
    st.sampled_from(["plain", "plain", "payload", "prepared"]),
    st.lists(statements, min_size=1, max_size=6),
)


@dataclass
class Made:
    """A log and the values of each table in its order, with where their events stand and where
    their transaction begins."""

    log: Log = field(default_factory=Log)
    values: int = 0
    gtids: int = 0
    rows: list[tuple[str, int, int, int]] = field(default_factory=list)
    _waiting: list[tuple[bytes, list[tuple[str, int]]]] = field(default_factory=list)

    def events(self, one: Statement) -> tuple[list[tuple[int, bytes]], list[int]]:
        number = 10 * (1 + TABLES.index(one.table)) + one.map
        values = list(range(self.values, self.values + one.rows))
        self.values += one.rows
        mapped = maps(one.table, number)[one.map]
        written = rows(*values, table_id=number)
        return [(EventType.TABLE_MAP, mapped), (one.kind, written)], values

    def announce(self) -> int:
        self.gtids += 1
        return self.log.add(EventType.GTID, gtid(self.gtids))

    def add(self, one: Transaction) -> None:
        begin = self.announce()
        match one.how:
            case "payload":
                self._payload(one.statements, begin)
            case "prepared":
                self._prepared(one.statements)
                return
            case _:
                self.log.add(EventType.QUERY, query("BEGIN"))
                self._statements(one.statements, begin)
                self.log.end()
        self.settle()

    def _statements(self, several: Sequence[Statement], begin: int) -> list[tuple[str, int]]:
        added = []
        for one in several:
            events, values = self.events(one)
            place = [self.log.add(kind, body) for kind, body in events][-1]
            self.rows += [(one.table, value, place, begin) for value in values if begin]
            added += [(one.table, value) for value in values]
        return added

    def _payload(self, several: Sequence[Statement], begin: int) -> None:
        parts, added = [nested(EventType.QUERY, query("BEGIN"))], []
        for one in several:
            events, values = self.events(one)
            parts += [nested(kind, body) for kind, body in events]
            added += [(one.table, value) for value in values]
        parts.append(nested(EventType.XID, bytes(8)))
        place = self.log.add(EventType.TRANSACTION_PAYLOAD, payload(b"".join(parts)))
        self.rows += [(table, value, place, begin) for table, value in added]

    def _prepared(self, several: Sequence[Statement]) -> None:
        gtrid = str(self.gtids).encode()
        self.log.add(EventType.QUERY, xa("START", gtrid))
        added = self._statements(several, 0)
        self.log.add(EventType.QUERY, xa("END", gtrid))
        self.log.add(EventType.XA_PREPARE, xa_prepare(gtrid))
        self._waiting.append((gtrid, added))

    def settle(self) -> None:
        """Commit what is prepared."""
        for gtrid, added in self._waiting:
            begin = self.announce()
            place = self.log.add(EventType.QUERY, xa("COMMIT", gtrid))
            self.rows += [(table, value, place, begin) for table, value in added]
        self._waiting.clear()


def made(several: Sequence[Transaction]) -> Made:
    """Every table is told by its first table map."""
    log = Made()
    first = [Statement(table, 0, EventType.WRITE_ROWS, 1) for table in TABLES]
    for one in (Transaction("plain", first), *several):
        log.add(one)
    log.settle()
    return log


@settings(max_examples=30)
@given(
    st.lists(transactions, max_size=8),
    st.sampled_from([1 << 11, 1 << 20]),
    st.sampled_from([1 << 10, captured_tables.MOST_UNWRITTEN_BYTES]),
)
def test_changes_have_the_order_of_the_log(
    several: list[Transaction], ring_bytes: int, held_bytes: int
) -> None:
    """Every row once; numbered in the order of the log, and so in its file; the segment's ends
    are the first and the last; rows that share a place are counted on. It does not matter how many
    rows are kept in memory."""
    log = made(several)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captured_tables, "MOST_UNWRITTEN_BYTES", held_bytes)
        done = captured(log.log, ring_bytes=ring_bytes)
    assert (done.quarantined, done.changes) == ([], len(log.rows))
    for table in TABLES:
        mine = [(n, *row) for n, row in enumerate(log.rows, start=BASE + 1) if row[0] == table]
        found, segment = done.tables[table], done.segments[table]
        numbers = found["_sequence"].to_pylist()
        assert found["i"].to_pylist() == [value for _, _, value, _, _ in mine]
        assert numbers == [number for number, *_ in mine]
        assert found["_offset"].to_pylist() == [place for *_, place, _ in mine]
        assert (segment.first_sequence, segment.last_sequence) == (numbers[0], numbers[-1])
        assert segment.counts.total == len(mine)
        places = np.array([place for *_, place, _ in mine])
        heads = np.flatnonzero(np.diff(places, prepend=-1))
        counted = np.arange(len(mine)) - np.repeat(heads, np.diff(heads, append=len(mine)))
        assert found["_row"].to_pylist() == counted.tolist()


@settings(max_examples=30)
@given(st.lists(transactions, min_size=1, max_size=8), st.data())
def test_a_table_quarantined_has_all_before_its_place(
    several: list[Transaction], data: st.DataObject
) -> None:
    """Rows of a table that stops are whole up to the place it stops at, and none lies behind;
    a bad event under one of its table maps stops it also where the others are good."""
    log = made(several)
    at = log.announce()
    log.log.add(EventType.QUERY, query("BEGIN"))
    table = data.draw(st.sampled_from(TABLES))
    for one in data.draw(st.lists(statements, max_size=3)):
        for kind, body in log.events(one)[0]:
            log.log.add(kind, body)
    number = 10 * (1 + TABLES.index(table)) + data.draw(st.integers(0, 3))
    log.log.add(EventType.TABLE_MAP, maps(table, number)[number % 10])
    odd = struct.pack("<IHHH", number, 0, 1, 2) + b"\x02\xff" + bytes(9)  # two columns
    log.log.add(EventType.WRITE_ROWS, odd)
    log.log.end()
    done = captured(log.log, ring_bytes=data.draw(st.sampled_from([1 << 11, 1 << 20])))
    (quarantined,) = done.quarantined
    assert quarantined.at is not None
    assert (quarantined.table.name, quarantined.at.offset <= at) == (table, True)
    kept = done.tables[table]["i"].to_pylist() if table in done.tables else []
    before = [row for row in log.rows if row[0] == table and row[3] < quarantined.at.offset]
    assert kept == [value for _, value, _, _ in before]
