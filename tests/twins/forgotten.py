"""Changes that are kept no longer, in memory: `pipeline.ports.forgotten`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from pipeline.batch import BatchState
from pipeline.decisions import Lease
from pipeline.segment import SourceTable
from pipeline.table_state import TableEventKind
from pipeline.upkeep.changes import ChangeFile, Forgotten, Holder, Pruned
from resources.postgres.refusals import refusal
from tests.twins.books import UNFINISHED, ForgottenEntry, MemorySubject
from tests.twins.consumers import MemoryConsumers
from tests.twins.pruning import prune_batches, prune_changes, prune_decisions


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
        with self._step(lease) as books:
            self._require_deleted(lease, through if last <= through else None)
            return prune_changes(books, lease.source, last, through)

    def prune_leases(self, lease: Lease, above: int, through: int, most: int) -> Pruned:
        """Of what Postgres deletes decisions and notes: there are no leases but the newest."""
        with self._step(lease) as books:
            self._require_deleted(lease, through)
            return Pruned(prune_decisions(books, lease.source, through), above, ended=True)

    def prune_batches(self, lease: Lease, above: int, through: int, most: int) -> Pruned:
        with self._step(lease) as books:
            self._require_deleted(lease, through)
            return prune_batches(books, lease.source, above, through, most)

    def _require_deleted(self, lease: Lease, through: int | None) -> None:
        notes = self._notes(lease.source)
        if not any(one.through == through and one.deleted for one in notes):
            raise refusal("pruned_deleted")

    def pruned_through(self, source: str) -> int:
        return self.books.pruned_through(source)

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
