"""The port to the ledger: Lockstep's database in Postgres. It records, for each source,
the batches (the parts of the log that runs captured), the tables' states, and the
writes to the lake.

Each subject has a Protocol; `Ledger` has all of them but `Consumers`, the named readers
of changelogs (`pipeline.values.consumers`). *Live* batches are those that are not
abandoned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from lockstep.pipeline.catalog import RecordedEntry, Registrations
from lockstep.pipeline.model.batch import (
    Batch,
    BatchContent,
    BatchKind,
    BatchState,
    BatchTimes,
    CaptureRecord,
    Cursors,
    PreparedTransaction,
    RequestCounts,
    RunsOutsideDagster,
    SpecialBatches,
    TableContent,
    WritesOutsideDagster,
)
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.life import MirrorEvent
from lockstep.pipeline.model.load import ChunkRows, Load, LoadBasis
from lockstep.pipeline.model.table_state import (
    Extent,
    OrderKind,
    StoppedTable,
    Supplier,
    TableOrder,
    TableState,
)
from lockstep.pipeline.proof.proven import ComparisonRecord, ComparisonResult
from lockstep.pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.upkeep.changes import (
    ChangeFile,
    DeletableChanges,
    DeletionNotes,
    DeletionStep,
    PrunableRows,
    PruneResult,
)
from lockstep.pipeline.upkeep.clearing import (
    ClearedFile,
    ClearedLedgerRows,
    Tightening,
    UnclearedValues,
)
from lockstep.pipeline.values.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds
from lockstep.pipeline.values.decisions import (
    START_KIND,
    STRUCTURES_KIND,
    Attempt,
    AttemptOutcome,
    Continuity,
    Decision,
    Lease,
    LeaseView,
    LogEnd,
    Override,
    RecordedDecision,
    UnprovenStructures,
)
from lockstep.pipeline.values.intent import (
    Intent,
    MirrorVersion,
    NewestWrites,
    RecordedVersionSet,
    SettledWrite,
)
from lockstep.pipeline.values.position import (
    Coordinates,
    LogFile,
    Position,
    ServerPeriod,
    SetAnchor,
)
from lockstep.pipeline.values.segment import RevisedSegment, Revision, Revisions
from lockstep.pipeline.values.table import CaptureScope, TableName

LAST_BATCH: Final = (1 << 63) - 1
"""A batch number after all others."""

LAST_PLACE: Final = Coordinates(LogFile("", (1 << 31) - 1), (1 << 63) - 1)
"""A place of the log after all others: a question about it is answered with the newest
version."""


class Leases(Protocol):
    """Leases, each of which is the right of one process to write for a source, and what
    was done under them."""

    # -- the lock, and who has it ------------------------------------------------------

    def lock(
        self, source: str, holder: str, run_id: str | None, *, in_dagster: bool = False
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at
        once. `run_id`: the run's id, or None for a command that is not a run;
        `in_dagster`: Dagster started the run and records it. Postgres releases the lock
        when the connection ends; leaving the context releases lock and lease."""

    def require_held(self, lease: Lease) -> None:
        """Raise `LeaseLost` if another run took over, or the lock is known to be lost.
        Records nothing."""

    def require_not_lost(self, lease: Lease) -> None:
        """Raise `LeaseLost` if this process already knows that its lock is lost; makes
        no query, so that long work can call it often."""

    def require_writable(self) -> None:
        """Raise a `LockstepError` if nothing can be recorded: the server is read-only,
        or the account may not write."""

    def newest_lease(self, source: str) -> LeaseView | None:
        """Return the newest lease of a source, whoever holds it; None before the
        first."""

    def run_before(self, lease: Lease) -> LeaseView | None:
        """Return the newest lease before this one that belonged to a run, not to
        another command."""

    # -- clients of a Spark Connect server ---------------------------------------------

    # The server continues a statement of a killed client, so the next run ends it.

    def spark_clients(self, source: str) -> list[UUID]:
        """Return the clients that may still have statements at the server, oldest
        first."""

    def note_spark_client(self, lease: Lease, client: UUID) -> None:
        """Record that a client may have statements at the server from now on. Repeating
        it changes nothing."""

    def forget_spark_client(self, lease: Lease, client: UUID) -> None:
        """Record that a client has no statements at the server any more. Repeating it
        changes nothing."""

    # -- runs of the command line, which Dagster does not record -----------------------

    # `after` (excluded) and `through` (included) are tokens of leases. Nothing is
    # recorded under a lease once the next one was taken.

    def runs_outside_dagster(
        self, source: str, after: int, through: int, *, all_runs: bool = False
    ) -> RunsOutsideDagster:
        """Return how many of these runs there were, and what they captured; other
        commands are not counted. `all_runs`: also count runs that Dagster started."""

    def writes_outside_dagster(
        self,
        source: str,
        after: int,
        through: int,
        beyond: TableName | None,
        most: int,
        *,
        all_runs: bool = False,
    ) -> list[WritesOutsideDagster]:
        """Return the writes of these runs, one entry for each table, by table name: at
        most `most` tables, beginning after the table `beyond`. Writes of a killed run
        that Dagster started are included: Dagster may not have recorded them."""


