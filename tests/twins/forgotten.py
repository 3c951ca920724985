"""Changes that are kept no longer, in memory: `pipeline.ports.forgotten`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from pipeline.batch import BatchState
from pipeline.decisions import Lease
from pipeline.segment import SourceTable
from pipeline.table import TableName
from pipeline.table_state import TableEventKind
from pipeline.upkeep.changes import ChangeFile, Forgotten, Holder
from resources.postgres.refusals import refusal
from tests.twins.books import UNFINISHED, ForgottenEntry, MemorySubject
from tests.twins.consumers import MemoryConsumers


class MemoryForgotten(MemorySubject):
    consumers: MemoryConsumers

    def forgotten(self, source: str) -> Forgotten | None:
        notes = self._notes(source)
        return notes[-1] if notes else None

    def unfinished_notes(self, source: str) -> list[Forgotten]:
        return [one for one in self._notes(source) if not one.pruned]

    def holders(self, source: str) -> list[Holder]:
        with self.books.turn:
            return sorted(self._holders(source), key=lambda one: (one.through, one.kind, one.name))

    def acknowledged_before(self, source: str, moment: datetime) -> int:
        return max(
            (
                one.id
                for one in self.books.of_source(source, BatchState.ACKNOWLEDGED)
                if one.acknowledged_at is not None and one.acknowledged_at < moment
            ),
            default=0,
        )

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        found: dict[ChangeFile, None] = {}
        for batch in self.books.of_source(source, BatchState.ACKNOWLEDGED):
            if not above < batch.id <= through:
                continue
            for segment in self.books.segments.get(batch.id, ()):
                versions = self.books.versions[source, segment.table]
                generation = versions[segment.schema_version - 1].generation
                for file in segment.files:
                    found[ChangeFile(segment.table, generation, file.path, file.size)] = None
            for part in self.books.source_parts.get(batch.id, ()):
                for file in part.files:
                    found[ChangeFile(part.table, 1, file.path, file.size)] = None
        return list(found)

    def forget(self, lease: Lease, through: int) -> None:
        with self._step(lease) as books:
            batch = books.batches.get(through)
            if batch is None or batch.state is not BatchState.ACKNOWLEDGED:
                raise refusal("forgotten_acknowledged")
            notes = [one for one in books.forgotten if one.source == lease.source]
            if any(one.through > through or one.unlisted_at is None for one in notes):
                raise refusal("forgotten_goes_on")
            if any(one.through < through for one in self._holders(lease.source)):
                raise refusal("forgotten_unneeded")
            if any(one.through == through for one in notes):
                raise refusal("forgotten_pk")
            books.forgotten.append(ForgottenEntry(lease.source, through))

    def note_unlisted(self, lease: Lease, through: int) -> None:
        moment = self._clock()
        self._note(lease, through, lambda one: replace(one, unlisted_at=one.unlisted_at or moment))

    def note_deleted(self, lease: Lease, through: int) -> None:
        self._note(lease, through, lambda one: replace(one, deleted=True))

    def prune(self, lease: Lease, above: int, last: int, through: int) -> int:
        """Of what Postgres deletes the rows of files, and decisions."""
        with self._step(lease) as books:
            notes = self._notes(lease.source)
            if last > through or not any(one.through == through and one.deleted for one in notes):
                raise refusal("pruned_deleted")
            numbers = [one.id for one in books.of_source(lease.source) if one.id <= last]
            self._prune_versions(lease.source, numbers, through)
            later: set[TableName] = set()
            for number in range(through, 0, -1):
                if number not in books.batches or books.batches[number].source != lease.source:
                    continue
                segments = books.segments.get(number, ())
                if number <= last:
                    books.source_parts.pop(number, None)
                    books.segments[number] = tuple(
                        replace(one, files=()) for one in segments if one.table not in later
                    )
                later |= {one.table for one in segments}
            begun = {one.start_decision for one in books.batches.values()}
            moment = books.batches[through].acknowledged_at
            assert moment is not None, "it is acknowledged"
            if last == through:
                books.decisions = [
                    (of, one)
                    for of, one in books.decisions
                    if of != lease.source
                    or one.id in begun
                    or one.decided_at >= moment
                    or one.decision.kind not in ("start", "idle", "refusal", "failure")
                ]
            return len(numbers)

    def _prune_versions(self, source: str, numbers: list[int], through: int) -> None:
        """A table's version stays as of the batches since which it is that of `through`."""
        sets = self.books.version_sets
        stays = {one.table: one for one in sets.get(through, ())}
        for batch in reversed(self.books.of_source(source, BatchState.ACKNOWLEDGED)):
            if batch.id > through:
                continue
            there = {one.table: one for one in sets.get(batch.id, ())}
            stays = {table: one for table, one in stays.items() if there.get(table) == one}
            if batch.id in numbers:
                sets[batch.id] = tuple(stays.values())

    def pruned_through(self, source: str) -> int:
        deleted = (one.through for one in self._notes(source) if one.deleted)
        return max(deleted, default=0)

    def note_pruned(self, lease: Lease, through: int) -> None:
        self._note(lease, through, lambda one: replace(one, pruned=True))

    def _note(
        self, lease: Lease, through: int, done: Callable[[ForgottenEntry], ForgottenEntry]
    ) -> None:
        with self._step(lease) as books:
            books.forgotten = [
                done(one) if (one.source, one.through) == (lease.source, through) else one
                for one in books.forgotten
            ]

    def _notes(self, source: str) -> list[Forgotten]:
        found, above = [], 0
        for one in self.books.forgotten:
            if one.source != source:
                continue
            end = self.books.batches[one.through].end
            assert end is not None, "it is acknowledged"
            found.append(
                Forgotten(above, one.through, end, one.unlisted_at, one.deleted, one.pruned)
            )
            above = one.through
        return found

    def _holders(self, source: str) -> Iterator[Holder]:
        books = self.books
        for name, cursor in self.consumers.cursors(source).items():
            yield Holder("consumer", name, cursor or 0)
        for batch in books.of_source(source, *UNFINISHED):
            yield Holder("batch", str(batch.id), 0)
        for (of, table), state in books.states.items():
            if of == source and state.behind is not None:
                rebuilt = any(
                    event.kind is TableEventKind.REBUILT and event.table == table
                    for number, events in books.events.items()
                    if number >= state.behind
                    for event in events
                )
                yield Holder("table", str(table), 0 if rebuilt else state.behind - 1)
        for entry in books.loads.values():
            if entry.source == source and entry.open and entry.load.followed is not None:
                through = entry.load.followed.batch - 1
                yield Holder("table", str(entry.load.table), through)
        for number, (of, intent) in books.intents.items():
            if of == source and books.is_open(number):
                yield Holder("table", str(intent.table), intent.first_batch - 1)
        for number, revision in books.revisions.items():
            if revision.source == source and revision.open:
                yield Holder("replay", str(number), 0)
        told = sorted(
            number
            for number, parts in books.source_parts.items()
            if books.batches[number].source == source
            and any(part.table is SourceTable.TRANSACTIONS for part in parts)
        )
        yield Holder("recovery", source, told[-8] - 1 if len(told) >= 8 else 0)
