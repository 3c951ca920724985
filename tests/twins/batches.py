"""The chain of batches, in memory: `pipeline.ports.batches`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.batch import TRANSITIONS, Batch, BatchKind, BatchState, Cursor, Requests
from pipeline.decisions import Continuity, Lease
from pipeline.position import Coordinates, Position, Reign, ServerLineage
from pipeline.table import TableName
from resources.postgres.refusals import refusal
from tests.twins.books import ENDED, UNFINISHED, MemoryBooks, MemorySubject, covers
from tests.twins.life_events import forget
from tests.twins.loads import forget_loads
from tests.twins.prepared import abandon_prepared
from tests.twins.version_sets import version_set_of

_MOVES = frozenset((before, after) for (before, _), after in TRANSITIONS.items())


class MemoryBatches(MemorySubject):
    def captured_cursor(self, source: str) -> Cursor | None:
        return self._cursor(source, *ENDED)

    def acknowledged_cursor(self, source: str) -> Cursor | None:
        return self._cursor(source, BatchState.ACKNOWLEDGED)

    def _cursor(self, source: str, *states: BatchState) -> Cursor | None:
        """The end of the newest batch in one of these states."""
        batches = self.books.of_source(source, *states)
        if not batches:
            return None
        newest = batches[-1]
        if newest.end is None or newest.witness is None or newest.captured_at is None:
            raise refusal("batches_end_recorded")
        off = self.books.gtids_off.get(source)
        resumable = newest.by_gtid and not (off is not None and off > newest.captured_at)
        once = any(one.by_gtid for one in self.books.live(source))
        return Cursor(newest.id, newest.end, newest.witness, resumable, once and not resumable)

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        return self.books.of_source(source)[::-1][:limit]

    def unfinished(self, source: str) -> list[Batch]:
        return self.books.of_source(source, *UNFINISHED)

    def live_batches(self, source: str, first: int, last: int) -> list[Batch]:
        return [batch for batch in self.books.live(source) if first <= batch.id <= last]

    def first_batch(self, source: str) -> Batch | None:
        return next(iter(self.books.live(source)), None)

    def batches_of(self, source: str, table: TableName) -> list[Batch]:
        return [
            batch
            for batch in self.books.of_source(source, *ENDED)
            if table in self.books.touched(batch.id)
        ]

    def overlaps(self, source: str) -> list[Batch]:
        return [
            batch
            for decision, batch in self.books.begun(source)
            if decision.continuity is Continuity.OVERLAP
        ]

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        return self._newest(source, lambda batch: (batch.dagster_run or "").startswith(dagster_run))

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        def covers(batch: Batch) -> bool:
            start, end = batch.start, batch.end
            if end is None or end.server_uuid != server_uuid or batch.catches_up:
                return False
            same = start.at.file.base == at.file.base == end.at.file.base
            return same and start.at <= at <= end.at

        return self._newest(source, covers)

    def _newest(self, source: str, fits: Callable[[Batch], bool]) -> Batch | None:
        captured = reversed(self.books.of_source(source, *ENDED))
        return next((batch for batch in captured if fits(batch)), None)

    def lineage(self, source: str) -> ServerLineage:
        found: list[Reign] = []
        for batch in self.books.live(source):
            if not found or found[-1].server_uuid != batch.start.server_uuid:
                found.append(Reign(batch.start.server_uuid, batch.id))
        return ServerLineage(tuple(found))

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
            base, follows = _may_begin(books, lease.source, start, predecessor, start_decision)
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

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            may_move(books, known, BatchState.ABANDONED)
            books.batches[batch] = replace(known, state=BatchState.ABANDONED)
            abandon_prepared(books, batch)
            forget(books, known)
            forget_loads(books, known)

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

    def acknowledge(self, lease: Lease, batch: int, requests: Requests | None = None) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            may_move(books, known, BatchState.ACKNOWLEDGED)
            books.batches[batch] = replace(
                known,
                state=BatchState.ACKNOWLEDGED,
                acknowledged_at=self._clock(),
                requests=requests,
            )
            books.version_sets[batch] = tuple(version_set_of(books, known))


def _may_begin(
    books: MemoryBooks, source: str, start: Position, predecessor: int | None, decision: int | None
) -> tuple[int, int | None]:
    """The new batch's base, and the batch it follows; or a refusal."""
    live = books.live(source)
    if (predecessor is None) == (decision is None):
        raise refusal("batches_one_origin")
    base, follows = 0, predecessor
    if predecessor is not None:
        before = books.batches.get(predecessor)
        if before is not None and before.state not in ENDED:
            raise refusal("batches_predecessor_captured")
        if before is None or before.source != source or _place(before.end) != _place(start):
            raise refusal("batches_start_at_predecessors_end")
        base = before.base + before.changes
    elif not any(one == source and it.id == decision for one, it in books.decisions):
        raise refusal("batches_start_decision")
    else:
        follows = _decided(books, decision, live)
        if follows is not None:
            before = books.batches[follows]
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


def _decided(books: MemoryBooks, number: int | None, live: list[Batch]) -> int | None:
    """What the start decision of that number follows."""
    decision = books.decision(number).decision
    if decision.kind != "start":
        raise refusal("batches_start_decided")
    taken = [one.start_decision for one in live if one.start_decision is not None]
    override = decision.override
    if override and any(books.decision(one).decision.override == override for one in taken):
        raise refusal("overrides_once")
    return decision.follows


def may_move(books: MemoryBooks, batch: Batch, state: BatchState) -> None:
    if (batch.state, state) not in _MOVES:
        raise refusal("batches_move_forward")
    if state is BatchState.ABANDONED:
        _may_be_abandoned(books, batch)
    if (
        state is BatchState.ACKNOWLEDGED
        and batch.follows is not None
        and books.batches[batch.follows].state is not BatchState.ACKNOWLEDGED
    ):
        raise refusal("batches_acknowledged_in_order")


def _may_be_abandoned(books: MemoryBooks, batch: Batch) -> None:
    if any(other.follows == batch.id for other in books.live(batch.source)):
        raise refusal("batches_abandoned_newest_first")
    tables = books.touched(batch.id)
    for source, intent in books.intents.values():
        if source == batch.source and intent.table in tables and covers(intent, batch.id):
            raise refusal("batches_abandoned_unmerged")


def _place(position: Position | None) -> tuple[object, ...] | None:
    """What two positions must share to be the same place; not the moment."""
    if position is None:
        return None
    return position.at, str(position.gtid_set), position.server_uuid
