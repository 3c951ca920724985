"""The ledger of a source: its queries and its steps, subject by subject."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from lockstep.pipeline.catalog import Registered, Registrations
from lockstep.pipeline.model.batch import (
    Batch,
    BatchContent,
    BatchKind,
    BatchTimes,
    CaptureRecord,
    Cursors,
    Prepared,
    Requests,
    RunsElsewhere,
    SpanMarks,
    TableContent,
    WriteElsewhere,
)
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.life import MirrorEvent
from lockstep.pipeline.model.load import ChunkRows, Load, LoadBegin
from lockstep.pipeline.model.table_state import (
    Extent,
    OrderKind,
    StoppedTable,
    Supplier,
    TableOrder,
    TableState,
)
from lockstep.pipeline.proof.proven import Compared, TableProof
from lockstep.pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.snapshot.bounds import Range
from lockstep.pipeline.upkeep.changes import (
    ChangeFile,
    DeletionNotes,
    Forgettable,
    ForgottenStep,
    Prunable,
    Pruned,
)
from lockstep.pipeline.upkeep.clearing import (
    ClearedFile,
    ClearedLedgerRows,
    Tightening,
    UnclearedValues,
)
from lockstep.pipeline.values.decisions import (
    STRUCTURES,
    Attempt,
    AttemptOutcome,
    Continuity,
    Decision,
    Lease,
    LeaseView,
    Override,
    RecordedDecision,
    Unproven,
)
from lockstep.pipeline.values.intent import (
    Intent,
    MirrorVersion,
    NewestWrites,
    SettledWrite,
    VersionSet,
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
LAST_PLACE: Final = Coordinates(LogFile("", (1 << 31) - 1), (1 << 63) - 1)
"""A batch and a place after all others: what holds there is the newest."""


class Leases(Protocol):
    """Who may write for a source, and what was done under each lease."""

    # -- the lock, and who has it ------------------------------------------------------------------

    def lock(
        self, source: str, holder: str, dagster_run: str | None, *, in_dagster: bool = False
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at once.
        `dagster_run`: the run's id, if this is a run; `in_dagster`: Dagster gave it the id, and
        records what it does. The lock ends with the connection; leaving the context releases
        both."""

    def require_held(self, lease: Lease) -> None:
        """Raise `LeaseLost` if another run took over, or the lock is known to be lost. Records
        nothing."""

    def require_not_lost(self, lease: Lease) -> None:
        """Raise `LeaseLost` if the lock is known to be lost, without a query: for work that takes
        long without a step."""

    def require_writable(self) -> None:
        """Raise a `LockstepError` if nothing can be recorded: the server is read-only, or the
        account may not write."""

    def lease(self, source: str, *, before: int | None = None) -> LeaseView | None:
        """Return the newest lease of a source, whoever holds it; None before the first. With
        `before`, a lease's token: the newest lease of a run before that one, which has ended.
        Commands that are no runs may have held the source in between."""

    # -- processes at a server of Spark ------------------------------------------------------------

    def spark_clients(self, source: str) -> list[UUID]:
        """Return the noted clients that may still have statements there, oldest first."""

    def note_spark_client(self, lease: Lease, client: UUID, *, gone: bool = False) -> None:
        """Note that a client may have statements there from now on, or has none any more (`gone`).
        Repeating it changes nothing."""

    # -- runs that Dagster does not record: of the command line, on any host -----------------------
    # Leases with tokens after `after` and up to `through`; nothing more is recorded under one once
    # the next was taken.

    def runs_elsewhere(self, source: str, after: int, through: int) -> RunsElsewhere:
        """Return what these runs did; other commands are not counted."""

    def written_elsewhere(
        self, source: str, after: int, through: int, beyond: TableName | None, most: int
    ) -> list[WriteElsewhere]:
        """Return the tables whose mirrors were written, by name, one entry each: the first `most`
        after `beyond`. Tables that a killed Dagster run wrote are among them: Dagster may not have
        recorded them."""


class Decisions(Protocol):
    """What runs decided and how they ended, and what persons chose. A decision is never changed
    once it is recorded."""

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        """Record a decision that makes no batch (a refusal, an idle run) or that the
        next `begin_batch` refers to."""

    def decisions(self, source: str, *kinds: str, limit: int = 5) -> list[RecordedDecision]:
        """Return the newest decisions of these kinds, or of any, newest first."""

    def note_gtids_off(self, lease: Lease) -> None:
        """Note that the server's `gtid_mode` is not ON: no GTID set that was captured before is
        used to resume. Call it before the decision that depends on it."""

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        """Record an operator's choice for the next start; it replaces one that is still open."""

    def open_override(self, source: str) -> Override | None:
        """Return the newest choice, until a live batch began by it."""

    def gaps(self, source: str) -> list[Gap]:
        """Return the spans of the log that no batch read, and who decided that, oldest first."""


