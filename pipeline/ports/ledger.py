"""The ledger of a source: what is asked of it, and what is written to it, subject by subject."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from pipeline.batch import (
    Batch,
    BatchContent,
    BatchKind,
    BatchTimes,
    CaptureRecord,
    Cursors,
    Prepared,
    Requests,
    TableContent,
)
from pipeline.catalog.values import Registered, Registrations
from pipeline.claim import BatchSpan
from pipeline.decisions import (
    Attempt,
    Continuity,
    Decision,
    Lease,
    LeaseView,
    Override,
    RecordedDecision,
    Unproven,
)
from pipeline.errors import Remedy
from pipeline.gaps import Gap
from pipeline.intent import (
    Intent,
    MirrorVersion,
    NewestWrites,
    SettledWrite,
    VersionSet,
)
from pipeline.life.events import MirrorEvent
from pipeline.load import ChunkRows, Load, LoadBasis
from pipeline.position import Coordinates, LogFile, Position, Reign, SetWitness
from pipeline.proof.proven import Compared, TableProof
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.segment import RevisedSegment, Revision, Revisions
from pipeline.snapshot.bounds import Range
from pipeline.table import TableName
from pipeline.table_state import Extent, OrderKind, Quarantine, Supplier, TableOrder, TableState
from pipeline.tables import CaptureScope
from pipeline.upkeep.changes import (
    ChangeFile,
    Forgettable,
    ForgottenNotes,
    ForgottenStep,
    Prunable,
    Pruned,
)
from pipeline.upkeep.clearing import ClearedBooks, ClearedFile, InClear, Tightening

LAST_BATCH: Final = (1 << 63) - 1
LAST_PLACE: Final = Coordinates(LogFile("", (1 << 31) - 1), (1 << 63) - 1)
"""After every batch and place: what holds there is what is newest."""


class Elsewhere(StrEnum):
    """Why a batch has rows that its own range of the log does not tell."""

    SOURCE = "source"
    """They were read from the source."""
    PREPARED = "prepared"
    """An XA transaction was prepared in an earlier batch."""


@dataclass(frozen=True, slots=True)
class SpanMarks:
    """Of some batches, those whose rows are not all in the range of the log that they read; those
    that recorded structures, of tables or databases; and those that had files replaced, with how
    often (`revised`)."""

    elsewhere: Mapping[int, Elsewhere]
    learnt: frozenset[int]
    revised: Mapping[int, int]


BatchRange: TypeAlias = tuple[int, int]
"""The first and the last of a row of batches."""


@dataclass(frozen=True, slots=True)
class RunsElsewhere:
    """The number of runs, and the batches that they captured, in order. `died`: those of the runs
    that were killed, or hung and were taken over. `forgotten`: leases that upkeep deleted."""

    runs: int
    batches: tuple[int, ...]
    died: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class WriteElsewhere:
    """The last write of a table's mirror, and what each of its writes in the span covers."""

    last: SettledWrite
    spans: frozenset[BatchRange]

    @property
    def first_batch(self) -> int:
        return min(first for first, _ in self.spans)

    def covers(self, batch: int) -> bool:
        return any(first <= batch <= last for first, last in self.spans)