class Decisions(Protocol):
    """Decisions of runs, among them the ends of runs that made no batch, and choices of
    persons. A recorded decision is never changed."""

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        """Record a decision that makes no batch (a refusal, an idle run) or that the
        next `begin_batch` refers to."""

    def decisions(self, source: str, *kinds: str, limit: int = 5) -> list[RecordedDecision]:
        """Return the newest decisions of these kinds, or of any, newest first."""

    def start_decision(self, batch: Batch) -> RecordedDecision | None:
        """Return the decision that chose where a batch begins; None if it begins at the
        end of the batch that it continues."""

    def note_gtids_off(self, lease: Lease) -> None:
        """Record that the server's `gtid_mode` is not ON, so that no GTID set that was
        captured before is used to resume. Call it before the decision that depends on
        it."""

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        """Record an operator's choice for the next start; it replaces one that is still
        open."""

    def open_override(self, source: str) -> Override | None:
        """Return the newest choice of a start; None once a batch that began there was
        captured and not abandoned since."""

    def gaps(self, source: str, through: int = LAST_BATCH) -> list[Gap]:
        """Return the gaps (parts of the log that somebody chose not to read), oldest
        first, as of the end of the batch `through`."""


class Batches(Protocol):
    """The chain of batches, in which each begins where the one before it ends, and the
    content of each."""

    # -- the chain of batches ----------------------------------------------------------

    def cursors(self, source: str) -> Cursors:
        """Return the ends of the newest captured and of the newest acknowledged batch."""

    def batches(self, source: str, *, limit: int | None = 20) -> list[Batch]:
        """Return the newest batches, newest first, including abandoned ones; with the
        limit None, all of them."""

    def unfinished_batches(self, source: str) -> list[Batch]:
        """Return the batches that are capturing, captured or merged, oldest first."""

    def live_batches(
        self,
        source: str,
        first: int = 0,
        last: int = LAST_BATCH,
        *,
        continuity: Continuity | None = None,
        run: str | None = None,
        limit: int | None = None,
    ) -> list[Batch]:
        """Return the live batches with ids from `first` to `last`, oldest first; with
        `continuity`, only those whose start has that relation to the batch before; with
        `run`, only those of runs whose ids begin so. Ids are counted over all sources,
        so a source's own ids have holes."""

    def captured_batch(
        self,
        source: str,
        server_uuid: str,
        at: Coordinates,
    ) -> Batch | None:
        """Return the newest live captured batch that was read from this server and has
        the place `at` between its start and its end, both included. Batches that only
        caught tables up do not count."""

    def server_periods(self, source: str) -> tuple[ServerPeriod, ...]:
        """Return the servers from which the source was read, in order; one may occur
        twice."""

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        continued_batch: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        """Create a batch in the state *capturing*, and return it with its id and the
        sequence number before its first change. Give either `continued_batch`, the
        batch at whose end it starts, or `start_decision`, the id of the decision that
        chose its start."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """Abandon the newest batch. It must be capturing, or captured with no table
        merged."""

    def mark_merged(self, lease: Lease) -> list[int]:
        """Mark each captured batch as merged unless one of its tables still waits for a
        settled write; return their ids, ascending. Tables that are stopped or still
        being read do not wait."""

    def acknowledge(self, lease: Lease, batch: int, requests: RequestCounts | None = None) -> None:
        """Acknowledge a merged batch; batches are acknowledged in order. Record the
        version set, which is each merged table's newest settled write up to this batch,
        and the batch's `requests`."""

    # -- what one batch captured -------------------------------------------------------

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """Record in one transaction that a capturing batch is captured, and everything
        in `record`. Its patterns (`scope`) are only recorded if they differ from those
        of the batch before."""

    def contents(
        self, source: str, first: int, last: int, tables: Collection[TableName] | None = None
    ) -> list[BatchContent]:
        """Return the content of each live captured batch from `first` to `last`, oldest
        first. With `tables`, only the part of these tables, and only batches with
        segments or events of them.
        """

    def open_prepared(self, source: str) -> list[PreparedTransaction]:
        """Return prepared XA transactions that a live batch recorded and no live batch
        ended."""

    def set_anchors(self, source: str, batch: int) -> list[SetAnchor]:
        """Return, for each server whose GTIDs were read, the newest anchor that live
        batches up to `batch` recorded; the anchor of the last transaction comes
        first."""

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        """Return the patterns of live batches, oldest first: one entry for each change
        of the patterns."""

    # -- what many batches captured ----------------------------------------------------

    def batch_times(self, source: str) -> list[BatchTimes]:
        """Return the commit times of all captured batches that were not deleted yet
        (`pruned_through`), oldest first. They tell in which batch a moment lies."""

    def first_changes(self, source: str, first: int, last: int) -> dict[TableName, int]:
        """Return, for each table, the first of these captured batches that has segments
        or events of it."""

    def special_batches(self, source: str, first: int, last: int) -> SpecialBatches:
        """Return which of these batches a replay has to treat specially."""

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        """Return the settled writes that cover one of the batches, in the order of
        their intents."""


