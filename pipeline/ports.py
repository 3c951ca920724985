"""The ports: what the steps of a run ask of the outside world.

Each Protocol is a contract: when a method is called, in what order, what may repeat,
and what is durable when it returns. Adapters live in `resources`, twins for tests in
`resources.memory`; one contract suite per port runs against all of them. Adapters raise
`pipeline.errors` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    TableState,
    TableVersion,
    VersionSetEntry,
    Xid,
)
from pipeline.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates, Lineage, LogFile, Position
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

    def newest_versions(self, source: str) -> dict[TableName, TableVersion]: ...

    def table_version(self, source: str, table: TableName, version: int) -> TableVersion: ...

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
        """capturing → captured: segments, versions, tables, prepared transactions (new
        and ended ones) and end at once."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """capturing, or captured with no table merged → abandoned; the newest first."""

    def set_aside(self, lease: Lease, set_aside: SetAside) -> None:
        """active → quarantined, outside a capture; repeating it changes nothing."""

    def pending(self, source: str) -> dict[TableName, list[int]]:
        """For each active table: captured batches with segments of it that no settled
        write covers, oldest first."""

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

    def settle(self, lease: Lease, intent: Intent, delta_version: int) -> None:
        """The intent's commit was read back from the lake at that version."""

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        """Settled writes that cover a batch."""

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
        at its first batch. A recorded version ≥ batch means it was done: skipped. A
        concurrent commit is read again and retried, then `CommitConflict`."""


@dataclass(frozen=True, slots=True)
class MirrorWrite:
    """One write to a mirror: rows to append, or changes to merge.

    `files` are absolute paths of Parquet files whose columns are spelled as a changelog
    spells them (`layout.changelog_names`). `mode` "append": row images whose table
    columns become new rows. "merge": one image per key, `_change_type` telling upsert
    (insert, update_postimage) from delete. "fold": row images, any number per key, which
    the lake folds to the last one in the order of `_sequence` before it merges. `bounds`
    are the least and greatest value of leading key columns, where known, as SQL literals
    for the ON clause.
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

    def stage(self, name: str, changes: pa.Table) -> str:
        """Write folded changes to a staging file; its absolute path."""

    def unstage(self, path: str) -> None:
        """Delete a staging file; missing is no error."""

    def path(self, relative: str) -> str:
        """A lake path as an absolute one."""

    def version(self, mirror: str) -> int | None:
        """The mirror's newest Delta version; None where there is no table."""

    def rows(self, mirror: str, columns: Sequence[str], version: int) -> Iterator[pa.RecordBatch]:
        """All rows of the mirror at a version, no JVM, deletion vectors honoured."""


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
