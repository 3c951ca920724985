"""What the memory ledger holds, and what its subjects share.

Belongs here: the content, and what several subjects ask of it. Does not: the calls of a
port, each in the module of its subject, with the rules that its steps obey; those are the
rules of `resources/postgres/migrations`, by the same names.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime
from uuid import UUID, uuid4

from pipeline.batch import Batch, BatchState, Prepared, Xid
from pipeline.catalog.values import Registered
from pipeline.claim import BatchSpan
from pipeline.decisions import Decision, Lease, LeaseView, Override, RecordedDecision
from pipeline.errors import LeaseLost
from pipeline.intent import Intent, MissingTable, SettledWrite, VersionSetEntry
from pipeline.life.events import Event
from pipeline.load import Load
from pipeline.position import SetWitness
from pipeline.proof.proven import TableProof
from pipeline.revision import Revision
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    Handover,
    SnapshotPart,
    TableCondition,
    TableEvent,
    TableOrder,
    TableState,
)
from pipeline.tables import TablePatterns
from resources.postgres.refusals import refusal
from tests.twins.consumer_entries import ConsumerEntry, DeliveryEntry

ENDED = (BatchState.CAPTURED, BatchState.MERGED, BatchState.ACKNOWLEDGED)
UNFINISHED = (BatchState.CAPTURING, BatchState.CAPTURED, BatchState.MERGED)
MERGEABLE = (TableCondition.ACTIVE, TableCondition.DROPPED)


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """An order, and the batch that carried it out."""

    source: str
    order: TableOrder
    done_batch: int | None = None


@dataclass(frozen=True, slots=True)
class LoadEntry:
    """A load, the batch that joined it, and why it is void."""

    source: str
    load: Load
    joined_batch: int | None = None
    void: str | None = None

    @property
    def open(self) -> bool:
        return self.joined_batch is None and self.void is None


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision, and whether it is open, settled or given up."""

    source: str
    revision: Revision
    state: str = "open"

    @property
    def open(self) -> bool:
        return self.state == "open"


@dataclass(frozen=True, slots=True)
class ForgottenEntry:
    """Up to which batch a source's changes are kept no longer, and what was done to them."""

    source: str
    through: int
    unlisted_at: datetime | None = None
    deleted: bool = False
    pruned: bool = False


