"""What a capture makes of made logs: the order of changes comes from the log, whatever table maps
it has; rows of `_transactions`; and which tables statements changed meanwhile.

One table may have several table maps in one batch: the flags of a foreign key's child differ from
statement to statement, and `binlog_row_metadata` may be set at any moment."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.run.dump import captured_tables
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.log_reader import tables_changed_by
from lockstep.pipeline.run.dump.segmenter import Segmenter, SystemTableRows
from lockstep.pipeline.run.dump.table_changes import TableChanges
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.effects import (
    FollowedStatement,
    LoggedStatement,
    Renamed,
    recorded_statement,
)
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood, RenameTables
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.values import row_groups
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import Segment, SegmentFile, SystemTable
from lockstep.pipeline.values.table import TableName
from tests.pipeline.buffered import a_buffer, runs
from tests.pipeline.made import (
    Log,
    gtid,
    nested,
    payload,
    query,
    received,
    rows,
    table_map,
    xa,
    xa_prepare,
)
from tests.twins.lake import MemoryLake
from tests.twins.segments import MemorySegments


def named(table: str, table_id: int) -> bytes:
    """A table map with full metadata: one INT column `i`, the key."""
    return table_map(table_id, table) + b"\x01\x01\x00" + b"\x04\x02\x01i" + b"\x08\x01\x00"


def write(log: Log, table: str, table_id: int, *values: int) -> None:
    log.add(EventType.TABLE_MAP, named(table, table_id))
    log.add(EventType.WRITE_ROWS, rows(*values, table_id=table_id))


def odd(log: Log, table: str, table_id: int) -> None:
    """Rows of two columns, where the table map has one."""
    log.add(EventType.TABLE_MAP, named(table, table_id))
    head = struct.pack("<IHHH", table_id, 0, 1, 2) + b"\x02\xff"
    log.add(EventType.WRITE_ROWS, head + bytes(9))


@dataclass(frozen=True, slots=True)
class Captured:
    """What one capture made: rows and segment of each table by name, what was quarantined, and the
    rows of `_transactions`."""

    tables: dict[str, pa.Table]
    segments: dict[str, Segment]
    quarantined: list[StoppedTable]
    changes: int
    transactions: list[dict[str, Any]]


def made_segmenter(tables: CapturedTables, system: SystemTableRows | None = None) -> Segmenter:
    """Over structures in memory, without shapes."""
    structures, shaping = SchemaTracker(StructuresInMemory()), Shaping()
    changes = TableChanges(tables, structures, shaping)
    return Segmenter(tables, structures, shaping, changes, system)


def captured(log: Log, *, ring_bytes: int = 1 << 20, wanted: str = "") -> Captured:
    """Of batch 3, whose changes are numbered from 101; `wanted`: tables that are captured, by their
    first letters, all without."""
    store = MemorySegments(MemoryLake())
    tables = CapturedTables(store, source="shop", batch_id=3, last_sequence_before=100, states={})
    system = SystemTableRows(store, source="shop", batch_id=3)
    segmenter = made_segmenter(tables, system)
    buffer = a_buffer(
        is_captured=lambda table: segmenter.is_wanted(table) and table.name.startswith(wanted),
        ring_bytes=ring_bytes,
        group_bytes=1 << 9,
    )
    segmenter.use_buffer(buffer)
    buffer.put(received(log.wire()))
    for run in runs(buffer):
        segmenter.put(run)
    (part,) = system.finish(BatchHistory())
    assert part.table is SystemTable.TRANSACTIONS
    segments = {segment.table.name: segment for segment in tables.finish()}

    def rows_of(folder: str, files: Sequence[SegmentFile]) -> pa.Table:
        return pa.concat_tables(store.pieces(f"shop/{folder}", files))

    return Captured(
        {name: rows_of(f"_changes/shop/{name}", one.files) for name, one in segments.items()},
        segments,
        [*tables.quarantines.values()],
        tables.change_count,
        rows_of("_transactions", part.files).to_pylist(),
    )


def begin(log: Log, number: int) -> None:
    log.begin(number)


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
                self.log.say("BEGIN")
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
    log.log.say("BEGIN")
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


def numbers(found: list[dict[str, Any]]) -> list[tuple[int, int | None, int | None]]:
    return [(row["rows"], row["first_sequence"], row["last_sequence"]) for row in found]


def test_every_transaction_is_told() -> None:
    """Where it begins and ends, its server, and its numbers if it has any."""
    log = Log()
    places = [log.offset]
    for number, tables in enumerate((("a", "a"), ("other",), ("a", "b")), start=1):
        begin(log, number)
        for table in tables:
            write(log, table, ord(table[0]), number, number + 10)
        log.end()
        places.append(log.offset)
    log.add(EventType.GTID, gtid(4))
    log.say("create table x (i int)")
    found = captured(log).transactions
    assert [(row["_offset"], row["end_offset"]) for row in found[:3]] == list(pairwise(places))
    assert numbers(found) == [(4, 101, 104), (2, 105, 106), (4, 107, 110), (0, None, None)]
    assert [row["_gtid"].rpartition(":")[2] for row in found] == ["1", "2", "3", "4"]
    assert {row["_server_id"] for row in found} == {7}
    foreign = numbers(captured(log, wanted="a").transactions)
    assert foreign == [(4, 101, 104), (0, None, None), (2, 105, 106), (0, None, None)]


@pytest.mark.parametrize("ring_bytes", [1 << 20, 1 << 11])
def test_rows_taken_back_are_not_counted(ring_bytes: int) -> None:
    """Of a table that is quarantined in a transaction; also where that comes in parts."""
    log = Log()
    begin(log, 1)
    write(log, "a", 1, 1)
    write(log, "b", 2, 2)
    log.end()
    begin(log, 2)
    for part in range(8):
        write(log, "a", 1, *range(1000 + part * 100, 1100 + part * 100))
        write(log, "b", 2, *range(2000 + part * 100, 2100 + part * 100))
    odd(log, "b", 2)
    write(log, "a", 1, 5000)
    log.end()
    begin(log, 3)
    write(log, "a", 1, 6000)
    log.end()
    first, second, third = captured(log, ring_bytes=ring_bytes).transactions
    assert (second["rows"], third["rows"]) == (801, 1)
    assert first["last_sequence"] < second["first_sequence"]
    assert second["last_sequence"] < third["first_sequence"]


def test_rows_are_written_in_the_order_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are more than a row group."""
    monkeypatch.setattr(row_groups, "GROUP_ROWS", 3)
    log = Log()
    for number in range(1, 11):
        begin(log, number)
        write(log, "a", 1, number)
        log.end()
    assert [first for _, first, _ in numbers(captured(log).transactions)] == list(range(101, 111))


