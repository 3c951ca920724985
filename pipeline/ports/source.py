"""What a run asks of the source: facts, its log, its structures, its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.batch import Xid
from pipeline.gtid import GtidSet
from pipeline.ports.compared import ComparedServer
from pipeline.position import Coordinates, LogFile, ServerLife
from pipeline.schema.model import DatabaseSchema, TableSchema
from pipeline.snapshot.bounds import Bound, Range
from pipeline.snapshot.condition import Condition
from pipeline.snapshot.giving_way import PIECE_SECONDS
from pipeline.snapshot.pace import SourceLoad
from pipeline.survey import Survey
from pipeline.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class BinlogSize:
    """A log file the server lists, with its size in bytes at that moment."""

    file: LogFile
    size: int


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the source said of itself in one round of questions.

    `gtid_executed` is read before `head`, so it never names what lies beyond it.
    `settings` holds global variables by lower-case name. `read_at` is the server's clock.
    MariaDB has no server_uuid (`server-id:<id>` stands for it), always GTIDs, its binlog
    state as what was executed, and the list at the head of its oldest file as what was
    purged. `standby`: the source's standby answered. As JSON it is what decisions keep of it.
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
    life: ServerLife | None = None

    def size_of(self, file: LogFile) -> int | None:
        """Bytes of a file of the log; None if the server does not list it."""
        return next((log.size for log in self.binlogs if log.file == file), None)

    def lists(self, file: LogFile) -> bool:
        """Whether the log still has the file."""
        return self.size_of(file) is not None


@dataclass(frozen=True, slots=True)
class Received:
    """What a socket gave: `data[begin:end]`. The bytes before `begin`, of a dump 64 KiB of
    them, may be written over; all of it is the sender's again at its next step."""

    data: npt.NDArray[np.uint8]
    begin: int
    end: int


class BinlogDump(Protocol):
    """A bounded stream of packets from one connection; never reconnects.

    Iterating gives the packets' bytes as they come, cut anywhere: the answer to
    COM_BINLOG_DUMP, numbered from 1. It waits for more until it is closed, so whoever
    reads must stop at the packet that ends the stream. A silent peer is
    `SourceUnavailable` within the read timeout.
    """

    @property
    def begins(self) -> Coordinates | None:
        """Where the stream begins; None for a dump after a GTID set."""

    def __iter__(self) -> Iterator[Received]: ...

    def close(self) -> None:
        """End the connection; called once, also after an error."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Structures as they were read from the server, between two places of its log.

    Whatever was committed before `low` is in them, and nothing that was committed behind
    `high`: where the log has no statement on a table between the two, its structure is the
    one of either place and of every one between. `low_set` and `high_set` are the GTIDs
    executed then, empty where the server has none: a statement with a GTID of `low_set`
    is in what was read, wherever it stands. A table that was dropped meanwhile may be
    missing, one that was altered may be as it never was. `unread`: tables that are there, and
    that the account may not see or read all of, each with what it lacks.
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
    """Some tables as information_schema shows them now; `head` is the log's end, read behind that:
    no statement that changed what is shown stands behind it, except one that is not logged yet.
    `server_uuid`: of the server that answered, as in `ServerFacts`."""

    tables: Mapping[TableName, TableSchema]
    head: Coordinates
    server_uuid: str


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """One table's rows in one consistent read, while it is open.

    Whatever was committed before `low` (the transactions of `low_set`, where the server
    has GTIDs) is in `batches`, and nothing that was committed behind `high`: the rows, and
    then every change behind `low` over them, key by key, are the table from `high` on.
    `exact`: nothing that concerns the table was committed between; `low` is `high` then,
    and the changes behind it are all that is missing, also for a table without a key.
    `batches` can be read once; each has the columns of `schema`, in no particular order of
    rows, and at least one row: at most 10,000 (fewer of a table of more than some 400 columns),
    and none that begins behind 32 MiB of a batch's bytes as they come, so that memory stays
    flat but for one large row. They are views of nothing: whoever has one keeps it. Reading raises
    what `SourceServer.snapshot` raises.

    `prepared`: XA transactions that may have been prepared before `low` and are not in
    `batches`: their rows stand in the log before `low`, their commit behind it, or is still to
    come. Maybe others besides. None where nobody can say: the account may not ask.
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
    """The rows of a table that a condition holds for, and its rows by their keys, in one
    consistent read, while it is open. `by_keys`, once `rows` is read to its end: the keys of rows
    among which are all of those that there are of the keys given, which have the columns of one
    key, by whose values rows can be asked for (`snapshot.bounds`), and no NULL."""

    rows: TableSnapshot
    by_keys: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]