class Structures(Protocol):
    """The history of structures: versions of each table's columns and keys. Versions
    and statements of abandoned batches are only returned if they are asked for by
    number; numbers are never given twice. Without `batch` and `place`, a method returns
    the newest versions."""

    def has_history(self, source: str) -> bool:
        """Return whether a live batch recorded structures that were read from the
        server."""

    def last_versions(self, source: str) -> dict[TableName, int]:
        """Return each table's highest version number so far, including those of
        abandoned batches; the next version has the number after it."""

    def schema_at(
        self,
        source: str,
        table: TableName,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
    ) -> SchemaVersion | None:
        """Return the table's version at a place that the batch read: the newest version
        of this batch up to the place, or else the newest of an earlier batch. It may
        say that the table is dropped or its structure unknown. None if nothing was
        recorded."""

    def schemas_at(
        self,
        source: str,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
        referring: bool = False,
        shaped: bool = False,
    ) -> list[SchemaVersion]:
        """Return each table's version at that place, by name, without dropped tables.
        `referring`: only tables that have foreign keys; `shaped`: only tables of which
        the settings hide or change columns or rows."""

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        """Return the version of that number, also of an abandoned batch; raise
        `LedgerRefused` if there is none."""

    def schema_versions(self, source: str, *tables: TableName) -> list[SchemaVersion]:
        """Return all versions of these tables, table by table in the order of their
        places."""

    def databases_at(
        self, source: str, *, batch: int = LAST_BATCH, place: Coordinates = LAST_PLACE
    ) -> list[DatabaseVersion]:
        """Return each database's version at that place, by name, without dropped
        databases."""

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        """Return statements with an id above `after`, in the order in which they were
        read from the log."""

    def statements_within(self, source: str, first: int, last: int) -> list[SchemaStatement]:
        """Return the statements that these batches read, in the order in which they
        were read from the log."""

    def statements(self, source: str, numbers: Collection[int]) -> dict[int, SchemaStatement]:
        """Return the statements of these ids; raise `LedgerRefused` if one is missing."""