@dataclass(slots=True)
class MemoryBooks:
    """One ledger's content, shared by the `MemoryLedger`s that are opened on it."""

    leases: dict[str, LeaseView] = field(default_factory=dict)
    runs: dict[tuple[str, int], tuple[str | None, bool]] = field(default_factory=dict)
    """Of each lease, by its source and token, its run, and whether Dagster records that."""
    wrote: dict[int, int] = field(default_factory=dict)
    """The token under which each intent was opened."""
    gtids_off: dict[str, datetime] = field(default_factory=dict)
    decisions: list[tuple[str, RecordedDecision]] = field(default_factory=list)
    overrides: dict[int, tuple[str, Override]] = field(default_factory=dict)
    batches: dict[int, Batch] = field(default_factory=dict)
    segments: dict[int, tuple[Segment, ...]] = field(default_factory=dict)
    source_parts: dict[int, tuple[SourcePart, ...]] = field(default_factory=dict)
    states: dict[tuple[str, TableName], TableState] = field(default_factory=dict)
    lives: dict[tuple[str, TableName], tuple[tuple[int | None, Event], ...]] = field(
        default_factory=dict
    )
    versions: dict[tuple[str, TableName], tuple[SchemaVersion, ...]] = field(default_factory=dict)
    statements: dict[int, tuple[str, SchemaStatement]] = field(default_factory=dict)
    databases: list[tuple[str, DatabaseVersion]] = field(default_factory=list)
    events: dict[int, tuple[TableEvent, ...]] = field(default_factory=dict)
    snapshots: dict[int, tuple[SnapshotPart, ...]] = field(default_factory=dict)
    extents: list[tuple[str, int, Extent]] = field(default_factory=list)
    proofs: dict[tuple[str, TableName, bool], TableProof] = field(default_factory=dict)
    handovers: dict[int, tuple[Handover, ...]] = field(default_factory=dict)
    orders: dict[int, OrderEntry] = field(default_factory=dict)
    prepared: dict[tuple[int, Xid], tuple[str, Prepared]] = field(default_factory=dict)
    ended_by: dict[tuple[int, Xid], int] = field(default_factory=dict)
    loads: dict[int, LoadEntry] = field(default_factory=dict)
    scopes: dict[int, TablePatterns] = field(default_factory=dict)
    set_witnesses: dict[int, tuple[SetWitness, ...]] = field(default_factory=dict)
    intents: dict[int, tuple[str, Intent]] = field(default_factory=dict)
    intended_at: dict[int, datetime] = field(default_factory=dict)
    settled: dict[int, SettledWrite] = field(default_factory=dict)
    revisions: dict[int, RevisionEntry] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    upkept: dict[tuple[str, str, int], int] = field(default_factory=dict)
    spark_clients: dict[tuple[str, UUID], int] = field(default_factory=dict)
    registrations: dict[tuple[str, str], dict[TableName, Registered]] = field(default_factory=dict)
    registered_up_to: dict[tuple[str, str], int] = field(default_factory=dict)
    forgotten: list[ForgottenEntry] = field(default_factory=list)
    written: dict[int, VersionSetEntry] = field(default_factory=dict)
    version_sets: dict[int, tuple[VersionSetEntry | MissingTable, ...]] = field(
        default_factory=dict
    )
    looked: dict[tuple[str, str], int] = field(default_factory=dict)
    inherited: dict[str, tuple[BatchSpan, ...]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    consumers: dict[int, ConsumerEntry] = field(default_factory=dict)
    deliveries: dict[int, DeliveryEntry] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: str(uuid4()))
    turn: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of a step or nothing of it, one step at a time."""
        with self.turn:
            before = {name: getattr(self, name).copy() for name in _CONTENT}
            try:
                yield
            except BaseException:
                for name, content in before.items():
                    setattr(self, name, content)
                raise

    def next_number(self, kind: str, given: int) -> int:
        """The next one of a sequence that gave so many."""
        return given + 1 + self.skipped.get(kind, 0)

    def skip_to(self, kind: str, given: int, number: int) -> None:
        """The next one is above that."""
        self.skipped[kind] = max(self.skipped.get(kind, 0), number - given)

    def went(self, kind: str, number: int) -> None:
        """So many of a sequence were deleted: their numbers are not given again."""
        self.skipped[kind] = self.skipped.get(kind, 0) + number

    def forgotten_through(self, source: str) -> int:
        """Up to which batch changes are kept no longer; 0 where all are kept."""
        return max((one.through for one in self.forgotten if one.source == source), default=0)

    def pruned_through(self, source: str) -> int:
        """Up to which batch the files of such changes are gone as well."""
        gone = (one.through for one in self.forgotten if one.source == source and one.deleted)
        return max(gone, default=0)

    def of_source(self, source: str, *states: BatchState) -> list[Batch]:
        """The source's batches in these states (all without any), oldest first."""
        return [
            batch
            for batch in self.batches.values()
            if batch.source == source and (not states or batch.state in states)
        ]

    def live(self, source: str) -> list[Batch]:
        """The source's batches that are not abandoned, oldest first."""
        return [one for one in self.of_source(source) if one.state is not BatchState.ABANDONED]

    def begun(self, source: str) -> list[tuple[Decision, Batch]]:
        """The source's live batches that a decision began, with it."""
        return [
            (self.decision(batch.start_decision).decision, batch)
            for batch in self.live(source)
            if batch.start_decision is not None
        ]

    def batch(self, source: str, number: int) -> Batch:
        batch = self.batches.get(number)
        if batch is None or batch.source != source:
            raise refusal("batches_known")
        return batch

    def decision(self, number: int | None) -> RecordedDecision:
        return next(one for _, one in self.decisions if one.id == number)

    def writes(self, source: str, table: TableName) -> list[SettledWrite]:
        return [
            write
            for number, write in self.settled.items()
            if self.intents[number][0] == source and write.intent.table == table
        ]

    def is_open(self, intent: int) -> bool:
        return intent not in self.settled and intent not in self.given_up

    def give_up(self, source: str, table: TableName) -> None:
        """The table's open write, if there is one."""
        for number, (of, intent) in self.intents.items():
            if of == source and intent.table == table and self.is_open(number):
                self.given_up.add(number)

    def touched(self, batch: int) -> set[TableName]:
        """Tables with segments or events in the batch."""
        found = {segment.table for segment in self.segments.get(batch, ())}
        return found | {event.table for event in self.events.get(batch, ())}

    def covered(self, source: str, table: TableName, batch: int) -> bool:
        """Whether a settled merge covers the batch."""
        return any(
            covers(write.intent, batch)
            and (write.intent.step, write.intent.table) == ("merge", table)
            and self.intents[number][0] == source
            for number, write in self.settled.items()
        )

    def waiting(self, batch: Batch) -> set[TableName]:
        """Tables that a captured batch waits for."""
        return {
            table
            for table in self.touched(batch.id)
            if self.states[batch.source, table].condition in MERGEABLE
            and not self.covered(batch.source, table, batch.id)
        }

    def missed(self, state: TableState, source: str) -> list[int]:
        """Batches that a table's mirror lacks although the others have gone on."""
        if state.behind is None or state.condition not in MERGEABLE:
            return []
        return [
            one.id
            for one in self.of_source(source, *ENDED)
            if one.id >= state.behind
            and state.table in self.touched(one.id)
            and not self.covered(source, state.table, one.id)
        ]

    def behind(self, source: str, table: TableName, since: int | None) -> int | None:
        """The oldest live batch from `since` on with something of the table that no settled
        write covers; without `since`, the oldest of those that are not merged."""
        if since is None:
            since = next((one.id for one in self.of_source(source, *UNFINISHED)), None)
        for one in self.of_source(source, BatchState.CAPTURING, *ENDED):
            if (
                since is not None
                and one.id >= since
                and table in self.touched(one.id)
                and not self.covered(source, table, one.id)
            ):
                return one.id
        return None


_CONTENT = tuple(one.name for one in fields(MemoryBooks) if one.name not in ("identity", "turn"))


def covers(intent: Intent, batch: int) -> bool:
    return intent.first_batch <= batch <= intent.last_batch


class MemorySubject:
    """One subject of the ledger: books that several ledgers may share, as processes share a
    database."""

    def __init__(self, clock: Callable[[], datetime], books: MemoryBooks | None = None) -> None:
        self._clock = clock
        self.books = MemoryBooks() if books is None else books

    @contextmanager
    def _step(self, lease: Lease) -> Iterator[MemoryBooks]:
        with self.books.transaction():
            current = self.books.leases.get(lease.source)
            if current is None or current.token != lease.token:
                raise LeaseLost(
                    f"Another run took over the source {lease.source!r}; "
                    "nothing of this one was recorded after that.",
                    hint="Let the other run finish; `lockstep status` shows it.",
                )
            yield self.books
