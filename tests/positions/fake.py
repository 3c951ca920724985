"""A server that is nothing but its log: real event bytes, made as they are written.

Belongs here: committing, rotating, purging, replicating and resetting such a server, and
answering as `pipeline.ports.SourceServer`. Does not: what a follower must make of it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NoReturn
from uuid import UUID

import pyarrow as pa

from lockstep.pipeline.binlog.stream.control import encode_gtid_set
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.ports.source import (
    Baseline,
    BinlogSize,
    CurrentSchemas,
    ListedTable,
    Received,
    ServerFacts,
    TableSnapshot,
)
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    DatabaseSchema,
    KeyPart,
    KeySchema,
    TableSchema,
)
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS, SourceLoad
from lockstep.pipeline.values.errors import PositionPurged
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.survey import Survey
from lockstep.pipeline.values.table import TableName, TableStructure
from tests.pipeline.made import format_description, packet, query, received, rotate, wire

TABLE = TableName("shop", "t")
SCHEMA = TableSchema(
    TABLE,
    (ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int")),
    (KeySchema("PRIMARY", "primary", (KeyPart("id"),)),),
    charset="utf8mb4",
    collation="utf8mb4_0900_ai_ci",
)
EPOCH = 1_700_000_000
_SETTINGS = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_row_value_options": "",
    "log_bin": "ON",
}
_NAMES = b"\x04shop\0\x01t\0"
_METADATA = b"\x01\x01\x00" + b"\x04\x05\x02id\x01v" + b"\x08\x01\x00"
_TABLE_MAP = struct.pack("<IHH", 1, 0, 1) + _NAMES + b"\x02\x03\x03\x00\x02" + _METADATA


@dataclass(frozen=True, slots=True)
class Write:
    """A transaction that sets the value of a row, or deletes it (None); where it was first
    committed, as (UUID, number), which is its GTID unless it is anonymous; seconds since
    the epoch."""

    key: int
    value: int | None
    origin: tuple[str, int]
    anonymous: bool
    at: int


@dataclass(slots=True)
class _File:
    number: int
    before: GtidSet
    created: int
    events: list[bytes] = field(default_factory=list)
    size: int = 4

    def add(self, kind: int, body: bytes, at: int, server_id: int) -> None:
        made = packet(kind, body, self.size, timestamp=at, server_id=server_id)
        self.events.append(made)
        self.size += len(made)


@dataclass(slots=True)
class FakeServer:
    """`files` oldest first; the last one is written to. `rows`: the table's content."""

    uuid: str
    server_id: int
    base: str = "binlog"
    gtid_mode: str = "ON"
    rows: dict[int, int] = field(default_factory=dict)
    files: list[_File] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    executed: GtidSet = field(default_factory=GtidSet)
    number: int = 0
    clock: int = EPOCH - 100

    def __post_init__(self) -> None:
        self._begin_file(1)

    # -- what happens to it --------------------------------------------------------------

    def write(self, key: int, value: int | None) -> None:
        """A client's transaction, a second after the last one."""
        self.number += 1
        self.clock = max(self.clock + 1, EPOCH)
        origin = (self.uuid, self.number)
        self.apply(Write(key, value, origin, self.gtid_mode != "ON", self.clock))

    def apply(self, write: Write) -> None:
        """Commit a transaction, a client's or a replicated one."""
        if write.value is None and write.key not in self.rows:
            write = replace(write, value=0)
        log, at = self.files[-1], write.at
        self.clock = max(self.clock, at)
        if write.anonymous:
            log.add(EventType.ANONYMOUS_GTID, bytes(25), at, self.server_id)
        else:
            uuid, number = write.origin
            body = b"\0" + UUID(uuid).bytes + struct.pack("<q", number)
            log.add(EventType.GTID, body, at, self.server_id)
            self.executed = self.executed.union(GtidSet.parse(f"{uuid}:{number}"))
        log.add(EventType.QUERY, query("BEGIN"), at, self.server_id)
        log.add(EventType.TABLE_MAP, _TABLE_MAP, at, self.server_id)
        log.add(*self._change(write), at, self.server_id)
        log.add(EventType.XID, bytes(8), at, self.server_id)
        self.writes.append(write)

    def _change(self, write: Write) -> tuple[int, bytes]:
        before = self.rows.pop(write.key, None)
        old = b"" if before is None else struct.pack("<Bii", 0, write.key, before)
        if write.value is None:
            return EventType.DELETE_ROWS, _rows(1, old)
        self.rows[write.key] = write.value
        new = struct.pack("<Bii", 0, write.key, write.value)
        if before is None:
            return EventType.WRITE_ROWS, _rows(1, new)
        return EventType.UPDATE_ROWS, _rows(2, old + new)

    def rotate(self) -> None:
        log = self.files[-1]
        name = f"{self.base}.{log.number + 1:06d}"
        log.add(EventType.ROTATE, rotate(name), self.clock, self.server_id)
        self._begin_file(log.number + 1)

    def purge(self) -> None:
        """All files but the one that is written to."""
        del self.files[:-1]

    def reset(self) -> None:
        """RESET BINARY LOGS AND GTIDS: the rows stay, the log begins anew."""
        self.files.clear()
        self.writes.clear()
        self.executed, self.number = GtidSet(), 0
        self.clock += 1
        self._begin_file(1)

    def follow(self, other: FakeServer) -> None:
        """Replicate what the other one executed and this one did not."""
        own = {write.origin for write in self.writes}
        for write in other.writes:
            if write.origin not in own:
                self.apply(write)

    def _begin_file(self, number: int) -> None:
        log = _File(number, self.executed, self.clock)
        self.files.append(log)
        log.add(EventType.FORMAT_DESCRIPTION, format_description(), self.clock, self.server_id)
        log.add(
            EventType.PREVIOUS_GTIDS, encode_gtid_set(self.executed), self.clock, self.server_id
        )

    # -- what it answers -----------------------------------------------------------------

    @property
    def head(self) -> Coordinates:
        return Coordinates(LogFile(self.base, self.files[-1].number), self.files[-1].size)

    def facts(self) -> ServerFacts:
        return ServerFacts(
            server_uuid=self.uuid,
            server_id=self.server_id,
            version="9.7.4",
            flavour="mysql",
            gtid_mode=self.gtid_mode,
            gtid_executed=str(self.executed),
            gtid_purged=str(self.files[0].before),
            binlogs=tuple(BinlogSize(LogFile(self.base, f.number), f.size) for f in self.files),
            head=self.head,
            settings={**_SETTINGS, "gtid_mode": self.gtid_mode},
            read_at=datetime.fromtimestamp(self.clock, UTC),
        )

    def dump(self, start: Coordinates) -> FakeDump:
        files = [log for log in self.files if log.number >= start.file.number]
        if not files or files[0].number != start.file.number or start.file.base != self.base:
            raise PositionPurged(f"{start.file} is not there", hint="none")
        sent = [self._artificial(EventType.ROTATE, rotate(str(start.file), start.offset))]
        for log in files:
            if log is not files[0]:
                name = f"{self.base}.{log.number:06d}"
                sent.append(self._artificial(EventType.ROTATE, rotate(name)))
            elif start.offset > 4:
                sent.append(self._artificial(EventType.FORMAT_DESCRIPTION, format_description()))
            at = 4
            for event in log.events:
                if log is not files[0] or at >= start.offset:
                    sent.append(event)
                at += len(event)
        return FakeDump(start, wire(sent))

    def dump_after(self, executed: GtidSet) -> FakeDump:
        """Nobody refuses, nobody reads it."""
        return FakeDump(None, wire([]))

    def _artificial(self, kind: int, body: bytes) -> bytes:
        return packet(kind, body, 0, flags=0x20, end=0, timestamp=0, server_id=self.server_id)

    def prepared(self) -> frozenset[Xid]:
        return frozenset()

    def tables(self) -> list[ListedTable]:
        return [ListedTable(TABLE, "InnoDB", len(self.rows), ("id",))]

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        return {}

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        return {}

    def engines(self) -> dict[TableName, str]:
        return {TABLE: "InnoDB"}

    def missing_grants(self, tables: Collection[TableName]) -> dict[TableName, str]:
        return {}

    def structures(self) -> list[TableStructure]:
        return []

    def structure(self, table: TableName) -> NoReturn:
        raise AssertionError("nobody asks: the log has all metadata")

    def survey(self) -> Survey:
        raise AssertionError("no run asks")

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        tables = (SCHEMA,) if names is None or TABLE in names else ()
        databases = (DatabaseSchema("shop", "utf8mb4", "utf8mb4_0900_ai_ci"),)
        executed = str(self.executed)
        return Baseline(tables, databases, self.head, self.head, executed)

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return CurrentSchemas({TABLE: SCHEMA}, self.head, self.uuid)

    def is_view_or_sequence(self, name: TableName) -> bool:
        return False

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        raise AssertionError("no structure differs")

    def empty_tables(
        self, tables: Collection[TableName], after: Coordinates
    ) -> frozenset[TableName]:
        return frozenset(tables if not self.rows else ())

    @contextmanager
    def snapshot(
        self, table: TableSchema | TableStructure, columns: Sequence[str] | None = None
    ) -> Iterator[TableSnapshot]:
        schema = arrow_schema(row_structure(SCHEMA))
        values = [pa.array(part, pa.int32()) for part in (self.rows, self.rows.values())]
        yield TableSnapshot(
            TABLE,
            schema,
            self.head,
            self.head,
            str(self.executed),
            exact=True,
            batches=iter([pa.RecordBatch.from_arrays(values, schema=schema)]),
        )

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        row_count: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        behind = _behind(after)
        ids = sorted(key for key in self.rows if behind is None or key > behind)
        return Bound(("id",), (str(ids[row_count - 1]),)) if len(ids) > row_count else None

    @contextmanager
    def chunk(
        self,
        schema: TableSchema,
        key_range: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> Iterator[TableSnapshot]:
        after, through = _behind(key_range.after), _behind(key_range.through)
        found = {
            key: value
            for key, value in self.rows.items()
            if (after is None or key > after) and (through is None or key <= through)
        }
        with self.snapshot(schema) as snapshot:
            columns = [pa.array(part, pa.int32()) for part in (found, found.values())]
            batch = pa.RecordBatch.from_arrays(columns, schema=snapshot.schema)
            yield replace(snapshot, batches=iter([batch]), prepared_transactions=frozenset())

    def source_load(self) -> SourceLoad:
        return SourceLoad(1, None, 1, 100)

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        return {TABLE: len(self.rows)} if TABLE in tables else {}

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        return {TABLE: 16 * len(self.rows)} if TABLE in tables else {}


def _behind(bound: Bound | None) -> int | None:
    return None if bound is None else int(bound.literals[0])


def _rows(bitmaps: int, images: bytes) -> bytes:
    return struct.pack("<IHHH", 1, 0, 1, 2) + b"\x02" + b"\xff" * bitmaps + images


@dataclass(slots=True)
class FakeDump:
    """The whole answer at once."""

    begins: Coordinates | None
    data: bytes

    def __iter__(self) -> Iterator[Received]:
        yield received(self.data)

    def close(self) -> None:
        """Nothing is open."""