class Tables(Protocol):
    """Tables' states, orders, loads and proofs. A table's state is the result of the
    events of its life (`model.life`). Each order has an author and a reason. A load
    reads a table's rows from the source; a table has at most one load that is neither
    joined nor void. A proof is the result of a comparison with the source, and is
    recorded without a lease."""

    # -- states ------------------------------------------------------------------------

    def table_states(self, source: str) -> dict[TableName, TableState]:
        """Return the state of each captured table. A table without any change so far
        has none."""

    def complete_since(self, source: str) -> dict[TableName, int]:
        """Return, for each table, the newest live batch in which it was created, read
        from the source, or started again after a stop: changes that were missed before
        no longer matter. A batch with an ALTER does not count, because the table keeps
        its rows."""

    def partial_tables(self, source: str, batch: int = LAST_BATCH) -> list[Extent]:
        """Return the tables of which the lake has only a part, by name, as of the
        newest live batch up to `batch`."""

    def note_complete(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        """Record that the lake has all rows of these tables as of the batch's end."""

    def quarantine(self, lease: Lease, quarantined: StoppedTable) -> None:
        """Stop a followed table outside a capture; repeating it changes nothing. If the
        table needs more than the log, its open write is given up: the next write does
        not continue its mirror."""

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        """Record an event of the table's mirror outside a capture; return the table's
        new state."""

    # -- orders ------------------------------------------------------------------------

    def order_table(
        self,
        lease: Lease,
        table: TableName,
        kind: OrderKind,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
        supplier: Supplier | None = None,
    ) -> TableOrder:
        """Record a person's order, and change the table's state if the order does so at
        once. A newer order replaces an open one.

        `PAUSE` stops the table at once: if it is followed, at the end of the newest
        capture, otherwise at the place that it has reached. Its unmerged changes, and a
        write that was begun, wait until it is resumed; an open load of it is void.
        `RESUME`: the next capture catches a stopped table up; the order is open until
        then. `schema` is the table's structure from the place where it stopped, and
        `renames` are its columns that had another name before. `RELOAD`: the mirror is
        written again after the next capture, from `supplier`; the order is open until
        then, and a followed table stops at once.
        """

    def open_orders(self, source: str) -> list[TableOrder]:
        """Return the orders that no live batch carried out, oldest first."""

    # -- loads -------------------------------------------------------------------------

    def order_load(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        with_past: bool | None = None,
    ) -> Load:
        """Order that a table's rows are read from the source; the table need not have
        been captured before. If an open load has read nothing yet, return that load; if
        it has, refuse. `with_past`: first capture the changes of the table that the log
        still has; None keeps the choice of an open load, and means False for a new
        one."""

    def load_without_past(self, lease: Lease, load: int) -> None:
        """Record that the log no longer has the earlier changes that were ordered with
        the load."""

    def open_loads(self, source: str) -> list[Load]:
        """Return the loads that no live batch joined and that are not void, oldest
        first."""

    def begin_load(self, lease: Lease, load: int, basis: LoadBasis) -> None:
        """Record the structure and the place with which the load begins; then its
        chunks may be planned."""

    def plan_chunk(self, lease: Lease, load: int, number: int, key_range: Range) -> None:
        """Record a chunk that begins where the one before it ends."""

    def record_chunk(self, lease: Lease, load: int, number: int, rows: ChunkRows) -> None:
        """Record that the chunk was read and its files are durable. Call it once for a
        chunk."""

    def void_load(self, lease: Lease, load: int, reason: str) -> None:
        """Record that the rows read for the load no longer count; another load may be
        ordered."""

    # -- proofs ------------------------------------------------------------------------

    def note_compared(self, source: str, compared: Sequence[ComparisonResult]) -> None:
        """Record that these tables were compared now. If rows differ, an earlier proof
        stays."""

    def proofs(self, source: str) -> list[ComparisonRecord]:
        """Return the proofs of every compared table, by name; whole comparisons before
        samples. A comparison that found differences is left out if all rows of the
        table were read again since."""


class Writes(Protocol):
    """Writes to the lake. A write to a mirror (the Delta table with a table's current
    rows) is recorded as an intent, then settled or given up. So is a revision, whose
    files replace recorded files in changelogs. Mirrors and folders are paths relative
    to the lake. A `catalog` is the identity of a catalog; entries in other catalogs are
    kept and ignored."""

    # -- mirrors -----------------------------------------------------------------------

    def pending_batches(self, source: str) -> dict[TableName, list[int]]:
        """Return the batches that wait to be merged into each table's mirror, oldest
        first: captured batches with segments or events of the table that no settled
        write covers, and all batches that it missed while it was stopped. Tables that
        are stopped or whose rows are still being read are left out."""

    def open_intents(self, source: str) -> list[Intent]:
        """Return the intents that are neither settled nor given up."""

    def intend(self, lease: Lease, intents: Collection[Intent]) -> dict[TableName, Intent]:
        """Record the intent of these writes, all or none; the ledger gives each its id
        and `txn_version`. A table has at most one open intent."""

    def note_kept_rows(self, lease: Lease, intent: Intent) -> None:
        """Record that after this open write the mirror may have rows that the source no
        longer has, because the settings changed after its first try."""

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        schema_version: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
        is_examined: bool = False,
    ) -> None:
        """Record that the intent's commit was read back from the lake at
        `delta_version`. `schema_version`: the mirror's new one, or None if it did not
        change; `reason`: why this way of writing was chosen; `table_id`: the id of the
        Delta table; `is_examined`: no other program committed to the mirror up to that
        version, which is recorded as by `note_examined_versions`."""

    def give_up(self, lease: Lease, table: TableName) -> None:
        """Record that the table's open write will never be made; the next write merges
        its batches. Without an open write nothing changes."""

    def intents_of_batch(self, source: str, batch: int) -> list[Intent]:
        """Return all writes that cover a batch, in their order: settled, open or given
        up. If the batch has changes of a table that one of them writes, it can no
        longer be abandoned."""

    def newest_writes(self, source: str, app_ids: Collection[str]) -> dict[str, NewestWrites]:
        """Return the newest writes of each of these Delta applications."""

    def mirror_version(self, source: str, write: int) -> MirrorVersion | None:
        """Return the mirror version that the write with this id made; None if it is not
        settled, or if upkeep deleted it."""

    def newest_version_before(
        self, source: str, app_ids: Collection[str], batch: int
    ) -> MirrorVersion | None:
        """Return the mirror version that the newest settled write of these Delta
        applications made, without writes that have changes of the batch or of later
        ones."""

    def version_set(self, source: str, batch: int) -> RecordedVersionSet:
        """Return the versions of mirrors that together show the source as of the
        batch's end."""

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[MirrorVersion]:
        """Return the versions of a table's mirrors as of the ends of acknowledged
        batches up to `last`, newest first; each once, with the first of its batches.
        Versions that follow a commit of another program are left out."""

    # -- upkeep ------------------------------------------------------------------------

    def upkeep_versions(self, source: str) -> dict[str, int]:
        """Return, for each mirror, the Delta version of its newest commit by upkeep."""

    def note_upkeep_version(
        self, lease: Lease, mirror: str, *, shows: int, delta_version: int
    ) -> None:
        """Record that a commit of upkeep has the same rows as the version `shows`,
        which a settled write made. From now on version sets name the newest version
        with these rows. Repeating it changes nothing."""

    def clock(self) -> datetime:
        """Return the time on the ledger's server."""

    # -- revisions ---------------------------------------------------------------------

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        """Record the intent to list these durable files, before any changelog lists
        them. They belong to acknowledged batches; a source has at most one open
        revision."""

    def revisions(self, source: str) -> Revisions:
        """Return the source's newest revision and its open one."""

    def end_revision(self, lease: Lease, revision: Revision, *, settled: bool) -> None:
        """End a revision. `settled`: every changelog lists its files, which are the
        files of their segments from now on. If False, no changelog lists any of them or
        ever will."""

    # -- catalogs ----------------------------------------------------------------------

    def registrations(self, source: str, catalog: str) -> Registrations:
        """Return the entries of the source's tables in that catalog, as they were
        recorded."""

    def note_registration(
        self, lease: Lease, catalog: str, table: TableName, entry: RecordedEntry | None
    ) -> None:
        """Record the table's entry in the catalog, before or after the catalog creates
        it. It replaces the entry that was recorded before. None: the table has no
        entry."""

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None:
        """Record the id of the last statement whose effects the catalog's entries show."""

    # -- the lake ----------------------------------------------------------------------

    def identity(self) -> str:
        """Return the ledger's own id, a UUID that was made with it."""

    def examined_versions(self, source: str) -> dict[str, int]:
        """Return, for each folder, the Delta version up to which its log was checked."""

    def note_examined_versions(self, lease: Lease, versions: Mapping[str, int | None]) -> None:
        """Record up to which version each folder's log was checked; None deletes the
        entry of a folder that no longer exists."""

    def replacement_times(self, source: str, folders: Sequence[str]) -> dict[str, datetime | None]:
        """Return, for each of these folders of mirrors, since when version sets no
        longer name it: the time of the first acknowledgement without it; None if the
        newest version set names it. Folders that no version set ever named are left
        out."""

    def skip_numbers(
        self,
        lease: Lease,
        *,
        batch: int,
        txn_version: int,
        inherited: Iterable[BatchSpan] | None = None,
    ) -> None:
        """Give the next batch and the next write numbers above these.
        `inherited`: the batches of earlier ledgers whose changes in the lake belong to
        this ledger's history. They replace the recorded ones; None keeps the recorded
        ones."""

    def highest_number(self) -> int:
        """Return the highest number that a batch of any source was given, or that
        `skip_numbers` passed over; 0 before the first."""

    def inherited_batches(self, source: str) -> tuple[BatchSpan, ...]:
        """Return the batches of earlier ledgers that `skip_numbers` recorded, oldest
        first; none unless the ledger was made from its lake."""


