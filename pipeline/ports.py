"""The ports: what the steps of a run ask of the outside world.

Each Protocol is a contract: when a method is called, in what order, what may repeat,
and what is durable when it returns. Adapters live in `resources`, twins for tests in
`resources.memory`; one contract suite per port runs against all of them. Adapters raise
`pipeline.errors` only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.batch import (
    Batch,
    CaptureRecord,
    ChangeType,
    Cursor,
    Decision,
    Gap,
    Intent,
    Lease,
    LeaseView,
    Override,
    Prepared,
    RecordedDecision,
    Segment,
    SegmentFile,
    SetAside,
    SettledWrite,
    SnapshotPart,
    TableEvent,
    TableOrder,
    TableState,
    VersionSetEntry,
    Xid,
)
from pipeline.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates, Lineage, LogFile, Position
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.schema.model import DatabaseSchema, TableSchema
from pipeline.survey import Survey
from pipeline.table import TableName, TableStructure

# -- the source ------------------------------------------------------------------


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
    purged. `standby`: the source's standby answered.
    """

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


@dataclass(frozen=True, slots=True)
class Received:
    """What a socket gave: `data[begin:end]`. The bytes before `begin`, 64 KiB of them, may
    be written over; all of it is the dump's again at its next step."""

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
    missing, one that was altered may be as it never was.
    """

    tables: tuple[TableSchema, ...]
    databases: tuple[DatabaseSchema, ...]
    low: Coordinates
    high: Coordinates
    low_set: str
    high_set: str


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """One table's rows in one consistent read, while it is open.

    Whatever was committed before `low` (the transactions of `low_set`, where the server
    has GTIDs) is in `batches`, and nothing that was committed behind `high`: the rows, and
    then every change behind `low` over them, key by key, are the table from `high` on.
    `exact`: nothing that concerns the table was committed between; `low` is `high` then,
    and the changes behind it are all that is missing, also for a table without a key.
    `batches` can be read once; each has the columns of `schema`, in no particular order of
    rows. Reading raises what `SourceServer.snapshot` raises.
    """

    table: TableName
    schema: pa.Schema
    low: Coordinates
    high: Coordinates
    low_set: str
    high_set: str
    exact: bool
    batches: Iterator[pa.RecordBatch]


class SourceServer(Protocol):
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

    def tables(self) -> list[SourceTable]:
        """All base tables this account can see, system databases left out, sorted."""

    def rows(self, structure: TableStructure) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """The table's rows in one consistent read, columns typed by `schema.types`."""

    def structure(self, table: TableName) -> TableStructure:
        """The table's structure now, from information_schema; `NothingMatches` where the
        account sees no such table."""

    def structures(self) -> list[TableStructure]:
        """The structure of every table in `tables`, in a bounded number of questions."""

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        """Every base table this account can see and every database, system ones left out,
        or those of `names` that there are; in a bounded number of questions."""

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
        its structure until the snapshot is closed, whoever alters it waits. `StructureMoved`
        where it is built otherwise, or gone; `TableError` for a value no Arrow type holds.
        """


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A base table of the source, for looking at: rows are the server's estimate."""

    name: TableName
    engine: str
    rows: int
    primary_key: tuple[str, ...]


CHANGE_TYPES = (
    ChangeType.INSERT,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.DELETE,
)
"""What `RowImages.change_type` counts in."""


@dataclass(frozen=True, slots=True)
class RowImages:
    """Decoded row images of one table, in order of event and row.

    `columns`: the table's columns (`schema.types.arrow_schema`), one row per image.
    `event`: int32, index of the image's event in what was decoded. `row`: int32, the
    row's index within its event; an update's two images share it. `change_type`: int8,
    index into `CHANGE_TYPES`. `softened`: values replaced by NULL by policy, per column.
    """

    columns: pa.RecordBatch
    event: pa.Int32Array
    row: pa.Int32Array
    change_type: pa.Int8Array
    softened: Mapping[str, int]


# -- the ledger ------------------------------------------------------------------


