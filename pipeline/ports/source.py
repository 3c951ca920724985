"""The port to the source's MySQL server: facts about it, its log, its structures, its
rows; and sums, hashes and samples of rows, which are compared with a mirror (the Delta
table with a table's current rows)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.proof.hashes import Hashes, RowSum
from lockstep.pipeline.schema.model import LOGS_LOWER_CASE, DatabaseSchema, TableSchema
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.snapshot.condition import RowCondition
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS, SourceLoad
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, ServerProcess
from lockstep.pipeline.values.survey import Survey
from lockstep.pipeline.values.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class ReadMarks:
    """The places of the log around a consistent read.

    The read has every change that was committed before `low`, and none that was
    committed after `high`. `low_set`: the GTIDs executed at `low`; "" without GTIDs.
    `is_ordered`: transactions become visible in the order of the log, so the read shows
    the table as of one place between the two.
    """

    low: Coordinates
    high: Coordinates
    low_set: str
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class SourceSum:
    """A table's rows, summed by the server."""

    sum: RowSum
    marks: ReadMarks


@dataclass(frozen=True, slots=True)
class SourceHashes:
    """A table's rows as pairs of hashes: the hash of the key, and that of the whole
    row. `batches` can be read once; rows are in no particular order."""

    marks: ReadMarks
    batches: Iterator[tuple[Hashes, Hashes]]


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Some of a table's rows, with columns of the types in `schema.types`."""

    marks: ReadMarks
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SourceSample:
    """Stretches of consecutive rows of a table, in the order of its key. `starts`: for
    each stretch, the key from which it was read; `rows`: its rows."""

    marks: ReadMarks
    starts: tuple[tuple[Any, ...], ...]
    rows: tuple[pa.Table, ...]