class Batches(Protocol):
    """The chain of batches, in which each begins where the one before it ends, and what each
    captured. *Live* batches are those that are not abandoned."""

    # -- the chain of batches ----------------------------------------------------------------------

    def cursors(self, source: str) -> Cursors: ...

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        """Return the newest batches, newest first, including abandoned ones."""

    def unfinished(self, source: str) -> list[Batch]:
        """Return the batches that are capturing, captured or merged, oldest first."""

    def live_batches(
        self,
        source: str,
        first: int = 0,
        last: int = LAST_BATCH,
        *,
        continuity: Continuity | None = None,
        limit: int | None = None,
    ) -> list[Batch]:
        """Return the live batches from `first` to `last`, oldest first; with `continuity`, only
        those that began that way. Ids are counted over all sources."""

    def captured_batch(
        self,
        source: str,
        *,
        run: str | None = None,
        server_uuid: str | None = None,
        at: Coordinates | None = None,
    ) -> Batch | None:
        """Return the newest live captured batch of a Dagster run, whose id may be shortened, or
        from a server with the place between its start and its end, both included; a batch that only
        caught tables up is not among the latter."""

    def lineage(self, source: str) -> tuple[ServerPeriod, ...]:
        """Return the servers from which the source was read, in order; one may occur twice."""

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        """Open a *capturing* batch. Exactly one of `predecessor`, whose end is its start, and
        `start_decision`, which may follow a batch (`Decision.follows`), is given. The result has
        its id and sequence base."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """capturing, or captured with no table merged → abandoned; only the newest batch."""

    def mark_merged(self, lease: Lease) -> list[int]:
        """captured → merged for every batch, oldest first, whose tables all have a settled write,
        or are stopped or still being read; return their ids."""

    def acknowledge(self, lease: Lease, batch: int, requests: Requests | None = None) -> None:
        """merged → acknowledged, in order. Record the version set, which is each merged table's
        newest settled write up to this batch, and the batch's `requests`."""

    # -- what one batch captured -------------------------------------------------------------------

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """capturing → captured: record at once the end, segments, source parts, history, tables,
        events, snapshots, prepared transactions (new and ended ones), orders carried out, anchors
        of the GTIDs read, and the patterns if they differ from those of before."""

    def contents(
        self, source: str, first: int, last: int, tables: Collection[TableName] | None = None
    ) -> list[BatchContent]:
        """Return what each live captured batch from `first` to `last` recorded, oldest first. With
        `tables`, only their part, of batches with segments or events of them."""

    def open_prepared(self, source: str) -> list[Prepared]:
        """Return prepared XA transactions that a live batch recorded and no live batch ended."""

    def set_anchors(self, source: str, batch: int) -> list[SetAnchor]:
        """Return, for each source of GTIDs, the newest anchor that live batches up to that one
        kept; that of the last transaction first."""

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        """Return the patterns of live batches, oldest first: one entry for each change of them."""

    # -- what many batches captured ----------------------------------------------------------------

    def batch_times(self, source: str) -> list[BatchTimes]:
        """Return the times of all captured batches that are still known (`pruned_through`), oldest
        first: the index in which a moment is looked up."""

    def touched(self, source: str, first: int, last: int) -> dict[TableName, int]:
        """Return, for each table, the first of these captured batches that has segments or events
        of it."""

    def marks_within(self, source: str, first: int, last: int) -> SpanMarks: ...

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        """Return the settled writes that cover one of the batches, in the order of their
        intents."""