class Deletions(Protocol):
    """The deletion of changes whose retention has ended, and of values that the
    settings no longer show. Once the ledger has a deletion note, nobody reads the
    changes that it names, even if their files still exist. Earlier values are *cleared*
    when files and ledger rows that show them are replaced."""

    # -- changes that are no longer kept -----------------------------------------------

    def deletion_notes(self, source: str, table: TableName | None = None) -> DeletionNotes:
        """Return up to which batch changes are deleted; with a table, also which
        changes of this table alone are (`begin_clearing`)."""

    def deletable_changes(self, source: str, moment: datetime) -> DeletableChanges:
        """Return which changes were acknowledged before a moment, and who still needs
        them."""

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        """Return the files of acknowledged batches after `above` up to `through`,
        including replaced ones."""

    def begin_deletion(self, lease: Lease, through: int) -> None:
        """Record a deletion note for changes up to the batch `through`. Refused while
        somebody needs one of them, or changelogs still list files of an earlier
        note."""

    def note_deletion_step(self, lease: Lease, step: DeletionStep, through: int) -> None:
        """Record that a step of the deletion after `begin_deletion` is done; may be
        repeated."""

    def prune(
        self, lease: Lease, rows: PrunableRows, above: int, through: int, most: int
    ) -> PruneResult:
        """Examine the next `most` batches, or leases, after the number `above`, and
        delete their rows of the kind `rows` that are useless without the changes up to
        the batch `through`. Repeating it changes nothing."""

    def pruned_through(self, source: str) -> int:
        """Return the batch up to which `prune` deletes rows of batches from the ledger;
        0 if all are kept. The ledger keeps this batch's end and its mirror versions; it
        may have nothing of the batches before."""

    # -- values that settings hide since -----------------------------------------------

    def uncleared_values(self, source: str) -> list[UnclearedValues]:
        """Return the tightenings (changes of the settings after which less is shown of
        a table) whose earlier values are not cleared, by table and oldest first.
        Tightenings whose earlier values a person keeps are included."""

    def note_tightened(self, lease: Lease, tightening: Tightening) -> None:
        """Record that from now on less is shown of a table than was captured up to a
        batch."""

    def note_kept_because(self, lease: Lease, note: int, reason: str | None) -> None:
        """Record why a person keeps the earlier values readable; None: they are to be
        cleared. `note`: the tightening's id. Refused once clearing has begun."""

    def begin_clearing(self, lease: Lease, note: int) -> None:
        """Record that the clearing of a tightening (`note`: its id) begins: from now on
        nobody is given the earlier changes. Refused while somebody needs them;
        repeating it changes nothing.
        """

    def clear_files(self, lease: Lease, files: Sequence[ClearedFile]) -> None:
        """Record that these files replace the earlier files."""

    def ended_loads(self, source: str, table: TableName) -> list[tuple[int, TableSchema]]:
        """Return the ended loads of a table: the id of each, and the structure at its
        begin."""

    def clear_ledger_rows(self, lease: Lease, note: int, rows: ClearedLedgerRows) -> None:
        """Replace rows of the ledger by these, delete the chunk bounds of the loads
        among them, and record that the tightening is cleared. `note`: its id."""


