"""Writes of batches to mirrors, in memory: `pipeline.ports.writes`."""

from __future__ import annotations

from dataclasses import replace

from pipeline.batch import BatchState
from pipeline.decisions import Lease
from pipeline.intent import (
    REPLAY,
    Intent,
    MissingTable,
    SettledWrite,
    ShownVersion,
    VersionSetEntry,
)
from pipeline.life.events import MirrorWritten
from pipeline.table import TableName
from resources.postgres.refusals import refusal
from tests.twins.books import MERGEABLE, MemoryBooks, MemorySubject, covers
from tests.twins.life_events import count_behind, record


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
            number = books.next_number("intent", len(books.intents))
            txn = books.next_number("write", len(books.intents))
            intent = Intent(number, table, app_id, txn, first_batch, last_batch, step)
            _may_intend(books, lease.source, intent)
            books.intents[number] = (lease.source, intent)
            books.intended_at[number] = self._clock()
            books.wrote[number] = lease.token
            return intent

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        shows: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
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
            books.settled[intent.id] = SettledWrite(
                intent, delta_version, books.intended_at[intent.id], self._clock(), reason
            )
            mirror = books.states[lease.source, intent.table].mirror
            books.written[intent.id] = VersionSetEntry(
                intent.table, mirror, delta_version, table_id
            )
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

    def intended(self, source: str, batch: int) -> list[Intent]:
        return [
            intent
            for _, (of, intent) in sorted(self.books.intents.items())
            if of == source and covers(intent, batch)
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
        return [one for one in self._set(source, batch) if isinstance(one, VersionSetEntry)]

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[ShownVersion]:
        found: list[ShownVersion] = []
        before: VersionSetEntry | None = None
        for batch in self.books.of_source(source, BatchState.ACKNOWLEDGED):
            shown = [o for o in self.version_set(source, batch.id) if o.table == table]
            now = shown[0] if shown else None
            if batch.id <= last and now is not None and now != before:
                found.append(ShownVersion(batch.id, now))
            before = now
        return found[::-1]

    def missing_versions(self, source: str, batch: int) -> list[MissingTable]:
        return [one for one in self._set(source, batch) if isinstance(one, MissingTable)]

    def _set(self, source: str, batch: int) -> tuple[VersionSetEntry | MissingTable, ...]:
        known = self.books.batches.get(batch)
        if known is None or known.source != source:
            return ()
        found = self.books.version_sets.get(batch, ())
        return tuple(self._newest_same(source, one) for one in found)

    def _newest_same(
        self, source: str, one: VersionSetEntry | MissingTable
    ) -> VersionSetEntry | MissingTable:
        if isinstance(one, MissingTable):
            return one
        same = [
            made
            for (of, mirror, made), shows in self.books.upkept.items()
            if (of, mirror, shows) == (source, one.mirror, one.delta_version)
        ]
        return replace(one, delta_version=max(same, default=one.delta_version))


def _may_intend(books: MemoryBooks, source: str, intent: Intent) -> None:
    state = books.states.get((source, intent.table))
    missed = books.missed(state, source) if state is not None else []
    for number in (intent.first_batch, intent.last_batch):
        batch = books.batches.get(number)
        if batch is None or batch.source != source:
            raise refusal("writes_first_batch")
        replays = intent.step == REPLAY
        if replays and batch.state is not BatchState.ACKNOWLEDGED:
            raise refusal("writes_replay_acknowledged")
        if not replays and batch.state is not BatchState.CAPTURED and number not in missed:
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
        if number in books.given_up or intent.step == REPLAY:
            continue
        if (other.app_id, other.step) == (intent.app_id, intent.step) and (
            other.first_batch <= intent.last_batch and intent.first_batch <= other.last_batch
        ):
            raise refusal("writes_never_overlap")