class Ledger(Protocol):
    """The books. Each writing method is one transaction that checks the lease's token
    (`LeaseLost` if another run took over) and is refused whole (`LedgerRefused`) when
    it is out of order. Connection trouble is `LedgerUnavailable`.

    Order within a run: `lock` → `begin_batch` → `record_capture` → `intend` → per table
    `settle` → `mark_merged` → `acknowledge`. Any step may be the first that a new process makes:
    it asks the ledger, never its own memory.

    *Live* batches are those that are not abandoned. Mirrors and folders are paths relative to the
    lake. A `catalog` is one by its identity; entries of another are kept, and of no account.
    """

    # -- the lock, and who has it ------------------------------------------------------------------

    def lock(
        self, source: str, holder: str, dagster_run: str | None, *, in_dagster: bool = False
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at once.
        `dagster_run`: the id of the run, if it is one; `in_dagster`: Dagster gave it that, and
        records what it does. The lock goes with the connection; leaving the context releases
        both."""

    def require_held(self, lease: Lease) -> None:
        """`LeaseLost` if another run took over since, or the lock is known to be lost; records
        nothing."""

    def require_not_lost(self, lease: Lease) -> None:
        """`LeaseLost` once it is known that the lock is lost. Asks nobody: for whoever works for
        long without a step."""

    def require_writable(self) -> None:
        """`LockstepError` if nothing could be recorded: the server is read-only, or the account
        may not write."""

    def lease(self, source: str, *, before: int | None = None) -> LeaseView | None:
        """The newest lease of a source, whoever holds it; None before the first. With `before`, a
        lease's token: the newest one of a run before that lease, so that it is not live. Commands
        that are no runs may have held the source in between."""

    # -- processes at a server of Spark -----------------------------------------------------

    def spark_clients(self, source: str) -> list[UUID]:
        """Those that were noted and not forgotten, in the order of their numbers."""

    def note_spark_client(self, lease: Lease, client: UUID, *, gone: bool = False) -> None:
        """From here on it may have statements there, or has none any more (`gone`). Repeating it
        changes nothing."""

    # -- runs that Dagster does not record: of the command line, on any host ----------------
    # Leases with tokens after `after` and up to `through`; nothing more is recorded under one once
    # the next was taken.

    def runs_elsewhere(self, source: str, after: int, through: int) -> RunsElsewhere:
        """Runs are counted, other commands are not."""

    def written_elsewhere(
        self, source: str, after: int, through: int, beyond: TableName | None, most: int
    ) -> list[WriteElsewhere]:
        """Tables whose mirrors were written, by name, one entry each; the first `most` of those
        that come after `beyond`. Also those that a run of Dagster's wrote which was killed: Dagster
        may know of them, or not."""

    # -- decisions ---------------------------------------------------------------------------------
    # None is changed once it is recorded.

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        """Record a decision that makes no batch (a refusal, an idle run) or that the
        next `begin_batch` refers to."""

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]:
        """The newest decisions, newest first: to be shown. What is decided from is
        `attempts`, and columns that others ask for."""

    def attempts(self, source: str, *, limit: int = 100) -> list[Attempt]:
        """How the newest attempts ended that were idle, refused or failed, newest first. Those
        that went through are batches."""

    def unproven(self, source: str) -> Unproven | None:
        """Return the tables whose structures are still to be compared with the server's, as the
        newest decision of the kind `STRUCTURES` names them; None if there are none."""

    def note_gtids_off(self, lease: Lease) -> None:
        """A run found the server's `gtid_mode` not ON: no set that was captured before this is
        resumed by. To be called before what is decided on it."""

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        """Record an operator's one-shot choice; it takes the place of one still open."""

    def open_override(self, source: str) -> Override | None:
        """The newest choice, until a live batch was begun by it."""

    def gaps(self, source: str) -> list[Gap]:
        """What no batch read, by whose choice, oldest first."""

    # -- the chain of batches ----------------------------------------------------------------------
    # Each begins where the one before it ends.

    def cursors(self, source: str) -> Cursors: ...

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        """The newest batches, newest first, abandoned ones among them."""

    def unfinished(self, source: str) -> list[Batch]:
        """Batches that are capturing, captured or merged, oldest first."""

    def live_batches(
        self,
        source: str,
        first: int = 0,
        last: int = LAST_BATCH,
        *,
        continuity: Continuity | None = None,
        limit: int | None = None,
    ) -> list[Batch]:
        """Batches of these ids and between, oldest first; only those that began so, if
        `continuity` is given. Ids are counted over all sources."""

    def captured_batch(
        self,
        source: str,
        *,
        run: str | None = None,
        server_uuid: str | None = None,
        at: Coordinates | None = None,
    ) -> Batch | None:
        """The newest live captured batch: of a Dagster run, whose id may be shortened; from a
        server, with the place between its start and its end, both included, unless it only caught
        tables up."""

    def lineage(self, source: str) -> tuple[Reign, ...]:
        """The servers the source was read from, in order; one may come back."""

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        """Open a *capturing* batch: exactly one of `predecessor` (whose end is its
        start) and `start_decision`, which may follow a batch (`Decision.follows`). The
        answer has its id and sequence base."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """capturing, or captured with no table merged → abandoned; the newest first."""

    def mark_merged(self, lease: Lease) -> list[int]:
        """captured → merged for every batch, oldest first, all of whose tables have a
        settled write or are quarantined; the ids moved."""

    def acknowledge(self, lease: Lease, batch: int, requests: Requests | None = None) -> None:
        """merged → acknowledged, in order, and record the version set: each active
        table's newest settled write up to this batch; and the batch's `requests`."""

    # -- what one batch captured ------------------------------------------------------------

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """capturing → captured: segments, source parts, history, tables, events, snapshots,
        prepared transactions (new and ended ones), orders carried out, witnesses of the GTIDs
        read, the patterns where they are others than before, and end at once."""

    def contents(
        self, source: str, first: int, last: int, tables: Collection[TableName] | None = None
    ) -> list[BatchContent]:
        """What each captured batch from `first` to `last` recorded, oldest first, abandoned ones
        left out; of `tables` only if given, and then only batches with segments or events of
        them."""

    def open_prepared(self, source: str) -> list[Prepared]:
        """Prepared XA transactions that some live batch recorded and no live batch ended."""

    def set_witnesses(self, source: str, batch: int) -> list[SetWitness]:
        """Of each source of GTIDs the newest that was kept by live batches up to that one;
        that of the last transaction first."""

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        """What live batches were captured with, oldest first: one for each change of it."""

    # -- what many batches captured ---------------------------------------------------------

    def batch_times(self, source: str) -> list[BatchTimes]:
        """The times of all captured batches that are known (`pruned_through`), oldest first: the
        index in which a moment is looked up."""

    def touched(self, source: str, first: int, last: int) -> dict[TableName, int]:
        """The first of the captured batches that has segments or events of each table."""

    def marks_within(self, source: str, first: int, last: int) -> SpanMarks: ...

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        """Settled writes that cover one of the batches, in the order they were intended."""

    # -- structures --------------------------------------------------------------------------------
    # Versions and statements of abandoned batches are not seen, except by their number; numbers are
    # never given twice. Without a batch and a place, a question is about what is newest.

    def has_history(self, source: str) -> bool:
        """Whether some live batch recorded a baseline."""

    def last_versions(self, source: str) -> dict[TableName, int]:
        """Each table's highest number so far, those of abandoned batches among them; the
        next version's is one more."""

    def schema_at(
        self,
        source: str,
        table: TableName,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
    ) -> SchemaVersion | None:
        """What holds for the table at a place that the batch read: the newest version of
        this batch up to the place, or of a batch before it; also one that says dropped or
        unknown. None where nothing was recorded."""

    def schemas_at(
        self,
        source: str,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
        referring: bool = False,
    ) -> list[SchemaVersion]:
        """What holds there for each table, by name; dropped ones left out. `referring`: only of
        tables that have foreign keys."""

    def shaped_versions(self, source: str) -> list[SchemaVersion]:
        """The newest version of each table of which the lake does not show all as it is."""

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        """The version of that number, whatever became of its batch; `LedgerRefused` where
        there is none."""

    def schema_versions(self, source: str, *tables: TableName) -> list[SchemaVersion]:
        """All versions of these tables, table by table in the order of their places."""

    def databases_at(
        self, source: str, *, batch: int = LAST_BATCH, place: Coordinates = LAST_PLACE
    ) -> list[DatabaseVersion]:
        """What holds there for each database, by name; dropped ones left out."""

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        """Statements with an id above `after`, in the order of the log as it was read."""

    def statements(self, source: str, numbers: Collection[int]) -> dict[int, SchemaStatement]:
        """The statements of these ids; `LedgerRefused` where one is missing."""

    # -- tables ------------------------------------------------------------------------------------
    # Their states are what the events of their lives make of them; each order has an author and a
    # reason; a table has one load at a time that is not joined and not void; what comparisons found
    # is noted without a lease.

    # -- states -----------------------------------------------------------------------------

    def table_states(self, source: str) -> dict[TableName, TableState]: ...

    def partial(self, source: str) -> list[Extent]:
        """Tables that the lake can have but a part of, by name, as live batches left them;
        some of them nobody has seen a change of, and they have no state."""

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        """The lake was found to have all of these tables, as of the batch's end."""

    def quarantine(self, lease: Lease, quarantined: Quarantine) -> None:
        """active → quarantined, outside a capture; repeating it changes nothing. The table's
        open write is given up: to be called when nothing of it is in the lake."""

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        """What happened to the table's mirror, outside a capture; the state behind it."""

    # -- orders -----------------------------------------------------------------------------

    def order_table(
        self,
        lease: Lease,
        table: TableName,
        kind: OrderKind,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
        supplier: Supplier | None = None,
    ) -> TableOrder:
        """Record what a person orders, and the state that follows at once.

        `PAUSE`: any → paused. An active table stops where the captures are, any other where it had
        stopped; what of it is not merged, and a write that was begun, waits until it is resumed,
        and `remedy` is kept that long. An open load of it is void. `RESUME`: have a paused or
        quarantined table caught up by the next capture; open until then. `schema` is the structure
        that it has from where it stopped, and `renames` the columns that had another name before.
        Given again before that, the newer one takes its place. `RELOAD`: have its mirror written
        again after the next capture, from `supplier`, open until then; one that is active stops at
        once.
        """

    def open_orders(self, source: str) -> list[TableOrder]:
        """Orders that no live batch carried out, oldest first."""

    # -- loads ------------------------------------------------------------------------------

    def order_load(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        with_past: bool = False,
    ) -> Load:
        """Have a table read from the source, also one that nothing was captured of. An open load
        of it that nothing was read for is the one; one that is being read is refused. `with_past`:
        after the changes that the log still has of it."""

    def load_without_past(self, lease: Lease, load: int) -> None:
        """The log does not have the past that was ordered with the load."""

    def open_loads(self, source: str) -> list[Load]:
        """Loads that no live batch joined and that are not void, oldest first."""

    def begin_load(self, lease: Lease, load: int, reading: LoadBasis) -> None:
        """From now on its chunks may be planned."""

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        """A chunk that begins where the one before it ends."""

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        """The chunk was read, and its files are durable. Once."""

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        """What was read for it counts no more; another one may be ordered."""

    # -- proofs -----------------------------------------------------------------------------

    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        """These tables were compared now. What was proven before stays where rows differ."""

    def proofs(self, source: str) -> list[TableProof]:
        """Of every table that was compared, by name; of all of it before samples."""

    # -- writes ------------------------------------------------------------------------------------
    # A write of a mirror is first an intent, then settled or given up; so is a revision: files that
    # stand in the place of recorded ones.

    # -- mirrors ----------------------------------------------------------------------------

    def pending(self, source: str) -> dict[TableName, list[int]]:
        """For each active or dropped table: captured batches with segments or events of it
        that no settled write covers, oldest first; and those that a table missed while
        it had stopped, whatever their state."""

    def open_intents(self, source: str) -> list[Intent]: ...

    def intend(self, lease: Lease, intents: Collection[Intent]) -> dict[TableName, Intent]:
        """Commit to these writes, all or none; the ids and each `txn_version` come from the
        ledger. At most one open intent per table."""

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
        """The intent's commit was read back from the lake at that version; `shows`: the
        schema version that the mirror has since, None for the one it had; `reason`: why it was
        written the way it was; `table_id`: of which Delta table that is a version; `looked`:
        nobody else committed to the mirror up to that version, which is noted as `note_looked`
        does."""

    def give_up(self, lease: Lease, table: TableName) -> None:
        """The table's open write is never made: the next one takes its batches. None open
        there changes nothing."""

    def intended(self, source: str, batch: int) -> list[Intent]:
        """All writes that cover a batch, in their order: settled, open or given up. A batch that
        one of a table which it touched covers is not abandoned any more."""

    def newest_writes(
        self, source: str, applications: Collection[str]
    ) -> dict[str, NewestWrites]: ...

    def newest_before(
        self, source: str, applications: Collection[str], batch: int
    ) -> MirrorVersion | None:
        """The newest version that a settled write of these applications made, and that shows
        nothing of the batch, or of a later one."""

    def pinned(self, source: str, write: int) -> MirrorVersion | None:
        """What that settled write made, which an intent recorded; None where it is forgotten."""

    def version_set(self, source: str, batch: int) -> VersionSet: ...

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[MirrorVersion]:
        """Return the versions of a table's mirrors that show it as of the ends of acknowledged
        batches up to `last`, newest first; each once, with the first of the batches. A version
        before which somebody else had committed to the mirror is not among them."""

    # -- upkeep -----------------------------------------------------------------------------

    def upkept(self, source: str) -> dict[str, int]:
        """Mirror → the newest Delta version that upkeep made of it."""

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        """A commit of upkeep shows the rows of the version `shows`, which a settled write made:
        version sets name the newest such version from here on. Repeating it changes nothing."""

    def clock(self) -> datetime:
        """What time it is where the ledger is."""

    # -- revisions --------------------------------------------------------------------------

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        """Commit to these files, which are durable, before any changelog has them. They belong to
        acknowledged batches; at most one revision of a source is open."""

    def revisions(self, source: str) -> Revisions: ...

    def end_revision(self, lease: Lease, revision: Revision, *, settled: bool) -> None:
        """`settled`: every changelog has the files: they are those of their segments from now on.
        Otherwise no changelog has any of them, and none will."""

    # -- catalogs ---------------------------------------------------------------------------

    def registrations(self, source: str, catalog: str) -> Registrations: ...

    def note_registration(
        self, lease: Lease, catalog: str, table: TableName, entry: Registered | None
    ) -> None:
        """The table's entry is this, or is being made; it replaces what was known of the table.
        None: it has no entry, or has none any more."""

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None: ...

    # -- the lake ---------------------------------------------------------------------------

    def identity(self) -> str:
        """The ledger's own name, a UUID that was made with it."""

    def looked(self, source: str) -> dict[str, int]:
        """Folder → the Delta version up to which its log was looked at."""

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        """From here on; None forgets a folder, which is not there any more."""

    def left_at(self, source: str, folders: Sequence[str]) -> dict[str, datetime | None]:
        """Folder of a mirror → when a version set was acknowledged since which none names it; None
        while the newest does. Without folders that no version set names."""

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        """The next batch and the next write have numbers above these."""

    def inherit(self, lease: Lease, spans: Iterable[BatchSpan]) -> None:
        """The changes of these batches, which earlier ledgers captured, count for this ledger.
        Replaces what was inherited before."""

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        """Those batches, oldest first; none unless the ledger was made from its lake."""

    # -- changes that are kept no longer -----------------------------------------------------------
    # Changes of batches up to `forgotten(source).through` may be gone; nobody reads them, whether
    # their files are still there or not.

    def forgotten(self, source: str, table: TableName | None = None) -> ForgottenNotes:
        """With a table, what is forgotten of it alone counts, too (`begin_clearing`)."""

    def forgettable(self, source: str, moment: datetime) -> Forgettable:
        """Which changes were acknowledged before a moment, and who needs some for all that."""

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        """The files of acknowledged batches behind `above` up to `through`, replaced ones too."""

    def forget(self, lease: Lease, through: int) -> None:
        """Changes up to that batch are kept no longer, from here on. Refused while somebody needs
        one of them, and where those of the note before are still listed."""

    def note_forgotten(self, lease: Lease, done: ForgottenStep, through: int) -> None:
        """What became of the changes up to a batch that `forget` noted, one step after the other.
        Repeating it changes nothing."""

    def prune(self, lease: Lease, rows: Prunable, above: int, through: int, most: int) -> Pruned:
        """Look at the next `most` batches, or leases, after the number `above`, and delete those
        rows that nobody can ask for, since what was forgotten up to the batch `through` is
        deleted. Repeating it changes nothing."""

    # -- tables of which less is shown than before -------------------------------------------------

    def in_clear(self, source: str) -> list[InClear]:
        """Tightenings after which values of before are not cleared, those that a person keeps
        among them, by table and oldest first."""

    def note_tightened(self, lease: Lease, tightening: Tightening) -> None:
        """From now on less is shown of a table than of what was captured up to a batch."""

    def note_keep_clear(self, lease: Lease, note: int, reason: str | None) -> None:
        """Why a person has what was captured before stay in clear; None: it is cleared like any
        other. Refused once clearing it has begun."""

    def begin_clearing(self, lease: Lease, note: int) -> None:
        """From here on nobody is given those changes. Refused while somebody needs them; done
        before, it changes nothing."""

    def clear_files(self, lease: Lease, files: Sequence[ClearedFile]) -> None:
        """These files are in the place of those of before."""

    def ended_loads(self, source: str, table: TableName) -> list[tuple[int, TableSchema]]:
        """Loads of a table that are over, each with the structure that it was begun with."""

    def clear_books(self, lease: Lease, note: int, books: ClearedBooks) -> None:
        """The ledger has these values in the place of its own, no bounds of the chunks of those
        loads, and notes that a tightening is cleared."""

    def pruned_through(self, source: str) -> int:
        """Up to which batch such rows may be gone, and before which the batches themselves: nothing
        tells any more where most of those ended, and which versions of mirrors show it; 0 where all
        is told. The batch itself is there."""


def content_of(ledger: Ledger, source: str, batch: int) -> BatchContent:
    """What one batch recorded; nothing of one that is abandoned, or still capturing."""
    return next(iter(ledger.contents(source, batch, batch)), BatchContent(batch))


def contents_of(
    ledger: Ledger, source: str, table: TableName, first: int, last: int
) -> list[TableContent]:
    """What captured batches have of a table, oldest first; none that have nothing of it."""
    contents = ledger.contents(source, first, last, [table])
    return [content.by_table()[table] for content in contents]