class Ledger(Protocol):
    """The books. Each writing method is one transaction that checks the lease's token
    (`LeaseLost` if an other run took over) and is refused whole (`LedgerRefused`) when
    it is out of order. Connection trouble is `LedgerUnavailable`.

    Order within a run: `lock` → `begin_batch` → `record_capture` → per table
    `open_intent` → `settle` → `mark_merged` → `acknowledge`. Any step may be the first
    that a new process makes: it asks the ledger, never its own memory.
    """

    def lock(
        self, source: str, holder: str, dagster_run: str | None
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at
        once. The lock goes with the connection; leaving the context releases both."""

    def lease(self, source: str) -> LeaseView | None:
        """The newest lease of a source, whoever holds it; None before the first."""

    def captured_cursor(self, source: str) -> Cursor | None: ...

    def acknowledged_cursor(self, source: str) -> Cursor | None: ...

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        """The newest batches, newest first, abandoned ones among them."""

    def unfinished(self, source: str) -> list[Batch]:
        """Batches that are capturing, captured or merged, oldest first."""

    def segments(self, batch: int) -> list[Segment]:
        """Segments of a batch, in the order they were recorded."""

    def table_states(self, source: str) -> dict[TableName, TableState]: ...

    # The history of structures. Versions and statements of abandoned batches are not seen,
    # except by their number; numbers are never given twice.

    def has_history(self, source: str) -> bool:
        """Whether some live batch recorded a baseline."""

    def last_versions(self, source: str) -> dict[TableName, int]:
        """Each table's highest number so far, those of abandoned batches among them; the
        next version's is one more."""

    def schema_at(
        self, source: str, table: TableName, *, batch: int, place: Coordinates
    ) -> SchemaVersion | None:
        """What holds for the table at a place that the batch read: the newest version of
        this batch up to the place, or of a batch before it; also one that says dropped or
        unknown. None where nothing was recorded."""

    def schemas_at(self, source: str, *, batch: int, place: Coordinates) -> list[SchemaVersion]:
        """What holds there for each table, by name; dropped ones left out."""

    def newest_schema(self, source: str, table: TableName) -> SchemaVersion | None:
        """The table's newest version; also one that says dropped or unknown."""

    def newest_schemas(self, source: str) -> list[SchemaVersion]:
        """Each table's newest version, by name; dropped ones left out."""

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        """The version of that number, whatever became of its batch; `LedgerRefused` where
        there is none."""

    def schema_versions(self, source: str, table: TableName) -> list[SchemaVersion]:
        """All versions of the table, in the order of their places."""

    def databases(self, source: str) -> list[DatabaseVersion]:
        """Each database's newest version, by name; dropped ones left out."""

    def databases_at(self, source: str, *, batch: int, place: Coordinates) -> list[DatabaseVersion]:
        """What holds there for each database, by name; dropped ones left out."""

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        """Statements with an id above `after`, in the order of the log as it was read."""

    def statement(self, source: str, number: int) -> SchemaStatement:
        """The statement of that id; `LedgerRefused` where there is none."""

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        """The newest live captured batch from that server with the place between its start
        and its end, both included."""

    def table_events(self, source: str, batch: int) -> list[TableEvent]:
        """What happened to tables in a batch, each table's in order."""

    def snapshots(self, source: str, batch: int) -> list[SnapshotPart]:
        """The tables that a batch's capture read from the source, by name."""

    # What people order.

    def pause_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        """active → paused, at once; the table stops where the captures are, and what of it
        is not merged waits until it is resumed."""

    def resume_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        """Have a paused table caught up by the next capture; open until then."""

    def release_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
    ) -> TableOrder:
        """Have a quarantined table caught up by the next capture; open until then.
        `schema`: the structure it has from where it stopped. Given again before that, the
        newer one takes its place."""

    def open_orders(self, source: str) -> list[TableOrder]:
        """Orders that no live batch carried out, oldest first."""

    def open_prepared(self, source: str) -> list[Prepared]:
        """Prepared XA transactions that some live batch recorded and no live batch ended."""

    def ended_prepared(self, batch: int) -> list[Prepared]:
        """Prepared XA transactions that this batch ended; none if it was abandoned."""

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        """Record a decision that makes no batch (a refusal, an idle run) or that the
        next `begin_batch` refers to."""

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]: ...

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        """Record an operator's one-shot choice; it takes the place of one still open."""

    def open_override(self, source: str) -> Override | None:
        """The newest choice, until a live batch was begun by it."""

    def gaps(self, source: str) -> list[Gap]:
        """What no batch read, by whose choice, oldest first."""

    def lineage(self, source: str) -> Lineage:
        """The servers the source was read from, in order."""

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        """The newest live batch that a Dagster run captured; its id may be shortened."""

    def reaching(self, source: str, server_uuid: str, moment: datetime) -> Batch | None:
        """The first captured batch from that server whose last commit is at or after the
        moment: the time index."""

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
    ) -> Batch:
        """Open a *capturing* batch: exactly one of `predecessor` (whose end is its
        start) and `start_decision`, which may follow a batch (`Decision.follows`). The
        answer has its id and sequence base."""

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """capturing → captured: segments, history, tables, events, snapshots, prepared
        transactions (new and ended ones), orders carried out and end at once."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """capturing, or captured with no table merged → abandoned; the newest first."""

    def set_aside(self, lease: Lease, set_aside: SetAside) -> None:
        """active → quarantined, outside a capture; repeating it changes nothing."""

    def pending(self, source: str) -> dict[TableName, list[int]]:
        """For each active or dropped table: captured batches with segments or events of it
        that no settled write covers, oldest first; and those that a table missed while
        it had stopped, whatever their state."""

    def open_intents(self, source: str) -> list[Intent]: ...

    def open_intent(
        self,
        lease: Lease,
        table: TableName,
        *,
        app_id: str,
        first_batch: int,
        last_batch: int,
        step: str,
    ) -> Intent:
        """Commit to a write; its `txn_version` comes from a ledger sequence. At most
        one open intent per table."""

    def settle(
        self, lease: Lease, intent: Intent, delta_version: int, *, shows: int | None = None
    ) -> None:
        """The intent's commit was read back from the lake at that version; `shows`: the
        schema version that the mirror has since, None for the one it had."""

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        """Settled writes that cover a batch."""

    def last_settled(self, source: str, app_id: str) -> SettledWrite | None:
        """The newest settled write of an application id; None before the first."""

    def mark_merged(self, lease: Lease) -> list[int]:
        """captured → merged for every batch, oldest first, all of whose tables have a
        settled write or are set aside; the ids moved."""

    def acknowledge(self, lease: Lease, batch: int) -> None:
        """merged → acknowledged, in order, and record the version set: each active
        table's newest settled write up to this batch."""

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]: ...