@dataclass(frozen=True, slots=True)
class BinlogSize:
    """A log file that the server lists, with its size in bytes at that moment."""

    file: LogFile
    size: int


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The facts about a server that every run needs, from one round of queries.

    `head`: the end of the log. `gtid_executed` has no transaction after `head`, because
    it is read first. `settings`: global variables by lower-case name. `read_at`: the
    server's clock. `is_standby`: the configured standby answered instead of the source.
    `json_keys`: the fields that are recorded with a decision.

    MariaDB has no server_uuid: `server-id:<id>` stands for it. Its GTIDs cannot be
    switched off. Its `gtid_binlog_state` is used as `gtid_executed`, and the GTID list
    at the beginning of its oldest log file as `gtid_purged`.
    """

    json_keys: ClassVar = (
        "server_uuid",
        "server_id",
        "version",
        "gtid_mode",
        "gtid_executed",
        "gtid_purged",
        "binlogs",
        "head",
        "read_at",
    )

    server_uuid: str
    server_id: int
    version: str
    flavour: str
    gtid_mode: str
    gtid_executed: str
    gtid_purged: str
    binlogs: tuple[BinlogSize, ...]
    head: Coordinates
    settings: Mapping[str, str]
    read_at: datetime
    is_standby: bool = False
    server_process: ServerProcess | None = None

    def name_in_log(self, table: TableName) -> TableName:
        """Return the name under which the log has the table's rows."""
        if self.settings.get("lower_case_table_names") != str(LOGS_LOWER_CASE):
            return table
        return TableName(table.database.lower(), table.name.lower())

    def size_of(self, file: LogFile) -> int | None:
        """Return the bytes of a file of the log; None if the server does not list it."""
        return next((log.size for log in self.binlogs if log.file == file), None)

    def lists(self, file: LogFile) -> bool:
        """Return whether the server still lists the file."""
        return self.size_of(file) is not None

    def extent_of(self, file: LogFile) -> str:
        """Return in words where a file ends, or which files there are if it is not
        listed."""
        if (size := self.size_of(file)) is not None:
            return f"{file} ends at {size}"
        logs = self.binlogs
        return f"files listed: {f'{logs[0].file} to {logs[-1].file}' if logs else 'none'}"


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes from a socket: `data[begin:end]`. The consumer may overwrite the bytes
    before `begin` (64 KiB in a dump), for example to prepend the rest of a packet. The
    iterator reuses the whole array at its next step."""

    data: npt.NDArray[np.uint8]
    begin: int
    end: int


class BinlogDump(Protocol):
    """A bounded stream of packets from one connection; never reconnects.

    Iterating yields the bytes of the packets that answer COM_BINLOG_DUMP as they
    arrive; a piece may end within a packet. The packets are numbered from 1. The
    iterator waits for more until it is closed, so the reader must stop at the packet
    that ends the stream. It raises `SourceUnavailable` if the server is silent for
    longer than the read timeout.
    """

    @property
    def begins(self) -> Coordinates | None:
        """The place where the stream begins; None for a dump after a GTID set."""

    def __iter__(self) -> Iterator[Received]: ...

    def close(self) -> None:
        """End the connection. The reader calls it once, also after an error."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Structures as they were read from the server, between two places of its log.

    They have every change that was committed before `low`, and none that was committed
    after `high`. If the log has no statement on a table between the two, its structure
    did not change. `low_set`: the GTIDs executed at `low`; the structures show each
    statement with one of them, wherever it is in the log. A table that was dropped
    meanwhile may be missing, and a table that was altered may show a mixture of both
    structures. `unread_tables`: tables that the account may not see or read completely,
    each with the missing privilege.
    """

    tables: tuple[TableSchema, ...]
    databases: tuple[DatabaseSchema, ...]
    low: Coordinates
    high: Coordinates
    low_set: str
    unread_tables: Mapping[TableName, str] = field(default_factory=dict)

    @property
    def names(self) -> list[TableName]:
        """The names of all tables, read or not."""
        return [*(table.name for table in self.tables), *self.unread_tables]


@dataclass(frozen=True, slots=True)
class CurrentSchemas:
    """Some tables as information_schema shows them now. `head` is the end of the log,
    read after them: each statement that they show is logged before `head`, or not
    logged yet. `server_uuid`: as in `ServerFacts`, of the server that answered."""

    tables: Mapping[TableName, TableSchema]
    head: Coordinates
    server_uuid: str


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """One table's rows in one consistent read, while it is open.

    `batches` have every change that was committed before `low` (the transactions of
    `low_set`, if the server has GTIDs), and none that was committed after `high`. If
    every change after `low` is applied to these rows by key, the result is the table
    from `high` on. `exact`: `low` equals `high`, and exactly the changes after it are
    missing. A table without a key needs that, because its rows cannot be replaced by
    key. `batches` can be read once; each has the columns of `schema` and 1 to 10,000
    rows, in no particular order (fewer rows if the table has more than about 400
    columns). A batch ends after 32 MiB as received, which bounds memory except for a
    single larger row. A batch owns its memory. Reading raises the errors of
    `SourceServer.snapshot`.

    `prepared_transactions`: XA transactions that were prepared but not committed when
    the rows were read. The log has their rows before `low`, but `batches` do not have
    them. It can name other transactions, too. None if the account may not ask.
    """

    table: TableName
    schema: pa.Schema
    low: Coordinates
    high: Coordinates
    low_set: str
    exact: bool
    batches: Iterator[pa.RecordBatch]
    prepared_transactions: frozenset[Xid] | None = None


@dataclass(frozen=True, slots=True)
class ConditionSnapshot:
    """The rows of a table for which a condition holds, and lookups by key, in one
    consistent read, while it is open. Call `by_keys` after `rows` was read to its end.
    It takes keys without NULL, with the columns of a key by which rows can be selected
    (`snapshot.chunks`). It yields all of them that exist in the table, and possibly
    other keys of the table."""

    rows: TableSnapshot
    by_keys: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A base table of the source. `rows`: the server's estimate of its rows' number."""

    name: TableName
    engine: str
    rows: int
    primary_key: tuple[str, ...]


