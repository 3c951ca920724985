"""What the memory ledger holds, and the rules its steps obey.

The rules are those of `resources/postgres/migrations`, by the same names. Belongs
here: state and checks. Does not: the port's calls, which are in `ledger`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime
from uuid import uuid4

from pipeline.batch import TRANSITIONS, Batch, BatchState, CaptureRecord, Prepared, Xid
from pipeline.decisions import LeaseView, Override, RecordedDecision
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.position import Position, SetWitness
from pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
)
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
from resources.ledger_rules import refusal
from resources.memory.consumer_entries import ConsumerEntry, DeliveryEntry

_MOVES = frozenset((before, after) for (before, _), after in TRANSITIONS.items())
ENDED = (BatchState.CAPTURED, BatchState.MERGED, BatchState.ACKNOWLEDGED)
_MERGEABLE = (TableCondition.ACTIVE, TableCondition.DROPPED)


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """An order, the batch that carried it out, and the table's state before that."""

    source: str
    order: TableOrder
    done_batch: int | None = None
    before: TableState | None = None


@dataclass(slots=True)
class MemoryBooks:
    """One ledger's content, shared by the `MemoryLedger`s that are opened on it."""

    leases: dict[str, LeaseView] = field(default_factory=dict)
    gtids_off: dict[str, datetime] = field(default_factory=dict)
    decisions: list[tuple[str, RecordedDecision]] = field(default_factory=list)
    overrides: dict[int, tuple[str, Override]] = field(default_factory=dict)
    batches: dict[int, Batch] = field(default_factory=dict)
    segments: dict[int, tuple[Segment, ...]] = field(default_factory=dict)
    source_parts: dict[int, tuple[SourcePart, ...]] = field(default_factory=dict)
    states: dict[tuple[str, TableName], TableState] = field(default_factory=dict)
    versions: dict[tuple[str, TableName], tuple[SchemaVersion, ...]] = field(default_factory=dict)
    statements: dict[int, tuple[str, SchemaStatement]] = field(default_factory=dict)
    databases: list[tuple[str, DatabaseVersion]] = field(default_factory=list)
    events: dict[int, tuple[TableEvent, ...]] = field(default_factory=dict)
    snapshots: dict[int, tuple[SnapshotPart, ...]] = field(default_factory=dict)
    extents: list[tuple[str, int, Extent]] = field(default_factory=list)
    handovers: dict[int, tuple[Handover, ...]] = field(default_factory=dict)
    orders: dict[int, OrderEntry] = field(default_factory=dict)
    prepared: dict[tuple[int, Xid], tuple[str, Prepared]] = field(default_factory=dict)
    ended_by: dict[tuple[int, Xid], int] = field(default_factory=dict)
    scopes: dict[int, TablePatterns] = field(default_factory=dict)
    set_witnesses: dict[int, tuple[SetWitness, ...]] = field(default_factory=dict)
    intents: dict[int, tuple[str, Intent]] = field(default_factory=dict)
    settled: dict[int, SettledWrite] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    version_sets: dict[int, tuple[VersionSetEntry, ...]] = field(default_factory=dict)
    looked: dict[tuple[str, str], int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    consumers: dict[int, ConsumerEntry] = field(default_factory=dict)
    deliveries: dict[int, DeliveryEntry] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: str(uuid4()))
    turn: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of a step or nothing of it, one step at a time."""
        kept = [one.name for one in fields(self) if one.name not in ("identity", "turn")]
        with self.turn:
            before = {name: getattr(self, name).copy() for name in kept}
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

    def of_source(self, source: str, *states: BatchState) -> list[Batch]:
        """The source's batches in these states (all without any), oldest first."""
        return [
            batch
            for batch in self.batches.values()
            if batch.source == source and (not states or batch.state in states)
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
            write.intent.step == "merge" and covers(write.intent, batch)
            for write in self.writes(source, table)
        )

    def waiting(self, batch: Batch) -> set[TableName]:
        """Tables that a captured batch waits for."""
        return {
            table
            for table in self.touched(batch.id)
            if self.states[batch.source, table].condition in _MERGEABLE
            and not self.covered(batch.source, table, batch.id)
        }

    def missed(self, state: TableState, source: str) -> list[int]:
        """Batches that a table's mirror lacks although the others have gone on."""
        if state.behind is None or state.condition not in _MERGEABLE:
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
            unmerged = (BatchState.CAPTURING, BatchState.CAPTURED, BatchState.MERGED)
            since = next((one.id for one in self.of_source(source, *unmerged)), None)
        for one in self.of_source(source, BatchState.CAPTURING, *ENDED):
            if (
                since is not None
                and one.id >= since
                and table in self.touched(one.id)
                and not self.covered(source, table, one.id)
            ):
                return one.id
        return None

    # -- rules -----------------------------------------------------------------------

    def may_begin(
        self, source: str, start: Position, predecessor: int | None, decision: int | None
    ) -> tuple[int, int | None]:
        """The new batch's base, and the batch it follows; or a refusal."""
        live = [one for one in self.of_source(source) if one.state is not BatchState.ABANDONED]
        if (predecessor is None) == (decision is None):
            raise refusal("batches_one_origin")
        base, follows = 0, predecessor
        if predecessor is not None:
            before = self.batches.get(predecessor)
            if before is not None and before.state not in ENDED:
                raise refusal("batches_predecessor_captured")
            if before is None or before.source != source or _place(before.end) != _place(start):
                raise refusal("batches_start_at_predecessors_end")
            base = before.base + before.changes
        elif not any(one == source and it.id == decision for one, it in self.decisions):
            raise refusal("batches_start_decision")
        else:
            follows = self._decided(decision, live)
            if follows is not None:
                before = self.batches[follows]
                if before.state not in ENDED:
                    raise refusal("batches_predecessor_captured")
                base = before.base + before.changes
        if any(one.state is BatchState.CAPTURING for one in live):
            raise refusal("batches_one_capturing")
        if any(one.start_decision == decision for one in live if decision is not None):
            raise refusal("batches_one_per_decision")
        if follows is not None and any(one.follows == follows for one in live):
            raise refusal("batches_one_successor")
        if follows is None and live:
            raise refusal("batches_one_chain")
        return base, follows

    def _decided(self, number: int | None, live: list[Batch]) -> int | None:
        """What the start decision of that number follows."""
        decision = self.decision(number).decision
        if decision.kind != "start":
            raise refusal("batches_start_decided")
        taken = [one.start_decision for one in live if one.start_decision is not None]
        override = decision.override
        if override and any(self.decision(one).decision.override == override for one in taken):
            raise refusal("overrides_once")
        return decision.follows

    def may_move(self, batch: Batch, state: BatchState) -> None:
        if (batch.state, state) not in _MOVES:
            raise refusal("batches_move_forward")
        if state is BatchState.ABANDONED:
            self._may_be_abandoned(batch)
        if (
            state is BatchState.ACKNOWLEDGED
            and batch.follows is not None
            and self.batches[batch.follows].state is not BatchState.ACKNOWLEDGED
        ):
            raise refusal("batches_acknowledged_in_order")

    def _may_be_abandoned(self, batch: Batch) -> None:
        for other in self.of_source(batch.source):
            if other.follows == batch.id and other.state is not BatchState.ABANDONED:
                raise refusal("batches_abandoned_newest_first")
        tables = self.touched(batch.id)
        for source, intent in self.intents.values():
            if source == batch.source and intent.table in tables and covers(intent, batch.id):
                raise refusal("batches_abandoned_unmerged")

    def may_capture(self, batch: Batch, record: CaptureRecord) -> None:
        """The record fits its batch; its tables and versions are already recorded."""
        if min(record.changes, record.transactions, record.log_bytes) < 0:
            raise refusal("batches_totals_count")
        ends, starts = record.end.at, batch.start.at
        if (ends.file.number, ends.offset) < (starts.file.number, starts.offset):
            raise refusal("batches_end_not_before_start")
        seen: set[tuple[TableName, int]] = set()
        for segment in record.segments:
            versions = self.versions.get((batch.source, segment.table), ())
            if (batch.source, segment.table) not in self.states:
                raise refusal("segments_table")
            found = [one for one in versions if one.version == segment.schema_version]
            if not found:
                raise refusal("segments_version")
            (version,) = found
            if version.knowledge is not Knowledge.KNOWN:
                raise refusal("segments_of_known_versions")
            if (segment.table, segment.schema_version) in seen:
                raise refusal("segments_once")
            seen.add((segment.table, segment.schema_version))
            if segment.first_sequence > segment.last_sequence:
                raise refusal("segments_sequences_ascend")
            if (
                segment.first_sequence <= batch.base
                or segment.last_sequence > batch.base + record.changes
            ):
                raise refusal("batches_sequences_within")

    def may_intend(self, source: str, intent: Intent) -> None:
        state = self.states.get((source, intent.table))
        missed = self.missed(state, source) if state is not None else []
        for number in (intent.first_batch, intent.last_batch):
            batch = self.batches.get(number)
            if batch is None or batch.source != source:
                raise refusal("writes_first_batch")
            if batch.state is not BatchState.CAPTURED and number not in missed:
                raise refusal("writes_of_captured_batches")
        if intent.first_batch > intent.last_batch:
            raise refusal("writes_batches_ascend")
        if state is None:
            raise refusal("writes_table")
        if state.condition not in _MERGEABLE:
            raise refusal("writes_of_active_tables")
        for number, (other_source, other) in self.intents.items():
            if other_source != source or other.table != intent.table:
                continue
            if self.is_open(number):
                raise refusal("writes_one_open")
            if number in self.given_up:
                continue
            if (other.app_id, other.step) == (intent.app_id, intent.step) and (
                other.first_batch <= intent.last_batch and intent.first_batch <= other.last_batch
            ):
                raise refusal("writes_never_overlap")


def covers(intent: Intent, batch: int) -> bool:
    return intent.first_batch <= batch <= intent.last_batch


def _place(position: Position | None) -> tuple[object, ...] | None:
    """What two positions must share to be the same place; not the moment."""
    if position is None:
        return None
    return position.at, str(position.gtid_set), position.server_uuid
