"""What goes from the memory ledger once changes are gone: `pipeline.ports.forgotten`.

Belongs here: which content goes, and what refers to a batch. Does not: notes, and who needs changes
(`tests.twins.forgotten`). The rules are those of `resources/postgres/migrations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from pipeline.batch import BatchState
from pipeline.table import TableName
from pipeline.table_state import Stopped
from pipeline.upkeep.changes import Pruned
from tests.twins.books import MemoryBooks
from tests.twins.consumer_entries import DeliveryState


def prune_changes(books: MemoryBooks, source: str, last: int, through: int) -> int:
    numbers = [one.id for one in books.of_source(source) if one.id <= last]
    _prune_versions(books, source, numbers, through)
    later: set[TableName] = set()
    origins: set[str] = set()
    for batch in reversed(books.of_source(source)):
        if batch.id > through:
            continue
        segments = books.segments.get(batch.id, ())
        witnesses = books.set_witnesses.get(batch.id, ())
        if batch.id <= last:
            books.source_parts.pop(batch.id, None)
            books.segments[batch.id] = tuple(
                replace(one, files=()) for one in segments if one.table not in later
            )
            books.set_witnesses[batch.id] = tuple(
                one for one in witnesses if one.origin not in origins
            )
        later |= {one.table for one in segments}
        origins |= {one.origin for one in witnesses}
    _prune_writes(books, source, last, through)
    _prune_deliveries(books, source, last)
    _prune_prepared(books, source, last)
    return len(numbers)


def prune_decisions(books: MemoryBooks, source: str, through: int) -> int:
    """And notes before the newest that was pruned."""
    begun = {one.start_decision for one in books.batches.values()}
    before = len(books.decisions)
    books.decisions = [
        (of, one)
        for of, one in books.decisions
        if of != source
        or one.id in begun
        or one.decided_at >= books.batches[through].created_at
        or one.decision.kind not in ("start", "idle", "refusal", "failure")
    ]
    books.went("decision", before - len(books.decisions))
    pruned = [o.through for o in books.forgotten if o.source == source and o.pruned]
    newest = max((one for one in pruned if one < through), default=0)
    books.forgotten = [
        one
        for one in books.forgotten
        if one.source != source or not one.pruned or one.through >= newest
    ]
    return before - len(books.decisions)


def prune_batches(books: MemoryBooks, source: str, above: int, through: int, most: int) -> Pruned:
    looked = [one for one in books.of_source(source) if above < one.id < through][:most]
    resumable = max((one.id for one in books.live(source) if one.by_gtid), default=0)
    used = set(_uses(books, source, through))
    gone = 0
    for batch in looked:
        abandoned = batch.state is BatchState.ABANDONED
        stays = batch.state is not BatchState.ACKNOWLEDGED or batch.start_decision is not None
        if batch.id in used or ((stays or batch.id == resumable) and not abandoned):
            continue
        for content in (books.batches, books.segments, books.set_witnesses, books.version_sets):
            content.pop(batch.id, None)
        gone += 1
    books.went("batch", gone)
    reached = looked[-1].id if looked else above
    return Pruned(gone, reached, ended=len(looked) < most)


def _uses(books: MemoryBooks, source: str, through: int) -> Iterator[int | None]:
    """The batches that something refers to, besides the chain."""
    for some in (books.segments, books.set_witnesses, books.snapshots, books.source_parts):
        yield from (number for number, content in some.items() if content)
    for more in (books.events, books.handovers):
        yield from (number for number, content in more.items() if content)
    yield from books.scopes
    yield from (one.batch for _, one in books.databases)
    yield from (one.decision.follows for _, one in books.decisions)
    yield from (number for _, number, _ in books.extents)
    yield from (one.through for one in books.forgotten)
    yield from (one.batch for _, one in books.statements.values())
    yield from (one.batch for some in books.versions.values() for one in some)
    for number, event in (one for told in books.lives.values() for one in told):
        yield number
        values = (getattr(event, one.name) for one in fields(event))
        yield from (value.batch for value in values if isinstance(value, Stopped))
    yield from (one.done_batch for one in books.orders.values())
    yield from (number for number, _ in books.prepared)
    yield from books.ended_by.values()
    for state in books.states.values():
        yield state.behind
        yield state.stopped.batch if state.stopped else None
    for load in books.loads.values():
        yield load.load.followed.batch if load.load.followed else None
        yield load.joined_batch
    yield from (one.start_batch for one in books.consumers.values())
    for delivery in books.deliveries.values():
        yield from (delivery.batches[0], delivery.batches[-1])
    for _, intent in books.intents.values():
        yield from (intent.first_batch, intent.last_batch)
    for entry in books.version_sets.get(through, ()):
        sets = books.version_sets.items()
        yield min(number for number, those in sets if entry in those)


def _prune_versions(books: MemoryBooks, source: str, numbers: list[int], through: int) -> None:
    """A table's version stays as of the batches since which it is that of `through`."""
    sets = books.version_sets
    stays = {one.table: one for one in sets.get(through, ())}
    for batch in reversed(books.of_source(source, BatchState.ACKNOWLEDGED)):
        if batch.id > through:
            continue
        there = {one.table: one for one in sets.get(batch.id, ())}
        stays = {table: one for table, one in stays.items() if there.get(table) == one}
        if batch.id in numbers:
            sets[batch.id] = tuple(stays.values())


def _prune_writes(books: MemoryBooks, source: str, last: int, through: int) -> None:
    """But those that merged what is still told of a batch."""
    for number, (of, intent) in list(books.intents.items()):
        if of != source or intent.last_batch > last or books.is_open(number):
            continue
        span = range(intent.first_batch, intent.last_batch + 1)
        told = any(intent.table in books.touched(one) for one in span)
        newer = any(
            other.intent.app_id == intent.app_id
            and intent.last_batch <= other.intent.last_batch <= through
            and other.intent.txn_version > intent.txn_version
            for other in books.writes(source, intent.table)
        )
        if newer and not told:
            for content in (books.intents, books.intended_at, books.settled, books.written):
                content.pop(number, None)
            books.given_up.discard(number)
            books.went("intent", 1)
            books.went("write", 1)


def _prune_deliveries(books: MemoryBooks, source: str, last: int) -> None:
    done: dict[int, int] = {}
    for entry in books.deliveries.values():
        if entry.state is DeliveryState.ACKNOWLEDGED:
            done[entry.consumer] = max(done.get(entry.consumer, 0), entry.batches[-1])
    for number, entry in list(books.deliveries.items()):
        own = books.consumers[entry.consumer].source == source
        newer = done.get(entry.consumer, 0) > entry.batches[-1]
        if own and newer and entry.batches[-1] <= last and entry.state is not DeliveryState.OUT:
            del books.deliveries[number]
            books.went("delivery", 1)


def _prune_prepared(books: MemoryBooks, source: str, last: int) -> None:
    """But those that a table which stopped before may read from the log once more."""
    states = (one for (of, _), one in books.states.items() if of == source)
    stopped = min((one.stopped.batch for one in states if one.stopped), default=last + 1)
    for key, (of, _) in list(books.prepared.items()):
        number = key[0]
        known = books.batches.get(number)
        abandoned = known is not None and known.state is BatchState.ABANDONED
        end = books.ended_by.get(key, number if abandoned else last + 1)
        if of == source and number <= last and end <= last and end < stopped:
            del books.prepared[key]
            books.ended_by.pop(key, None)