class Ledger(Leases, Decisions, Batches, Structures, Tables, Writes, Deletions, Protocol):
    """The record of all decisions and steps. Each writing method is one transaction. It
    raises `LeaseLost` if the lease is not the newest, because another run took over;
    `LedgerRefused`, without changing anything, if it is out of order; and
    `LedgerUnavailable` if the connection fails.

    Order within a run: `lock` → `begin_batch` → `record_capture` → `intend` → per table
    `settle` → `mark_merged` → `acknowledge`. Any step may be the first one of a new
    process: it asks the ledger, never its own memory.
    """


class Consumers(Protocol):
    """The consumers that the ledger (Lockstep's database in Postgres) records.

    A caller need not hold the source's lease. Each call is one transaction that locks
    the row of its consumer, so several processes may read under one name. A method that
    is given a name raises `ConsumerUnknown` if no consumer has it, and
    `ConsumerRefused`, without changing anything, for a step out of order.
    """

    def consumers(self, source: str) -> list[Consumer]:
        """Return the consumers that are not dropped, by name."""

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        """Make a consumer; the source need not have been captured yet."""

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        """Drop a consumer: its deliveries end, and changes that were only kept for it
        may be deleted. A later consumer of that name begins without its cursor."""

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        """Deliver the acknowledged batches after the last delivery, within the bounds.
        Return None if there are none. The delivery is open until it is acknowledged or
        rolled back."""

    def open_deliveries(self, source: str, name: str) -> list[Delivery]:
        """Return the deliveries that are neither acknowledged nor rolled back, oldest
        first."""

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        """Acknowledge the oldest open delivery; the cursor moves to its end."""

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        """Roll back this delivery and the later open ones, or with None all open ones.
        Their batches are delivered again. Return the ids of these deliveries,
        ascending."""