def test_a_compressed_transaction_reaches_to_its_payloads_end() -> None:
    """Its rows are found where the payload stands, and counted as any others."""
    parts = [nested(EventType.QUERY, query("BEGIN"))]
    parts.append(nested(EventType.TABLE_MAP, named("a", 1)))
    parts.append(nested(EventType.WRITE_ROWS, rows(1, 2, 3)))
    parts.append(nested(EventType.XID, bytes(8)))
    log = Log()
    begins = log.add(EventType.GTID, gtid(1))
    log.add(EventType.TRANSACTION_PAYLOAD, payload(b"".join(parts)))
    found = captured(log).transactions
    assert [(row["_offset"], row["end_offset"]) for row in found] == [(begins, log.offset)]
    assert numbers(found) == [(3, 101, 103)]


AT = Coordinates.parse("binlog.000001:4")
NEVER = datetime(2026, 1, 1, tzinfo=UTC)
CASES = {
    "drop table u": "",
    "truncate table u": "",
    "create table u like t": "",
    "create table if not exists t (id int)": "",
    "create or replace table t (id int)": "t",
    "grant select on t to somebody": "",
    "truncate table t": "t",
    "drop table t": "t",
    "drop database shop": "t",
    "drop database other": "",
    "rename table t to u": "t u",
    "rename table t to u; rename table u to v": "t u v",
    "rename table u to v; rename table t to u": "t u",
    "rename table a to b, t to a": "a b t",
    "alter table t rename to u": "t u",
    "alter table t alter v set default 1": "t",
    "drop table t; create table t (id int)": "t",
    "repair table t": "",
}


@pytest.mark.parametrize("statements", CASES)
def test_every_name_that_the_rows_may_have_is_found(statements: str) -> None:
    """Along a chain of renames; what creates a table where none is takes no rows."""
    context = StatementContext(database="shop")
    recorded = [
        recorded_statement(
            LoggedStatement(text, context, AT, AT, "", NEVER, NEVER), FollowedStatement()
        )
        for text in statements.split("; ")
    ]
    found = tables_changed_by([TableName("shop", "t")], recorded, lambda table: table)
    assert " ".join(sorted(table.name for table in found)) == CASES[statements]


RENAMES = {
    "rename table a to b": "a-b",
    "rename table a to b; rename table b to c": "a-c b-c",
    "rename table a to x, b to a, x to b": "a-b b-a x-b",
    "rename table z to a; rename table a to x, b to a, x to b": "a-b b-a x-b z-b",
}


@pytest.mark.parametrize("statements", RENAMES)
def test_a_renamed_table_has_its_present_name(statements: str) -> None:
    """Also where a statement renames a table to a name that it renames again: two tables that
    change places by a third name."""
    context = StatementContext(database="shop")
    store = MemorySegments(MemoryLake())
    tables = CapturedTables(store, source="shop", batch_id=3, last_sequence_before=100, states={})
    segmenter = made_segmenter(tables)
    segmenter.use_buffer(a_buffer(is_captured=segmenter.is_wanted))
    for text in statements.split("; "):
        read = read_change(text, context)
        assert not isinstance(read, Irrelevant | NotUnderstood)
        renames = (change for change in read if isinstance(change, RenameTables))
        effects = tuple(Renamed(old, new) for rename in renames for old, new in rename.pairs)
        statement = LoggedStatement(text, context, AT, AT, "", NEVER, NEVER)
        segmenter.apply_statement(statement, FollowedStatement(effects))
    found = {old.name: new.name for old, new in segmenter.present_names.items()}
    assert " ".join(f"{old}-{new}" for old, new in sorted(found.items())) == RENAMES[statements]
