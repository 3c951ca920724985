"""The source server as a run sees it: facts, its log, its structures, its rows, and sums, hashes
and samples of rows for a comparison with a mirror."""

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
from lockstep.pipeline.schema.model import DatabaseSchema, TableSchema
from lockstep.pipeline.snapshot.bounds import Bound, Range
from lockstep.pipeline.snapshot.condition import Condition
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS, SourceLoad
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, ServerProcess
from lockstep.pipeline.values.survey import Survey
from lockstep.pipeline.values.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class ReadMarks:
    """The places of the log around a consistent read.

    The read has everything that was committed before `low` (the transactions of `low_set`), and
    nothing that was committed after `high`. `ordered`: transactions become visible in the order
    of the log, so that the read shows the table after some transaction between the two.
    """

    low: Coordinates
    high: Coordinates
    low_set: str
    high_set: str
    ordered: bool


@dataclass(frozen=True, slots=True)
class SourceSum:
    """A table's rows, summed by the server."""

    sum: RowSum
    marks: ReadMarks


@dataclass(frozen=True, slots=True)
class SourceHashes:
    """A table's rows as pairs of hashes: of the key, and of the whole row. `batches` can be read
    once, and are in no particular order."""

    marks: ReadMarks
    batches: Iterator[tuple[Hashes, Hashes]]


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Some of a table's rows, with columns of the types in `schema.types`."""

    marks: ReadMarks
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SourceSample:
    """Stretches of a table's rows in the order of its key: where each was to begin, and its
    rows."""

    marks: ReadMarks
    starts: tuple[tuple[Any, ...], ...]
    rows: tuple[pa.Table, ...]


class ComparedServer(Protocol):
    """Part of `SourceServer`."""

    def row_sum(self, structure: TableStructure) -> SourceSum:
        """Return the sum of the hashes of all rows of a table with that structure
        (`proof.hashes`), added up by the server in one consistent read. `StructureMoved` if the
        table has another structure; `TableError` as for `snapshot`."""

    def row_hashes(self, structure: TableStructure) -> AbstractContextManager[SourceHashes]:
        """Return the same hashes row by row; raises as `row_sum`."""

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        """Return the rows whose keys have these hashes, at most a few hundred; raises as
        `row_sum`."""

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        """Read `sampling.STRETCH` rows of a table from each of these keys on (from the first row
        for an empty one), in one consistent read. If `starts` is a function, the key is one column
        of whole numbers, and the function gets its least and greatest value. Raises as
        `row_sum`."""