class Structures(Protocol):
    """The history of structures. Versions and statements of abandoned batches are visible only by
    their number; numbers are never given twice. Without a batch and a place, a question is about
    the newest."""

    def has_history(self, source: str) -> bool:
        """Return whether a live batch recorded a baseline."""

    def last_versions(self, source: str) -> dict[TableName, int]:
        """Return each table's highest version number so far, including those of abandoned
        batches; the next version has the number after it."""

    def schema_at(
        self,
        source: str,
        table: TableName,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
    ) -> SchemaVersion | None:
        """Return the table's version at a place that the batch read: the newest one of this batch
        up to the place, or of an earlier batch; it may say dropped or unknown. None if nothing was
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
        """Return each table's version there, by name, without dropped tables. `referring`: only of
        tables that have foreign keys; `shaped`: only of those that the lake does not show
        completely and unchanged."""

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        """Return the version of that number, also of an abandoned batch; `LedgerRefused` if there
        is none."""

    def schema_versions(self, source: str, *tables: TableName) -> list[SchemaVersion]:
        """Return all versions of these tables, table by table in the order of their places."""

    def databases_at(
        self, source: str, *, batch: int = LAST_BATCH, place: Coordinates = LAST_PLACE
    ) -> list[DatabaseVersion]:
        """Return each database's version there, by name, without dropped databases."""

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        """Return statements with an id above `after`, in the order in which they were read."""

    def statements(self, source: str, numbers: Collection[int]) -> dict[int, SchemaStatement]:
        """Return the statements of these ids; `LedgerRefused` if one is missing."""


class Tables(Protocol):
    """Tables' states, orders, loads and proofs. A table's state is what the events of its life make
    of it; each order has an author and a reason; a table has at most one load that is neither
    joined nor void; results of comparisons are noted without a lease."""

    # -- states ------------------------------------------------------------------------------------

    def table_states(self, source: str) -> dict[TableName, TableState]: ...

    def partial(self, source: str) -> list[Extent]:
        """Return the tables of which the lake can have only a part, by name, as live batches left
        them. A table without any change so far has no state."""

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        """Note that the lake has all rows of these tables as of the batch's end."""

    def quarantine(self, lease: Lease, quarantined: StoppedTable) -> None:
        """following → stopped, outside a capture; repeating it changes nothing. The table's open
        write is given up, so call it only if nothing of that write is in the lake."""

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        """Record what happened to the table's mirror outside a capture; return the new state."""

    # -- orders ------------------------------------------------------------------------------------

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
        """Record what a person orders, and the state that follows at once.

        `PAUSE`: any → stopped. A followed table stops where the captures are, any other keeps its
        place; what is not merged of it, and a write that was begun, waits until it is resumed. An
        open load of it is void. `RESUME`: the next capture catches a stopped table up; the order is
        open until then. `schema` is the structure that it has from where it stopped, and `renames`
        the columns that had another name before. A newer order replaces an open one. `RELOAD`: its
        mirror is written again after the next capture, from `supplier`; the order is open until
        then, and a followed table stops at once.
        """

    def open_orders(self, source: str) -> list[TableOrder]:
        """Return the orders that no live batch carried out, oldest first."""

    # -- loads -------------------------------------------------------------------------------------

    def order_load(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        with_past: bool | None = None,
    ) -> Load:
        """Order that a table is read from the source, also one of which nothing was captured. An
        open load for which nothing was read is returned; if one is being read, that is refused.
        `with_past`: whether it is read after the changes that the log still has of it; None leaves
        that as an open load has it, and a new load without."""

    def load_without_past(self, lease: Lease, load: int) -> None:
        """Record that the log does not have the past that was ordered with the load."""

    def open_loads(self, source: str) -> list[Load]:
        """Return the loads that no live batch joined and that are not void, oldest first."""

    def begin_load(self, lease: Lease, load: int, reading: LoadBegin) -> None:
        """Record what the load begins with; from now on its chunks may be planned."""

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        """Record a chunk that begins where the one before it ends."""

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        """Record once that the chunk was read and its files are durable."""

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        """Record that what was read for it no longer counts; another load may be ordered."""

    # -- proofs ------------------------------------------------------------------------------------

    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        """Note that these tables were compared now. If rows differ, an earlier proof stays."""

    def proofs(self, source: str) -> list[TableProof]:
        """Return the proofs of every compared table, by name; whole comparisons before samples."""