def live_lease(ledger: Leases, source: str) -> LeaseView | None:
    """Return the lease that somebody holds on the source now; None if nobody does."""
    lease = ledger.newest_lease(source)
    return lease if lease is not None and lease.live else None


def attempts_of(ledger: Decisions, source: str, *, limit: int = 100) -> list[Attempt]:
    """Return the ends of the newest attempts that were idle, refused or failed, newest
    first. Successful attempts are not included: they are batches."""
    return [Attempt.of(end) for end in ledger.decisions(source, *AttemptOutcome, limit=limit)]


def log_ends(ledger: Decisions, source: str, *, limit: int) -> list[LogEnd]:
    """Return the ends of the log that the newest decisions about a start saw, newest
    first."""
    ends = map(LogEnd.of, ledger.decisions(source, START_KIND, limit=limit))
    return [end for end in ends if end is not None]


def unproven_structures(ledger: Decisions, source: str) -> UnprovenStructures | None:
    """Return the tables whose structures are still to be compared with the server's, as
    the newest decision of the kind `STRUCTURES_KIND` names them; None if there are
    none."""
    for newest in ledger.decisions(source, STRUCTURES_KIND, limit=1):
        if tables := newest.decision.structures:
            return UnprovenStructures(frozenset(tables), newest.decided_at, newest.decision.reason)
    return None


def stale_tables(ledger: Deletions, source: str) -> frozenset[TableName]:
    """Return the tables whose mirrors still show values that the settings hide."""
    return frozenset(
        note.table for note in ledger.uncleared_values(source) if note.has_stale_mirror
    )


def captured_batches(ledger: Batches, source: str) -> list[Batch]:
    """Return the batches that are captured and not merged yet, oldest first."""
    batches = ledger.unfinished_batches(source)
    return [batch for batch in batches if batch.state is BatchState.CAPTURED]


def batch_content(ledger: Batches, source: str, batch: int) -> BatchContent:
    """Return the content of one batch, which is empty if it is abandoned or still
    capturing."""
    return next(iter(ledger.contents(source, batch, batch)), BatchContent(batch))


def table_contents(
    ledger: Batches, source: str, table: TableName, first: int, last: int
) -> list[TableContent]:
    """Return the content of a table in captured batches, oldest first, without batches
    that have none."""
    contents = ledger.contents(source, first, last, [table])
    return [content.by_table()[table] for content in contents]