@dataclass(frozen=True, slots=True)
class BinlogSize:
    """A log file the server lists, with its size in bytes at that moment."""

    file: LogFile
    size: int


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the source said of itself in one round of questions.

    `gtid_executed` is read before `head`, so it has no transaction after that.
    `settings` holds global variables by lower-case name. `read_at` is the server's clock.
    MariaDB has no server_uuid (`server-id:<id>` stands for it), always GTIDs, its binlog
    state as what was executed, and the list at the head of its oldest file as what was
    purged. `standby`: the source's standby answered. Decisions keep the fields in `json_keys`.
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
    standby: bool = False
    life: ServerProcess | None = None

    def size_of(self, file: LogFile) -> int | None:
        """Return the bytes of a file of the log; None if the server does not list it."""
        return next((log.size for log in self.binlogs if log.file == file), None)

    def lists(self, file: LogFile) -> bool:
        """Return whether the server still lists the file."""
        return self.size_of(file) is not None


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes from a socket: `data[begin:end]`. The bytes before `begin`, 64 KiB in a dump, may be
    overwritten; the iterator reuses the whole array at its next step."""

    data: npt.NDArray[np.uint8]
    begin: int
    end: int


class BinlogDump(Protocol):
    """A bounded stream of packets from one connection; never reconnects.

    Iterating yields the bytes of the packets that answer COM_BINLOG_DUMP, numbered from 1, as they
    arrive and cut anywhere. It waits for more until it is closed, so the reader must stop at the
    packet that ends the stream. A silent peer is `SourceUnavailable` within the read timeout.
    """

    @property
    def begins(self) -> Coordinates | None:
        """The place where the stream begins; None for a dump after a GTID set."""

    def __iter__(self) -> Iterator[Received]: ...

    def close(self) -> None:
        """End the connection; called once, also after an error."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Structures as they were read from the server, between two places of its log.

    They have everything that was committed before `low`, and nothing that was committed after
    `high`: if the log has no statement on a table between the two, its structure was the same all
    the time. `low_set` and `high_set` are the GTIDs executed then, empty if the server has none: a
    statement with a GTID of `low_set` is in what was read, wherever it stands in the log. A table
    that was dropped meanwhile may be missing; one that was altered may show a mixture of both
    structures. `unread`: tables that the account may not see or read completely, each with the
    privilege that is missing.
    """

    tables: tuple[TableSchema, ...]
    databases: tuple[DatabaseSchema, ...]
    low: Coordinates
    high: Coordinates
    low_set: str
    high_set: str
    unread: Mapping[TableName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CurrentSchemas:
    """Some tables as information_schema shows them now. `head` is the log's end, read after that:
    each statement that changed what is shown stands before it, or is not logged yet.
    `server_uuid`: that of the server that answered, as in `ServerFacts`."""

    tables: Mapping[TableName, TableSchema]
    head: Coordinates
    server_uuid: str


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """One table's rows in one consistent read, while it is open.

    `batches` have everything that was committed before `low` (the transactions of `low_set`, if the
    server has GTIDs), and nothing that was committed after `high`: these rows, with every change
    after `low` applied over them key by key, are the table from `high` on.
    `exact`: nothing that concerns the table was committed between; then `low` equals `high`,
    and only the changes after it are missing, also for a table without a key.
    `batches` can be read once; each has the columns of `schema`, in no particular order of
    rows, and 1 to 10,000 rows (fewer of a table with more than some 400 columns). A batch ends
    after 32 MiB as received, so that memory stays flat but for one large row. A batch owns its
    memory. Reading raises what `SourceServer.snapshot` raises.

    `prepared`: XA transactions that may have been prepared before `low` and are not in
    `batches`: the log has their rows before `low`, and their COMMIT after it, or not yet. It may
    name others, too. None if the account may not ask.
    """

    table: TableName
    schema: pa.Schema
    low: Coordinates
    high: Coordinates
    low_set: str
    high_set: str
    exact: bool
    batches: Iterator[pa.RecordBatch]
    prepared: frozenset[Xid] | None = None


@dataclass(frozen=True, slots=True)
class ConditionSnapshot:
    """The rows of a table for which a condition holds, and lookups by key, in one consistent read,
    while it is open. Once `rows` is read to its end, `by_keys` takes keys without NULL, with the
    columns of a key by which rows can be selected (`snapshot.bounds`), and yields keys of the
    table's rows, among them all of the given ones that exist."""

    rows: TableSnapshot
    by_keys: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]