class SourceServer(ComparedServer, Protocol):
    """One MySQL server. Every call may open a connection of its own."""

    def facts(self) -> ServerFacts: ...

    def survey(self) -> Survey:
        """A close look, in a bounded number of questions; what the account may not see is
        named in it. Works where `facts` is refused for a privilege or a setting."""

    def dump(self, start: Coordinates) -> BinlogDump:
        """A dump from `start`, which must be the beginning of an event; or, where a server
        cannot begin that far in a file, from its beginning (`BinlogDump.begins`)."""

    def dump_after(self, executed: GtidSet) -> BinlogDump:
        """A dump of every transaction that is not in the set."""

    def prepared(self) -> frozenset[Xid]:
        """XA transactions that are prepared now; none where the account may not ask."""

    def tables(self) -> list[ListedTable]:
        """All base tables this account can see, system databases left out, sorted."""

    def engines(self) -> dict[TableName, str]:
        """The engine of each table in `tables`, asked for in one short question; '' for none."""

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        """What is written about the columns of these tables now, by table and column; for people:
        no structure has them."""

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """What is written about these tables; those without are left out."""

    def rows(self, structure: TableStructure) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """The table's rows in one consistent read, columns typed by `schema.types`, in batches as
        `TableSnapshot` has them; `TableError` as for `snapshot`."""

    def structure(self, table: TableName) -> TableStructure:
        """The table's structure now, from information_schema; `NothingMatches` where the
        account sees no such table."""

    def structures(self) -> list[TableStructure]:
        """The structure of every table in `tables`, in a bounded number of questions."""

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        """Every base table this account can see and every database, system ones left out,
        or those of `names` that there are; in a bounded number of questions. Values of defaults
        that their texts do not tell are asked for, where the account may SELECT. Of one table:
        `TableError` where it is there, and cannot be looked at."""

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        """Those of the tables that the account sees, without their foreign keys, in a bounded
        number of questions. A table that is altered at this moment may be as it never was, or
        missing."""

    def is_view(self, name: TableName) -> bool:
        """Return whether a view, or on MariaDB a sequence, has that name now; False if the account
        may not see it."""

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        """One table, while nobody can alter it: all that changed it and is logged stands before
        `head`. None in `tables` if the server does not have it. `TableBusy` if others do not let
        it be locked for reading, `TableError` if the account may not read all its columns."""

    def empty(self, tables: Collection[TableName]) -> frozenset[TableName]:
        """Those of the tables that have no row, each at some moment of this call; one that
        cannot be read is not among them."""

    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> AbstractContextManager[TableSnapshot]:
        """One consistent read of a table that is built as `table` says, or of its primary
        key and these columns, typed by `schema.types` and equal to what the log says.

        `exact`: wait for a moment in which nothing is committed, or lock the table for
        one; it is tried for a few seconds, and `TableSnapshot.exact` tells. The table keeps
        its structure until the snapshot is closed; it is closed for whoever waits to alter it.
        `StructureMoved` where it is built otherwise, or gone; `TableError` for a value no Arrow
        type holds, for what the server refuses of it, and for a warning that may stand for another
        value (`TableBusy` where others keep it from being read now, or it gave way to them).
        """

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        """Where the chunk of so many rows behind `after` (None: the table's first) ends; None
        where no more than that are left, and where the server cannot cut the table. `since`: as
        for `chunk`.
        `StructureMoved`, `TableError` and `TableBusy` as for `snapshot`."""

    def chunk(
        self,
        schema: TableSchema,
        rows: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> AbstractContextManager[TableSnapshot]:
        """As `snapshot`, of the rows of a range alone, and unless `exact` perhaps of a replica:
        `since` is a place of the log that `low` is not before. It gives way to who waits to alter
        the table, as `snapshot.giving_way` says: `TableBusy` then. A range of all the table is left
        after `most_seconds`, with `TableBusy`. `StructureMoved` also where the table is
        cut by other columns than the range."""

    def rows_where(
        self,
        schema: TableSchema,
        condition: Condition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> AbstractContextManager[ConditionSnapshot]:
        """As `snapshot`, of the rows alone that a condition holds for. It gives way as `chunk` of
        all the table does. `ConditionRefused` for a condition that the server does not take."""

    def estimated_where(self, table: TableName, condition: Condition) -> int:
        """For about how many rows of a table the condition holds, as the server guesses;
        `ConditionRefused` for one that it does not take, or for a table that it does not have."""

    def source_load(self) -> SourceLoad:
        """What the server has to do at this moment."""

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        """How many rows each of the tables has, as the server guesses; those it does not know are
        left out."""

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        """The same of the bytes that their rows take at the server."""


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A base table of the source, for looking at: rows are the server's estimate."""

    name: TableName
    engine: str
    rows: int
    primary_key: tuple[str, ...]
