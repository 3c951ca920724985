"""The ledger in memory: `pipeline.ports.Ledger` over `MemoryBooks`.

Does not belong here: the rules of order, which are in `books`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from pipeline.batch import Batch, BatchKind, BatchState, CaptureRecord, Cursor, Prepared
from pipeline.coverage import CaptureScope
from pipeline.decisions import Decision, Lease, LeaseView, Override, RecordedDecision
from pipeline.errors import LeaseLost, Remedy, SourceBusy
from pipeline.gaps import Gap
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.position import Coordinates, Lineage, Position, SetWitness
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    OrderKind,
    SetAside,
    SnapshotPart,
    TableEvent,
    TableOrder,
    TableState,
)
from resources.ledger_rules import as_told, refusal
from resources.memory import continuity, history, orders
from resources.memory.books import ENDED, MemoryBooks, covers
from resources.memory.consumers import MemoryConsumers
from resources.memory.entries import (
    begin_anew,
    end_mirror,
    partial_of,
    quarantine,
    record_extents,
    record_handovers,
    record_state,
    renew_mirror,
    settle_state,
    source_parts_of,
    take_back_handovers,
    version_set_of,
)
from resources.memory.prepared import (
    abandon_prepared,
    ended_prepared,
    open_prepared,
    record_prepared,
)


class MemoryLedger:
    """A ledger on books that several of them may share, as processes share a database."""

    def __init__(self, clock: Callable[[], datetime], books: MemoryBooks | None = None) -> None:
        self._clock = clock
        self.books = MemoryBooks() if books is None else books
        self.consumers = MemoryConsumers(clock, self.books)

    @contextmanager
    def lock(self, source: str, holder: str, dagster_run: str | None) -> Iterator[Lease]:
        with self.books.transaction():
            last = self.books.leases.get(source)
            if last is not None and last.live:
                run = f", Dagster run {last.dagster_run}" if last.dagster_run else ""
                raise SourceBusy(
                    f"The source {source!r} is busy: {last.holder}{run}, since "
                    f"{last.taken_at:%Y-%m-%d %H:%M:%S} UTC.",
                    hint="Wait for that run to end, then run again; `lockstep status` shows it.",
                )
            token = last.token + 1 if last is not None else 1
            now = self._clock()
            view = LeaseView(token, holder, dagster_run, now, live=True, beat_at=now)
            self.books.leases[source] = view
        try:
            yield Lease(source, token, holder, dagster_run)
        finally:
            with self.books.transaction():
                if self.books.leases[source].token == token:
                    self.lose_lock(source)

    def lose_lock(self, source: str) -> None:
        """What the end of the holder's connection does."""
        self.books.leases[source] = replace(self.books.leases[source], live=False)

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

    def require_held(self, lease: Lease) -> None:
        with self._step(lease):
            pass

    # -- reads -----------------------------------------------------------------------

    def lease(self, source: str) -> LeaseView | None:
        return self.books.leases.get(source)

    def captured_cursor(self, source: str) -> Cursor | None:
        return continuity.cursor_at(self.books, source, *ENDED)

    def acknowledged_cursor(self, source: str) -> Cursor | None:
        return continuity.cursor_at(self.books, source, BatchState.ACKNOWLEDGED)

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        return self.books.of_source(source)[::-1][:limit]

    def unfinished(self, source: str) -> list[Batch]:
        return self.books.of_source(
            source, BatchState.CAPTURING, BatchState.CAPTURED, BatchState.MERGED
        )

    def live_batches(self, source: str, first: int, last: int) -> list[Batch]:
        return [
            batch
            for batch in self.books.of_source(source)
            if first <= batch.id <= last and batch.state is not BatchState.ABANDONED
        ]

    def batches_of(self, source: str, table: TableName) -> list[Batch]:
        return [
            batch
            for batch in self.books.of_source(source, *ENDED)
            if table in self.books.touched(batch.id)
        ]

    def segments(self, batch: int) -> list[Segment]:
        return list(self.books.segments.get(batch, ()))

    def source_parts(self, batch: int) -> list[SourcePart]:
        return list(self.books.source_parts.get(batch, ()))

    def table_states(self, source: str) -> dict[TableName, TableState]:
        found = {table: state for (of, table), state in self.books.states.items() if of == source}
        return dict(sorted(found.items()))

    def partial(self, source: str) -> list[Extent]:
        return list(partial_of(self.books, source))

    def open_prepared(self, source: str) -> list[Prepared]:
        return open_prepared(self.books, source)

    def ended_prepared(self, batch: int) -> list[Prepared]:
        return ended_prepared(self.books, batch)

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]:
        return [one for of, one in reversed(self.books.decisions) if of == source][:limit]

    def open_override(self, source: str) -> Override | None:
        return continuity.open_override(self.books, source)

    def gaps(self, source: str) -> list[Gap]:
        return continuity.gaps(self.books, source)

    def overlaps(self, source: str) -> list[Batch]:
        return continuity.overlaps(self.books, source)

    def lineage(self, source: str) -> Lineage:
        return continuity.lineage(self.books, source)

    def set_witnesses(self, source: str, batch: int) -> list[SetWitness]:
        return continuity.set_witnesses(self.books, source, batch)

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        return continuity.capture_scopes(self.books, source)

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        return continuity.captured_by(self.books, source, dagster_run)

    def reaching(self, source: str, server_uuid: str, moment: datetime) -> Batch | None:
        return continuity.reaching(self.books, source, server_uuid, moment)

    def pending(self, source: str) -> dict[TableName, list[int]]:
        found: dict[TableName, set[int]] = {}
        for batch in self.books.of_source(source, BatchState.CAPTURED):
            for table in self.books.waiting(batch):
                found.setdefault(table, set()).add(batch.id)
        for table, state in self.table_states(source).items():
            if missed := self.books.missed(state, source):
                found.setdefault(table, set()).update(missed)
        return {table: sorted(numbers) for table, numbers in sorted(found.items())}

    def open_intents(self, source: str) -> list[Intent]:
        return [
            intent
            for number, (of, intent) in self.books.intents.items()
            if of == source and self.books.is_open(number)
        ]

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        return [
            write
            for number, write in sorted(self.books.settled.items())
            if self.books.intents[number][0] == source and covers(write.intent, batch)
        ]

    def last_settled(self, source: str, app_id: str) -> SettledWrite | None:
        found = [
            write
            for number, write in self.books.settled.items()
            if self.books.intents[number][0] == source and write.intent.app_id == app_id
        ]
        return max(found, key=lambda write: write.delta_version, default=None)

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]:
        known = self.books.batches.get(batch)
        if known is None or known.source != source:
            return []
        return list(self.books.version_sets.get(batch, ()))

    # -- the lake ----------------------------------------------------------------------

    def identity(self) -> str:
        return self.books.identity

    def looked(self, source: str) -> dict[str, int]:
        return {folder: at for (of, folder), at in self.books.looked.items() if of == source}

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        with self._step(lease) as books:
            for folder, version in looked.items():
                if version is None:
                    books.looked.pop((lease.source, folder), None)
                else:
                    books.looked[lease.source, folder] = version

    def last_intended(self, source: str, app_id: str) -> int:
        found = [
            intent.txn_version
            for of, intent in self.books.intents.values()
            if of == source and intent.app_id == app_id
        ]
        return max(found, default=0)

    def begin_anew(self, lease: Lease, table: TableName) -> None:
        with self._step(lease) as books:
            begin_anew(books, lease.source, table)

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        with self._step(lease) as books:
            books.skip_to("batch", len(books.batches), batch)
            books.skip_to("write", len(books.intents), txn_version)

    # -- the history of structures -----------------------------------------------------

    def has_history(self, source: str) -> bool:
        return history.has_history(self.books, source)

    def last_versions(self, source: str) -> dict[TableName, int]:
        return {
            table: len(known) for (of, table), known in self.books.versions.items() if of == source
        }

    def schema_at(
        self, source: str, table: TableName, *, batch: int, place: Coordinates
    ) -> SchemaVersion | None:
        return history.schema_at(self.books, source, table, history.until(batch, place))

    def schemas_at(self, source: str, *, batch: int, place: Coordinates) -> list[SchemaVersion]:
        return history.schemas_at(self.books, source, history.until(batch, place))

    def newest_schema(self, source: str, table: TableName) -> SchemaVersion | None:
        return history.schema_at(self.books, source, table, history.everything)

    def newest_schemas(self, source: str) -> list[SchemaVersion]:
        return history.schemas_at(self.books, source, history.everything)

    def referring_schemas(self, source: str) -> list[SchemaVersion]:
        return [
            one for one in self.newest_schemas(source) if one.schema and one.schema.foreign_keys
        ]

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        return history.schema_version(self.books, source, table, number)

    def schema_versions(self, source: str, table: TableName) -> list[SchemaVersion]:
        return history.versions_of(self.books, source, table)

    def databases(self, source: str) -> list[DatabaseVersion]:
        return history.databases_at(self.books, source, history.everything)

    def databases_at(self, source: str, *, batch: int, place: Coordinates) -> list[DatabaseVersion]:
        return history.databases_at(self.books, source, history.until(batch, place))

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        found = history.statements(self.books, source)
        return [one for one in found if one.id > after][:limit]

    def statement(self, source: str, number: int) -> SchemaStatement:
        return history.statement(self.books, source, number)

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        return history.batch_covering(self.books, source, server_uuid, at)

    def table_events(self, source: str, batch: int) -> list[TableEvent]:
        known = self.books.batches.get(batch)
        return list(self.books.events.get(batch, ())) if known and known.source == source else []

    def snapshots(self, source: str, batch: int) -> list[SnapshotPart]:
        known = self.books.batches.get(batch)
        return list(self.books.snapshots.get(batch, ())) if known and known.source == source else []

    def open_orders(self, source: str) -> list[TableOrder]:
        return orders.open_orders(self.books, source)

    # -- writes ----------------------------------------------------------------------

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        with self._step(lease) as books:
            continuity.may_decide(books, lease.source, decision)
            recorded = RecordedDecision(len(books.decisions) + 1, self._clock(), decision)
            books.decisions.append((lease.source, recorded))
            return recorded

    def note_gtids_off(self, lease: Lease) -> None:
        with self._step(lease) as books:
            books.gtids_off[lease.source] = self._clock()

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        with self._step(lease) as books:
            number = len(books.overrides) + 1
            choice = Override(number, place, reason, author, self._clock())
            continuity.choose(books, lease.source, choice)
            return choice

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        with self._step(lease) as books:
            if kind is BatchKind.CATCHING_UP and start_decision is None:
                raise refusal("batches_catch_up_decided")
            base, follows = books.may_begin(lease.source, start, predecessor, start_decision)
            decided = start_decision and books.decision(start_decision).decision
            batch = Batch(
                id=books.next_number("batch", len(books.batches)),
                source=lease.source,
                state=BatchState.CAPTURING,
                start=start,
                predecessor=predecessor,
                start_decision=start_decision,
                base=base,
                token=lease.token,
                dagster_run=books.leases[lease.source].dagster_run,
                created_at=self._clock(),
                follows=follows,
                continuity=decided.continuity if decided else None,
                kind=kind,
            )
            books.batches[batch.id] = batch
            return batch

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        with self._step(lease) as books:
            begun = books.batch(lease.source, batch)
            if begun.state is not BatchState.CAPTURING and record.segments:
                raise refusal("segments_while_capturing")
            if begun.state is not BatchState.CAPTURING and record.source_parts:
                raise refusal("source_files_while_capturing")
            for order in record.orders_done:
                orders.carry_out(books, begun, order)
            for state in record.tables:
                record_state(books, lease.source, as_told(state, batch, record.end.at))
            history.record_history(books, begun, record)
            record_handovers(books, begun, record)
            history.record_events(books, begun, record)
            record_prepared(books, begun, record)
            record_extents(books, begun, record.extents)
            continuity.record_scope(books, begun, record)
            continuity.record_set_witnesses(books, begun, record)
            books.may_move(begun, BatchState.CAPTURED)
            books.may_capture(begun, record)
            books.segments[batch] = record.segments
            books.source_parts[batch] = source_parts_of(record)
            for aside in record.set_aside:
                quarantine(books, lease.source, aside, begun)
            books.batches[batch] = replace(
                begun,
                state=BatchState.CAPTURED,
                end=record.end,
                witness=record.witness,
                changes=record.changes,
                transactions=record.transactions,
                log_bytes=record.log_bytes,
                captured_at=self._clock(),
                by_gtid=record.by_gtid,
                life=record.life,
            )

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            books.may_move(known, BatchState.ABANDONED)
            books.batches[batch] = replace(known, state=BatchState.ABANDONED)
            abandon_prepared(books, batch)
            orders.abandon_states(books, known)
            take_back_handovers(books, known)

    def set_aside(self, lease: Lease, set_aside: SetAside) -> None:
        with self._step(lease) as books:
            quarantine(books, lease.source, set_aside)
            books.give_up(lease.source, set_aside.table)

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
        with self._step(lease) as books:
            number = len(books.intents) + 1
            txn = books.next_number("write", len(books.intents))
            intent = Intent(number, table, app_id, txn, first_batch, last_batch, step)
            books.may_intend(lease.source, intent)
            books.intents[number] = (lease.source, intent)
            return intent

    def settle(
        self, lease: Lease, intent: Intent, delta_version: int, *, shows: int | None = None
    ) -> None:
        with self._step(lease) as books:
            if books.intents.get(intent.id) != (lease.source, intent):
                raise refusal("writes_known")
            before = books.settled.get(intent.id)
            if before is not None and before.delta_version == delta_version:
                return
            if before is not None:
                raise refusal("writes_settled_once")
            if intent.id in books.given_up:
                raise refusal("writes_given_up_once")
            for write in books.settled.values():
                if write.intent.app_id == intent.app_id and write.delta_version >= delta_version:
                    raise refusal("writes_delta_version_ascends")
            books.settled[intent.id] = SettledWrite(intent, delta_version, self._clock())
            settle_state(books, lease.source, intent.table, shows)

    def mark_merged(self, lease: Lease) -> list[int]:
        with self._step(lease) as books:
            moved = [
                batch
                for batch in books.of_source(lease.source, BatchState.CAPTURED)
                if not books.waiting(batch)
            ]
            for batch in moved:
                books.batches[batch.id] = replace(
                    batch, state=BatchState.MERGED, merged_at=self._clock()
                )
            return [batch.id for batch in moved]

    def acknowledge(self, lease: Lease, batch: int) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            books.may_move(known, BatchState.ACKNOWLEDGED)
            books.batches[batch] = replace(
                known, state=BatchState.ACKNOWLEDGED, acknowledged_at=self._clock()
            )
            books.version_sets[batch] = tuple(version_set_of(books, known))

    def renew_mirror(self, lease: Lease, table: TableName, mirror: str) -> TableState:
        with self._step(lease) as books:
            return renew_mirror(books, lease.source, table, mirror)

    def give_up(self, lease: Lease, table: TableName) -> None:
        with self._step(lease) as books:
            books.give_up(lease.source, table)

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            record_extents(books, known, [Extent(table, None) for table in tables])

    def end_mirror(self, lease: Lease, table: TableName) -> None:
        with self._step(lease) as books:
            end_mirror(books, lease.source, table)

    def pause_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.PAUSE, author, reason, remedy=remedy)

    def reload_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.RELOAD, author, reason)

    def resume_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.RESUME, author, reason)

    def release_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.RELEASE, author, reason, schema, renames)

    def _order(
        self,
        lease: Lease,
        table: TableName,
        kind: OrderKind,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
        remedy: Remedy | None = None,
    ) -> TableOrder:
        with self._step(lease) as books:
            return orders.order(
                books,
                lease.source,
                table,
                kind,
                author=author,
                reason=reason,
                now=self._clock(),
                schema=schema,
                renames=renames,
                remedy=remedy,
            )