class Writes(Protocol):
    """Writes to the lake. A mirror's write is first an intent, then settled or given up; so is a
    revision, whose files replace recorded ones. Mirrors and folders are paths relative to the lake.
    A `catalog` is a catalog's identity; entries of another one are kept and ignored."""

    # -- mirrors -----------------------------------------------------------------------------------

    def pending(self, source: str) -> dict[TableName, list[int]]:
        """Return, for each table that is neither stopped nor still being read, the captured batches
        with segments or events of it that no settled write covers, oldest first; and those that the
        table missed while it was stopped, whatever their state."""

    def open_intents(self, source: str) -> list[Intent]: ...

    def intend(self, lease: Lease, intents: Collection[Intent]) -> dict[TableName, Intent]:
        """Record the intent of these writes, all or none; the ledger gives each its id and
        `txn_version`. A table has at most one open intent."""

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        shows: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
        looked: bool = False,
    ) -> None:
        """Record that the intent's commit was read back from the lake at that version. `shows`: the
        schema version that the mirror has since, None for the one it had; `reason`: why it was
        written in that way; `table_id`: the id of the Delta table; `looked`: nobody else committed
        to the mirror up to that version, which is noted as by `note_looked`."""

    def give_up(self, lease: Lease, table: TableName) -> None:
        """Record that the table's open write will never be made; the next one takes its batches.
        Without an open write nothing changes."""

    def intended(self, source: str, batch: int) -> list[Intent]:
        """Return all writes that cover a batch, in their order: settled, open or given up. If one
        of them is of a table that the batch touched, the batch can no longer be abandoned."""

    def newest_writes(
        self, source: str, applications: Collection[str]
    ) -> dict[str, NewestWrites]: ...

    def pinned(
        self,
        source: str,
        *,
        write: int | None = None,
        applications: Collection[str] = (),
        before: int = 0,
    ) -> MirrorVersion | None:
        """Return the version that a settled write made: that of the id `write`, which an intent
        recorded, or the newest of these applications that shows nothing of the batch `before` or of
        a later one. None if there is none, or it is forgotten."""

    def version_set(self, source: str, batch: int) -> VersionSet: ...

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[MirrorVersion]:
        """Return the versions of a table's mirrors that show it as of the ends of acknowledged
        batches up to `last`, newest first; each once, with the first of the batches. A version
        before which somebody else had committed to the mirror is not among them."""

    # -- upkeep ------------------------------------------------------------------------------------

    def upkept(self, source: str) -> dict[str, int]:
        """Return, for each mirror, the newest Delta version that upkeep made of it."""

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        """Note that a commit of upkeep shows the rows of the version `shows`, which a settled write
        made: from now on version sets name the newest such version. Repeating it changes
        nothing."""

    def clock(self) -> datetime:
        """Return the time on the ledger's server."""

    # -- revisions ---------------------------------------------------------------------------------

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        """Record the intent to list these files, which are durable, before any changelog lists
        them. They belong to acknowledged batches; a source has at most one open revision."""

    def revisions(self, source: str) -> Revisions: ...

    def end_revision(self, lease: Lease, revision: Revision, *, settled: bool) -> None:
        """End a revision. `settled`: every changelog lists the files, and they are those of their
        segments from now on. Otherwise no changelog lists any of them, or ever will."""

    # -- catalogs ----------------------------------------------------------------------------------

    def registrations(self, source: str, catalog: str) -> Registrations: ...

    def note_registration(
        self, lease: Lease, catalog: str, table: TableName, entry: Registered | None
    ) -> None:
        """Note that the table's entry is this one, or is being made; it replaces what was known of
        the table. None: the table has no entry."""

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None: ...

    # -- the lake ----------------------------------------------------------------------------------

    def identity(self) -> str:
        """Return the ledger's own id, a UUID that was made with it."""

    def looked(self, source: str) -> dict[str, int]:
        """Return, for each folder, the Delta version up to which its log was checked."""

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        """Note up to which version each folder's log was checked; None forgets a folder that no
        longer exists."""

    def left_at(self, source: str, folders: Sequence[str]) -> dict[str, datetime | None]:
        """Return, for each of these folders of mirrors, when the first version set was acknowledged
        since which none names it; None while the newest one does. Folders that no version set names
        are left out."""

    def number_above(
        self,
        lease: Lease,
        *,
        batch: int,
        txn_version: int,
        inherited: Iterable[BatchSpan] | None = None,
    ) -> None:
        """Give the next batch and the next write numbers above these. `inherited`: batches of
        earlier ledgers whose changes count for this ledger, in place of those of before; None
        changes nothing of that."""

    def highest_number(self) -> int:
        """Return the highest number that a batch of any source was given, or that `number_above`
        passed over; 0 before the first."""

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        """Return those batches, oldest first; none unless the ledger was made from its lake."""


