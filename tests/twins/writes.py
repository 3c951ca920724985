"""Writes of batches to mirrors, in memory: `pipeline.ports.writes`."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.batch import Batch, BatchState
from pipeline.decisions import Lease
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.life.events import MirrorWritten
from pipeline.table import TableName
from pipeline.table_state import TableCondition
from resources.postgres.refusals import refusal
from tests.twins.books import ENDED, MERGEABLE, MemoryBooks, MemorySubject, covers
from tests.twins.lives import count_behind, record


class MemoryWrites(MemorySubject):
    def pending(self, source: str) -> dict[TableName, list[int]]:
        found: dict[TableName, set[int]] = {}
        for batch in self.books.of_source(source, BatchState.CAPTURED):
            for table in self.books.waiting(batch):
                found.setdefault(table, set()).add(batch.id)
        for (of, table), state in self.books.states.items():
            if of == source and (missed := self.books.missed(state, source)):
                found.setdefault(table, set()).update(missed)
        return {table: sorted(numbers) for table, numbers in sorted(found.items())}

    def open_intents(self, source: str) -> list[Intent]:
        return [
            intent
            for number, (of, intent) in self.books.intents.items()
            if of == source and self.books.is_open(number)
        ]

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
            _may_intend(books, lease.source, intent)
            books.intents[number] = (lease.source, intent)
            return intent

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        shows: int | None = None,
        reason: str | None = None,
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
            books.settled[intent.id] = SettledWrite(intent, delta_version, self._clock(), reason)
            if shows is not None:
                record(books, lease.source, [(intent.table, MirrorWritten(shows))])
            count_behind(books, lease.source, intent.table)

    def give_up(self, lease: Lease, table: TableName) -> None:
        with self._step(lease) as books:
            books.give_up(lease.source, table)

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

    def last_intended(self, source: str, app_id: str) -> int:
        found = [
            intent.txn_version
            for of, intent in self.books.intents.values()
            if of == source and intent.app_id == app_id
        ]
        return max(found, default=0)

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]:
        known = self.books.batches.get(batch)
        if known is None or known.source != source:
            return []
        return list(self.books.version_sets.get(batch, ()))


def _may_intend(books: MemoryBooks, source: str, intent: Intent) -> None:
    state = books.states.get((source, intent.table))
    missed = books.missed(state, source) if state is not None else []
    for number in (intent.first_batch, intent.last_batch):
        batch = books.batches.get(number)
        if batch is None or batch.source != source:
            raise refusal("writes_first_batch")
        if batch.state is not BatchState.CAPTURED and number not in missed:
            raise refusal("writes_of_captured_batches")
    if intent.first_batch > intent.last_batch:
        raise refusal("writes_batches_ascend")
    if state is None:
        raise refusal("writes_table")
    if state.condition not in MERGEABLE:
        raise refusal("writes_of_active_tables")
    for number, (other_source, other) in books.intents.items():
        if other_source != source or other.table != intent.table:
            continue
        if books.is_open(number):
            raise refusal("writes_one_open")
        if number in books.given_up:
            continue
        if (other.app_id, other.step) == (intent.app_id, intent.step) and (
            other.first_batch <= intent.last_batch and intent.first_batch <= other.last_batch
        ):
            raise refusal("writes_never_overlap")


def version_set_of(books: MemoryBooks, batch: Batch) -> Iterator[VersionSetEntry]:
    """Tables whose newest segment or event up to the batch is merged by a write that ends there
    too: a write that goes further shows a later position."""
    chain = [one.id for one in books.of_source(batch.source, *ENDED) if one.id <= batch.id]
    for (source, table), state in sorted(books.states.items()):
        if source != batch.source or state.condition is not TableCondition.ACTIVE:
            continue
        writes = [w for w in books.writes(source, table) if w.intent.last_batch <= batch.id]
        merged = max((w.intent.last_batch for w in writes if w.intent.step == "merge"), default=0)
        newest = max(
            (one for one in chain if table in books.touched(one)),
            default=0,
        )
        if writes and merged >= newest > 0:
            newest_write = max(writes, key=lambda write: write.intent.id)
            yield VersionSetEntry(table, state.mirror, newest_write.delta_version)