class SourceServer(ComparedServer, Protocol):
    """One MySQL server. Every call may open a connection of its own."""

    def facts(self) -> ServerFacts: ...

    def survey(self) -> Survey:
        """Examine the server in a bounded number of queries; the result names what the account may
        not see. It works even if `facts` is refused for a privilege or a setting."""

    def dump(self, start: Coordinates) -> BinlogDump:
        """Return a dump from `start`, which must be the beginning of an event; from the beginning
        of that file if the server cannot begin so far in it (`BinlogDump.begins`)."""

    def dump_after(self, executed: GtidSet) -> BinlogDump:
        """Return a dump of every transaction that is not in the set."""

    def prepared(self) -> frozenset[Xid]:
        """Return the XA transactions that are prepared now; none if the account may not ask."""

    def tables(self) -> list[ListedTable]:
        """Return all base tables that the account can see, sorted, without system databases."""

    def engines(self) -> dict[TableName, str]:
        """Return the engine of each table in `tables`, by one short query; '' for none."""

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        """Return the comments on columns of these tables now, by table and column. They are for
        people: no structure has them."""

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """Return the comments on these tables; tables without one are left out."""

    def rows(self, structure: TableStructure) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """Return the table's rows in one consistent read, with columns of the types in
        `schema.types`, in batches as in `TableSnapshot`; `TableError` as for `snapshot`."""

    def structure(self, table: TableName) -> TableStructure:
        """Return the table's structure now, from information_schema; `NothingMatches` if the
        account sees no such table."""

    def structures(self) -> list[TableStructure]:
        """Return the structure of every table in `tables`, by a bounded number of queries."""

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        """Return every base table and every database that the account can see, without system
        databases, or those of `names` that exist, by a bounded number of queries. Defaults whose
        text does not say their value are evaluated, if the account may SELECT. If one table is
        asked for: `TableError` if it exists and cannot be examined."""

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        """Return those of the tables that the account sees, without their foreign keys, by a
        bounded number of queries. A table that is altered at this moment may show a mixture of both
        structures, or be missing."""

    def is_view(self, name: TableName) -> bool:
        """Return whether a view, or on MariaDB a sequence, has that name now; False if the account
        may not see it."""

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        """Return one table while nobody can alter it: every logged statement that changed it stands
        before `head`. `tables` is empty if the server does not have the table. `TableBusy` if
        others keep it from being locked for reading, `TableError` if the account may not read all
        its columns."""

    def empty(self, tables: Collection[TableName]) -> frozenset[TableName]:
        """Return those of the tables that had no row at some moment of this call; a table that
        cannot be read is not among them."""

    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> AbstractContextManager[TableSnapshot]:
        """Read a table with the structure `table` in one consistent read, or its primary key and
        these columns, with the types in `schema.types` and the same values as in the log.

        `exact`: wait a few seconds for a moment in which nothing is committed, or lock the table
        for one; `TableSnapshot.exact` says whether that succeeded. The table keeps its structure
        until the snapshot is closed, which happens early if somebody waits to alter it.
        `StructureMoved` if the table has another structure, or is gone; `TableError` for a value
        that no Arrow type holds, for a refusal of the server, and for a warning that may mean a
        changed value (`TableBusy` if others keep it from being read now, or it gave way to them).
        """

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        """Return where the chunk of `rows` rows after `after` (None: from the table's first row)
        ends; None if no more than that are left, or the server cannot cut the table. `since` as
        for `chunk`; `StructureMoved`, `TableError` and `TableBusy` as for `snapshot`."""

    def chunk(
        self,
        schema: TableSchema,
        rows: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> AbstractContextManager[TableSnapshot]:
        """Read only the rows of a range, else as `snapshot`; unless `exact`, perhaps from a
        replica, with a `low` that is not before `since`. It gives way to a statement that waits to
        alter the table, as `snapshot.pace` says, with `TableBusy`. A range of the whole table
        is given up after `most_seconds`, also with `TableBusy`. `StructureMoved` also if the table
        is cut by other columns than the range."""

    def rows_where(
        self,
        schema: TableSchema,
        condition: Condition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> AbstractContextManager[ConditionSnapshot]:
        """Read only the rows for which a condition holds, else as `snapshot`. It gives way as
        `chunk` of the whole table does. `ConditionRefused` if the server refuses the condition."""

    def estimated_where(self, table: TableName, condition: Condition) -> int:
        """Return the server's estimate of the rows for which the condition holds;
        `ConditionRefused` if the server refuses it, or does not have the table."""

    def source_load(self) -> SourceLoad:
        """Return the load on the server at this moment."""

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        """Return the server's estimate of each table's rows; unknown tables are left out."""

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        """Return the server's estimate of the bytes of each table's rows."""


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A base table of the source, to be shown; `rows` is the server's estimate."""

    name: TableName
    engine: str
    rows: int
    primary_key: tuple[str, ...]