class Deletions(Protocol):
    """Changes that are no longer kept, and values that a policy no longer shows. Changes of batches
    up to `forgotten(source).through` may be deleted; nobody reads them even if their files still
    exist."""

    # -- changes that are no longer kept -----------------------------------------------------------

    def forgotten(self, source: str, table: TableName | None = None) -> DeletionNotes:
        """Return what is forgotten; with a table, also what is forgotten of it alone
        (`begin_clearing`)."""

    def forgettable(self, source: str, moment: datetime) -> Forgettable:
        """Return which changes were acknowledged before a moment, and who still needs some of
        them."""

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        """Return the files of acknowledged batches after `above` up to `through`, including
        replaced ones."""

    def forget(self, lease: Lease, through: int) -> None:
        """Record that changes up to that batch are no longer kept. Refused while somebody needs one
        of them, or files of an earlier call are still listed."""

    def note_forgotten(self, lease: Lease, done: ForgottenStep, through: int) -> None:
        """Record the steps in which changes up to a batch are deleted after `forget`, one after the
        other. Repeating it changes nothing."""

    def prune(self, lease: Lease, rows: Prunable, above: int, through: int, most: int) -> Pruned:
        """Examine the next `most` batches, or leases, after the number `above`, and delete the rows
        that nobody can ask for once the changes up to the batch `through` are deleted. Repeating it
        changes nothing."""

    # -- tables of which less is shown than before -------------------------------------------------

    def in_clear(self, source: str) -> list[UnclearedValues]:
        """Return the tightenings whose earlier values are not cleared, including those that a
        person keeps, by table and oldest first."""

    def note_tightened(self, lease: Lease, tightening: Tightening) -> None:
        """Note that from now on less is shown of a table than of what was captured up to a
        batch."""

    def note_keep_clear(self, lease: Lease, note: int, reason: str | None) -> None:
        """Note why a person lets earlier values stay in clear; None: they are cleared. Refused once
        clearing has begun."""

    def begin_clearing(self, lease: Lease, note: int) -> None:
        """Begin to clear: from now on nobody is given those changes. Refused while somebody needs
        them; repeating it changes nothing."""

    def clear_files(self, lease: Lease, files: Sequence[ClearedFile]) -> None:
        """Record that these files replace the earlier ones."""

    def ended_loads(self, source: str, table: TableName) -> list[tuple[int, TableSchema]]:
        """Return the ended loads of a table, each with the structure with which it began."""

    def clear_books(self, lease: Lease, note: int, books: ClearedLedgerRows) -> None:
        """Replace values in the ledger by these, delete the bounds of the chunks of those loads,
        and note that a tightening is cleared."""

    def pruned_through(self, source: str) -> int:
        """Return the batch up to which such rows may be deleted, and before which batches may be,
        with their ends and the versions of mirrors that show them; 0 if all are kept. That batch
        itself is kept."""


class Ledger(Leases, Decisions, Batches, Structures, Tables, Writes, Deletions, Protocol):
    """The record of everything that was decided and done. Each writing method is one transaction
    that checks the lease's token (`LeaseLost` if another run took over) and is refused as a whole
    (`LedgerRefused`) if it is out of order. Connection trouble is `LedgerUnavailable`.

    Order within a run: `lock` → `begin_batch` → `record_capture` → `intend` → per table
    `settle` → `mark_merged` → `acknowledge`. Any step may be the first one of a new process: it
    asks the ledger, never its own memory.
    """


def attempts_of(ledger: Decisions, source: str, *, limit: int = 100) -> list[Attempt]:
    """Return how the newest attempts ended that were idle, refused or failed, newest first.
    Attempts that succeeded are batches."""
    return [Attempt.of(end) for end in ledger.decisions(source, *AttemptOutcome, limit=limit)]


def unproven(ledger: Decisions, source: str) -> Unproven | None:
    """Return the tables whose structures are still to be compared with the server's, as the newest
    decision of the kind `STRUCTURES` names them; None if there are none."""
    return Unproven.of(ledger.decisions(source, STRUCTURES, limit=1))


def content_of(ledger: Batches, source: str, batch: int) -> BatchContent:
    """Return what one batch recorded; nothing if it is abandoned, or still capturing."""
    return next(iter(ledger.contents(source, batch, batch)), BatchContent(batch))


def contents_of(
    ledger: Batches, source: str, table: TableName, first: int, last: int
) -> list[TableContent]:
    """Return what captured batches have of a table, oldest first, without those that have
    nothing."""
    contents = ledger.contents(source, first, last, [table])
    return [content.by_table()[table] for content in contents]