class SourceServer(Protocol):
    """One MySQL server. Every call may open a connection of its own."""

    def facts(self) -> ServerFacts:
        """Return the facts that every run needs."""

    def survey(self) -> Survey:
        """Return the facts that `lockstep check` judges, from a bounded number of
        queries. The result names facts that the account may not see. The call works
        even if `facts` fails for lack of a privilege or because of a setting."""

    def dump(self, start: Coordinates) -> BinlogDump:
        """Return a dump from `start`, which must be the beginning of an event. If the
        server cannot begin at so large an offset, the dump begins with that file
        (`BinlogDump.begins`)."""

    def dump_after(self, executed: GtidSet) -> BinlogDump:
        """Return a dump of every transaction that is not in the set."""

    def prepared(self) -> frozenset[Xid]:
        """Return the XA transactions that are prepared now; none if the account may not
        ask."""

    def tables(self) -> list[ListedTable]:
        """Return all base tables that the account can see, sorted, without system
        databases."""

    def engines(self) -> dict[TableName, str]:
        """Return the engine of each table in `tables`, or '', by one short query."""

    def missing_grants(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """Return the tables among these on which the account has no privilege, each
        with the GRANT to type. Tables that the server does not have are left out. Each
        table costs a short query."""

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        """Return the present comments on columns of these tables, by table and column.
        They are only shown to people: structures do not contain them."""

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """Return the comments on these tables; tables without one are left out."""

    def structure(self, table: TableName) -> TableStructure:
        """Return the table's structure now, from information_schema. Raise
        `NothingMatches` if the account sees no such table."""

    def structures(self) -> list[TableStructure]:
        """Return the structure of every table in `tables`, by a bounded number of
        queries."""

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        """Return the structures of all base tables and databases that the account can
        see, without system databases, by a bounded number of queries. `names`: only
        these tables, as far as they exist. A default that is an expression is evaluated
        by a SELECT if the account may do so. Raise `TableError` if a single table is
        asked for that exists but cannot be examined."""

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        """Return the structures of these tables without foreign keys, as far as the
        account sees them, by a bounded number of queries. A table that is altered at
        this moment may show a mixture of both structures, or be missing."""

    def is_view_or_sequence(self, name: TableName) -> bool:
        """Return whether a view, or on MariaDB a sequence, has that name now. Return
        False if the account may not see it."""

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        """Return one table's structure while a lock keeps it from being altered, so
        every statement that it shows is logged before `head`. `tables` is empty if the
        server does not have the table. Raise `TableBusy` if other sessions prevent the
        lock, and `TableError` if the account may not read all columns."""

    def empty_tables(
        self, tables: Collection[TableName], after: Coordinates
    ) -> frozenset[TableName]:
        """Return the tables that had no row at some moment of this call, when every
        transaction before the place `after` could be read. Tables that cannot be read
        are left out, and so are all if such a transaction is not committed yet."""

    def snapshot(
        self, table: TableSchema | TableStructure, columns: Sequence[str] | None = None
    ) -> AbstractContextManager[TableSnapshot]:
        """Read a table with the structure `table` in one consistent read, with the
        types in `schema.types` and the same values as in the log. `columns`: read only
        the primary key and these columns. Nobody can alter the table until the snapshot
        is closed, so it is closed early if another session waits for that.

        Raise `StructureMoved` if the table has another structure or does not exist.
        Raise `TableBusy` if other sessions prevent the read or wait to alter the table.
        Raise `TableError` if a value fits no Arrow type, if the server refuses the
        query, or if it warns that it may have changed a value.
        """

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        row_count: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        """Return the last key of the chunk of `row_count` rows after the key `after`
        (None: from the table's first row). Return None if at most that many rows are
        left, or if the server cannot cut the table. `since` as for `chunk`; errors as
        for `snapshot`."""

    def chunk(
        self,
        schema: TableSchema,
        key_range: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> AbstractContextManager[TableSnapshot]:
        """Read the rows of a range of keys, like `snapshot`. With `exact`, wait a few
        seconds for a moment in which nothing is committed, or lock the table for such a
        moment; `TableSnapshot.exact` says whether that succeeded. Otherwise the rows
        may be read from a replica, with a `low` that is not before `since`. Raise
        `TableBusy` if a statement waits to alter the table (`snapshot.pace`), or if
        reading a range of the whole table takes longer than `most_seconds`. Raise
        `StructureMoved` also if the range has other key columns than the table."""

    def rows_where(
        self,
        schema: TableSchema,
        condition: RowCondition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> AbstractContextManager[ConditionSnapshot]:
        """Read the rows for which a condition holds, like `snapshot`. Raise `TableBusy`
        as `chunk` does for the whole table, and `ConditionRefused` if the server
        refuses the condition."""

    def estimated_rows_where(self, table: TableName, condition: RowCondition) -> int:
        """Return the server's estimate of the number of rows for which the condition
        holds. Raise `ConditionRefused` if the server refuses it, or does not have the
        table."""

    def source_load(self) -> SourceLoad:
        """Return the present load on the server, from which the pace of reading follows."""

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        """Return the server's estimate of each table's number of rows, without unknown
        tables."""

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        """Return the server's estimate of the size of each table's rows in bytes."""

    def row_sum(self, structure: TableStructure) -> SourceSum:
        """Return the sum of the hashes of all rows of a table with that structure
        (`proof.hashes`), added up by the server in one consistent read. Raise
        `StructureMoved` if the table has another structure, and `TableError` as
        `snapshot` does."""

    def row_hashes(self, structure: TableStructure) -> AbstractContextManager[SourceHashes]:
        """Return the hashes of a table's rows, row by row. Errors as for `row_sum`."""

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        """Return the rows whose keys have these hashes, which are at most a few
        hundred. Errors as for `row_sum`."""

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        """Read `sampling.STRETCH_ROWS` rows of a table from each of these keys on, in
        one consistent read; an empty key stands for the first row. `starts` may be a
        function if the key is one column of whole numbers: it gets the least and the
        greatest key and returns the keys. Errors as for `row_sum`."""