# -- row events that do not fit into memory, or have to wait ------------------------


class EventFile(Protocol):
    """A file of row events (`pipeline.binlog.spill`): written forward, read anywhere."""

    def write(self, data: bytes | memoryview) -> None: ...

    def read(self, at: int, count: int) -> bytes:
        """So many bytes from there; `SegmentsLost` if they are not there."""

    def close(self) -> None:
        """Done with it. A scratch file is gone then."""


class Spool(Protocol):
    """Where row events wait. Full disks are `LakeUnavailable`."""

    def scratch(self) -> EventFile:
        """A file that lives no longer than this process."""

    def prepared(self, source: str, batch: int, number: int) -> EventFile:
        """A new file for the batch's so-manieth prepared transaction."""

    def seal(self, file: EventFile) -> SegmentFile:
        """Make a prepared file and its folder durable, and close it."""

    def open(self, source: str, file: SegmentFile) -> EventFile:
        """A sealed file; `SegmentsLost` if it is missing or not what was sealed."""

    def discard(self, source: str, batch: int) -> int:
        """Delete the files that a batch prepared; how many."""

    def remove(self, source: str, file: SegmentFile) -> None:
        """Delete a sealed file whose transaction was ended, once the batch that ended it
        is acknowledged: an earlier end may be abandoned and the file needed again.
        Repeating it changes nothing."""


# -- the lake --------------------------------------------------------------------


class SegmentWriter(Protocol):
    """One segment being written; files roll over by size. Not durable before `close`.

    Writing may go on after `write` returned; what goes wrong then is raised by a later call.
    """

    def write(self, changes: pa.Table) -> None:
        """Row images enough for a row group, or all there are."""

    def cut(self) -> int:
        """End the file at hand: what follows goes to files of its own. How many there are."""

    def drop(self, files: int) -> None:
        """Delete what was written behind the first so many files, as `cut` counted them."""

    def close(self) -> tuple[SegmentFile, ...]:
        """Finish the files and make them and their folder durable (fsync)."""


class SegmentStore(Protocol):
    """Parquet files in the changelog's folders, not yet part of any Delta table.

    `folder` is a `TableState.changelog`. File names carry the batch id, so that an
    abandoned batch's files are found without a list of them.
    """

    def open(
        self, folder: str, *, batch: int, schema_version: int, schema: pa.Schema
    ) -> SegmentWriter: ...

    def damaged(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        """What is wrong with files that should be there (missing, other size, other
        checksum), a sentence each; empty when all are intact."""

    def read(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The files' row images in order, `columns` of them or all."""

    def unpacked(self, folder: str, files: Iterable[SegmentFile]) -> int:
        """Bytes of the files' values before compression, without reading them."""

    def discard(self, source: str, batch: int) -> int:
        """Delete every file of a batch below the source's changelogs; how many."""

    def remove(self, folder: str, files: Iterable[SegmentFile]) -> None:
        """Delete files that no table shows and nobody reads again. Repeating it changes
        nothing."""


@dataclass(frozen=True, slots=True)
class Published:
    """A changelog's Delta version after publishing; `skipped` when the batch was there."""

    delta_version: int
    skipped: bool


class Changelog(Protocol):
    """Changelog Delta tables; only metadata commits, no data moves, no JVM."""

    def recorded(self, folder: str, app_id: str) -> int | None:
        """The newest batch published under `app_id`; None before the first."""

    def publish(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
        user_metadata: str,
    ) -> Published:
        """Add the files as application transaction (app_id, batch); creates the table
        at its first batch, and adds the columns of `schema` that it lacks (a commit before).
        `TableError` for a column of another type: see `changes.generations`. A recorded
        version ≥ batch means it was done: skipped. A concurrent commit is read again and
        retried, then `CommitConflict`."""


@dataclass(frozen=True, slots=True)
class PartColumn:
    """Where files get a mirror's column from: their column `source`, of Arrow type `type`,
    which is cast; or `value` for every row. Neither: the files do not know the column.
    A row then keeps what the mirror has, and a new row has NULL."""

    source: str | None = None
    type: pa.DataType | None = None
    value: pa.Scalar | None = None

    @property
    def absent(self) -> bool:
        return self.source is None and self.value is None


@dataclass(frozen=True, slots=True)
class Part:
    """Parquet files of one structure: absolute paths, and a column for each of the
    write's schema, in its order. Of row images only those count whose `_sequence` is above
    `above`."""

    files: tuple[str, ...]
    columns: tuple[PartColumn, ...]
    above: int = 0


@dataclass(frozen=True, slots=True)
class MirrorWrite:
    """One write to a mirror: rows to append, changes to merge, or all it shall hold.

    `files` are absolute paths of Parquet files whose columns are `schema`'s, spelled as a
    changelog spells them (`layout.changelog_names`); `parts` are files of other structures.
    `mode`

    - "append": row images whose table columns become new rows.
    - "merge": one image per key, `_change_type` telling upsert (insert,
      update_postimage) from delete; `files` only. `kept`: columns with a mark of their own
      there, true where the mirror's value stays (`layout.keep_names`).
    - "fold": row images, any number per key, which the lake folds to the last one in the
      order of `_sequence` before it merges. Without a `key`: copies are counted.
    - "replace": the mirror holds the rows of `snapshot` with the row images folded on top,
      and nothing else; also with other columns than before. Nothing of either: no rows.

    `schema`: the mirror's columns, without `_deleted_at`. `key` () is a table without one:
    "append", "fold" and "replace" only. `bounds`: the least and greatest value of leading
    key columns, where known, as SQL literals for the ON clause. `deletes` "soft": the row
    of a delete stays, with the commit's moment in `_deleted_at` (files of "merge" have
    `_committed_at` then); "append" is for mirrors that hold no such row; a "replace" marks
    rows that are gone with `moment`. `readers` "any": a mirror that this write creates has
    no deletion vectors.
    """

    mirror: str
    mode: str
    files: tuple[str, ...]
    schema: pa.Schema
    key: tuple[str, ...]
    app_id: str
    txn_version: int
    user_metadata: str
    bounds: tuple[tuple[str, str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    snapshot: tuple[Part, ...] = ()
    kept: tuple[str, ...] = ()
    deletes: str = "remove"
    moment: datetime | None = None
    readers: str = "spark"


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Switch properties of the mirror's Delta table on."""

    properties: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "set " + ", ".join(f"{name} = {value}" for name, value in self.properties)


@dataclass(frozen=True, slots=True)
class DropColumns:
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "drop " + ", ".join(self.names)


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    to: str

    def __str__(self) -> str:
        return f"rename {self.name} to {self.to}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return f"widen {self.name} to {self.type}"


@dataclass(frozen=True, slots=True)
class AddColumns:
    """New columns at the end, NULL in every row."""

    fields: pa.Schema

    def __str__(self) -> str:
        return "add " + ", ".join(f"{field.name} {field.type}" for field in self.fields)


@dataclass(frozen=True, slots=True)
class Fill:
    """One value per column for all rows there are."""

    values: tuple[tuple[str, pa.Scalar], ...]

    def __str__(self) -> str:
        return "fill " + ", ".join(f"{name} with {value}" for name, value in self.values)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """All rows once more, under `schema`: per column the mirror's column it is cast from,
    or a value."""

    schema: pa.Schema
    columns: tuple[PartColumn, ...]

    def __str__(self) -> str:
        told = (
            f"{field.name} {field.type} from {column.source or column.value}"
            for field, column in zip(self.schema, self.columns, strict=True)
        )
        return "rewrite " + ", ".join(told)


MirrorStep = SetProperties | DropColumns | RenameColumn | WidenColumn | AddColumns | Fill | Rewrite
"""One commit of a mirror that changes its columns; `str` says what it does, in words that
a repeated try finds in the history."""


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """A commit read back from a mirror's log."""

    delta_version: int
    user_metadata: str


class Mirrors(Protocol):
    """Mirror Delta tables, written by Spark, read back without it."""

    def require_ready(self) -> None:
        """Raise what would keep Spark from starting (`JavaMissing`, `SetupIncomplete`),
        without starting it."""

    def prepare(self) -> None:
        """Begin starting Spark in the background; repeating it changes nothing."""

    def recorded(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        """The commit that recorded (app_id, txn_version), from the table's log, no JVM;
        None if there is none. A higher recorded version without ours is
        `ForeignCommit`."""

    def write(self, write: MirrorWrite) -> MirrorCommit:
        """Apply the write once: create the mirror if need be, commit with
        txnAppId/txnVersion and userMetadata, read the commit back and require it to be
        ours. Safe to call from several threads for different mirrors. A transaction
        already recorded is not applied again; the commit that recorded it is returned."""

    def evolve(
        self,
        mirror: str,
        steps: Sequence[MirrorStep],
        *,
        app_id: str,
        txn_version: int,
        after: int,
    ) -> tuple[MirrorCommit, ...]:
        """Carry the steps out in their order, a commit each, whose userMetadata names it
        by application, transaction and number; the commits.

        A step is done iff a commit behind Delta version `after` says so, never because the
        columns look right. `ForeignCommit` where that commit did something else: the steps
        of a transaction are the same at every try. `CommitConflict` as in `write`. `Fill`
        and `Rewrite` record (`<app_id>/evolve`, txn_version) besides."""

    def schema(self, mirror: str, version: int) -> pa.Schema:
        """The mirror's columns at a Delta version, in its order, no JVM; `_deleted_at`
        included where there is one."""

    def stage(self, name: str, changes: pa.Table) -> str:
        """Write folded changes to a staging file; its absolute path."""

    def unstage(self, path: str) -> None:
        """Delete a staging file; missing is no error."""

    def path(self, relative: str) -> str:
        """A lake path as an absolute one."""

    def version(self, mirror: str) -> int | None:
        """The mirror's newest Delta version; None where there is no table."""

    def rows(self, mirror: str, columns: Sequence[str], version: int) -> Iterator[pa.RecordBatch]:
        """All rows of the mirror at a version, deletion vectors honoured; no JVM, except
        for a mirror with widened columns."""


# -- the changelog's consumers ---------------------------------------------------------


class Consumers(Protocol):
    """Named consumers of a source's changelog, each with a cursor of its own.

    No lease is needed. Each call is one transaction that holds the consumer it names, so
    processes may share a name. `ConsumerUnknown` where there is none of that name;
    `ConsumerRefused` for a step out of order, which changes nothing.
    """

    def consumers(self, source: str) -> list[Consumer]:
        """Those that are not dropped, by name."""

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        """A new one; the source need not have been captured yet."""

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        """A person gives a consumer up, and what it holds back. Its deliveries end with
        it; a later one of that name is another."""

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        """The acknowledged batches behind the last delivery, within the bounds; None
        without any. It is out until it ends."""

    def deliveries_out(self, source: str, name: str) -> list[Delivery]:
        """Neither acknowledged nor rolled back, oldest first."""

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        """out → acknowledged, the oldest first; moves the cursor to its end."""

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        """out → rolled back: this delivery and later ones, or all; their ids, ascending.
        Their batches are delivered again."""

    def retention_floor(self, source: str) -> int | None:
        """The oldest batch that some consumer still needs: files of this one and of later
        batches, captured already or not, are to be kept. None without consumers."""
