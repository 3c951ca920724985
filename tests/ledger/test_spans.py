"""What batches have: rows, events, structures that mirrors show, files that a replay put in the
place of others; and what is asked of many batches at once is what each of them answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from random import Random

import pytest

from lockstep.pipeline.model.batch import (
    Batch,
    BatchState,
    BatchTimes,
    CaptureRecord,
    EndedTransaction,
    ExtraRows,
)
from lockstep.pipeline.model.table_state import (
    SnapshotFiles,
    TableEvent,
    TableEventKind,
)
from lockstep.pipeline.ports.ledger import Ledger, batch_content, table_contents
from lockstep.pipeline.replay.spans import Span, batches_in_span, ends_early, needed_id_ranges
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused, SpanRefused
from lockstep.pipeline.values.intent import REPLAY
from lockstep.pipeline.values.places import AtMoment, Earliest, Latest, Place
from lockstep.pipeline.values.segment import (
    RevisedSegment,
    Revision,
    Revisions,
    SegmentFile,
    with_revised_names,
)
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    MOMENT,
    ORDERS,
    STOCK,
    begun_write,
    first_captured,
    following,
    intended,
    merged,
    newest,
    next_captured,
    place,
    position,
    prepared,
    record,
    state,
    version,
)
from tests.ledger.refusals import refused

BATCHES = 24
TABLES = (ORDERS, STOCK)


class Made:
    """A source's batches, made at random."""

    def __init__(self, ledger: Ledger, lease: Lease, random: Random) -> None:
        self.ledger, self.lease, self.random = ledger, lease, random
        self.moment = MOMENT
        self.learnt: set[int] = set()
        self.revised: dict[int, int] = {}

    def make(self) -> None:
        first = first_captured(self.ledger, self.lease, *TABLES)
        self.learnt.add(first.id)
        self.acknowledge(first.id, TABLES)
        for _ in range(BATCHES):
            self.batch()
        last = following(self.ledger, self.lease)
        self.ledger.record_capture(self.lease, last.id, record(last, STOCK))

    def batch(self) -> None:
        chance, ledger = self.random.random, self.ledger
        batch = following(ledger, self.lease)
        tables = [table for table in TABLES if chance() < 0.5]
        told = self.told(batch, tables)
        ledger.record_capture(self.lease, batch.id, told)
        if chance() < 0.2:
            ledger.abandon(self.lease, batch.id, "it is damaged")
            return
        self.learnt |= {batch.id} if told.history.versions else set()
        self.acknowledge(batch.id, {*tables, *(event.table for event in told.events)})
        if tables and chance() < 0.3:
            self.revised[batch.id] = self.random.randrange(1, 3)
            for _ in range(self.revised[batch.id]):
                ledger.end_revision(
                    self.lease, revision(ledger, self.lease, batch.id), settled=True
                )

    def told(self, batch: Batch, tables: list[TableName]) -> CaptureRecord:
        chance = self.random.random
        self.moment += timedelta(minutes=self.random.randrange(3))
        end = position(batch.start.at.offset + 100)
        told = replace(
            record(batch, *tables),
            end=replace(end, committed_at=None if chance() < 0.1 else self.moment),
            transactions=self.random.randrange(3),
        )
        if chance() < 0.2:
            number = self.ledger.last_versions(self.lease.source)[STOCK] + 1
            learns = version(STOCK, number, end.at.offset - 50, *(f"c{n}" for n in range(number)))
            told = replace(told, history=BatchHistory(versions=(learns,)))
        if chance() < 0.3:
            kind = self.random.choice((TableEventKind.TRUNCATED, TableEventKind.REREAD))
            read = kind is TableEventKind.REREAD
            why = "partitions were exchanged" if read else None
            event = TableEvent(ORDERS, kind, batch.sequence_before, 1, place(end.at.offset), why)
            parts = (SnapshotFiles(ORDERS, 1, batch.sequence_before, FILES),) if read else ()
            told = replace(told, events=(event,), snapshots=parts)
        if chance() < 0.3:
            told = replace(told, prepared_transactions=(prepared(batch, b"x%d" % batch.id),))
        opened = self.ledger.open_prepared(self.lease.source)
        if opened and chance() < 0.5:
            told = replace(told, ended_transactions=(EndedTransaction(opened[0], committed=True),))
        return told

    def acknowledge(self, batch: int, tables: set[TableName] | tuple[TableName, ...]) -> None:
        for table in tables:
            merged(self.ledger, self.lease, table, batch, batch, batch)
        self.ledger.mark_merged(self.lease)
        self.ledger.acknowledge(self.lease, batch)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(more, marks=pytest.mark.soak) for more in range(1, 5))]
)
def test_all_at_once_is_each_by_itself(ledger: Ledger, lease: Lease, seed: int) -> None:
    """Abandoned batches are in no answer; of moments, fewer batches tell as much as all of them."""
    made = Made(ledger, lease, Random(seed))
    made.make()
    source = lease.source
    live = ledger.live_batches(source, 0, 1 << 62)
    for first, last in ((live[at].id, live[at + 9].id) for at in range(0, len(live) - 9, 7)):
        inside = [one for one in live if first <= one.id <= last]
        contents = ledger.contents(source, first, last)
        assert contents == [batch_content(ledger, source, one.id) for one in inside]
        touched = {one.id: _touched(ledger, one) for one in inside}
        assert ledger.first_changes(source, first, last).keys() == set().union(*touched.values())
        assert ledger.special_batches(source, first, last).with_structures == {
            one.id for one in inside if one.id in made.learnt
        }
        assert ledger.special_batches(source, first, last).revision_counts == {
            batch: count for batch, count in made.revised.items() if first <= batch <= last
        }
        told = {one.id: _elsewhere(ledger, one) for one in inside}
        assert ledger.special_batches(source, first, last).with_extra_rows == {
            batch: why for batch, why in told.items() if why is not None
        }
        for table in TABLES:
            assert table_contents(ledger, source, table, first, last) == [
                batch_content(ledger, source, one.id).by_table()[table]
                for one in inside
                if table in touched[one.id]
            ]
    firsts = ledger.first_changes(source, 1, live[-1].id)
    captured = [one for one in live if one.state is not BatchState.CAPTURING]
    assert firsts == {
        table: next(one.id for one in captured if table in _touched(ledger, one))
        for table in TABLES
    }
    _require_spans(ledger, source, [one for one in live if one.state is BatchState.ACKNOWLEDGED])


def _require_spans(ledger: Ledger, source: str, chain: list[Batch]) -> None:
    minutes = [MOMENT + timedelta(minutes=n / 2) for n in range(-2, 2 * BATCHES + 6, 7)]
    places: list[Place] = [AtMoment(one) for one in minutes]
    pairs = [*combinations([Earliest(), *places], 2), *((one, Latest()) for one in places)]
    times = [one for one in ledger.batch_times(source) if one.is_acknowledged]
    for since, until in pairs:
        span = Span(since, until)
        ranges = needed_id_ranges(span, times)
        found = {one.id: one for some in ranges for one in ledger.live_batches(source, *some)}
        some = [found[number] for number in sorted(found)]
        assert _answer(span, some, times) == _answer(span, chain, None)


def _answer(span: Span, chain: list[Batch], times: list[BatchTimes] | None) -> object:
    try:
        return batches_in_span(span, chain, {}, times), ends_early(span, chain)
    except SpanRefused as error:
        return error.message


def _touched(ledger: Ledger, batch: Batch) -> set[TableName]:
    return batch_content(ledger, batch.source, batch.id).changed_tables


def _elsewhere(ledger: Ledger, batch: Batch) -> ExtraRows | None:
    events = batch_content(ledger, batch.source, batch.id).events
    if any(event.kind is TableEventKind.REREAD for event in events):
        return ExtraRows.SOURCE
    early = any(
        one.batch < batch.id
        for one in batch_content(ledger, batch.source, batch.id).ended_transactions
    )
    return ExtraRows.PREPARED if early else None


# -- what happens to tables between their changes ----------------------------------------


FILES = (
    SegmentFile("0.parquet", 5, 1000, "0" * 64),
    SegmentFile("1.parquet", 7, 2000, "f" * 64),
)


def event(
    batch: Batch, kind: TableEventKind = TableEventKind.TRUNCATED, changes: int = 0
) -> TableEvent:
    return TableEvent(ORDERS, kind, batch.sequence_before + changes, 1, place(110))


def with_events(batch: Batch, *events: TableEvent) -> CaptureRecord:
    return replace(record(batch), changes=10, events=events)


def captured(ledger: Ledger, lease: Lease, *events: TableEventKind) -> Batch:
    """A batch without changes, in which this happened to the orders."""
    batch = following(ledger, lease)
    made = with_events(batch, *(event(batch, kind) for kind in events))
    ledger.record_capture(lease, batch.id, made)
    return newest(ledger, lease)


def test_events_and_snapshots_are_given_back_whole(ledger: Ledger, lease: Lease) -> None:
    """Events in the order of the log, snapshots with their files, by name."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = following(ledger, lease)
    reread = replace(event(batch, TableEventKind.REREAD, 4), reason="partitions were exchanged")
    changed = replace(event(batch, TableEventKind.CHANGED, 4), version=2)
    copied = replace(event(batch, TableEventKind.COPIED, 4), reason="it was stock", origin=STOCK)
    events = (
        replace(event(batch), table=STOCK),
        event(batch),
        copied,
        changed,
        replace(reread, version=2),
        event(batch, TableEventKind.DROPPED, 10),
    )
    parts = (
        SnapshotFiles(STOCK, 1, batch.sequence_before, ()),
        SnapshotFiles(ORDERS, 2, batch.sequence_before + 4, FILES, ("a", "b")),
    )
    made = replace(
        with_events(batch, *events),
        history=BatchHistory(versions=(version(ORDERS, 2, 110),)),
        snapshots=parts,
    )
    ledger.record_capture(lease, batch.id, made)
    assert list(batch_content(ledger, lease.source, batch.id).events) == [
        events[1],
        events[0],
        *events[2:],
    ]
    assert list(batch_content(ledger, lease.source, batch.id).snapshots) == [*reversed(parts)]
    assert batch_content(ledger, "another source", batch.id).events == ()
    assert batch_content(ledger, "another source", batch.id).snapshots == ()


EXPLAINED = (
    TableEventKind.COPIED,
    TableEventKind.REREAD,
    TableEventKind.REFRESHED,
    TableEventKind.REBUILT,
)


@pytest.mark.parametrize("kind", [k for k in TableEventKind if k not in EXPLAINED])
def test_a_batch_waits_for_what_happened(
    ledger: Ledger, lease: Lease, kind: TableEventKind
) -> None:
    """Although it has no changes of the table; and its version set does."""
    first = first_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, first.id, first.id, 1)
    batch = captured(ledger, lease, kind)
    assert ledger.pending_batches(lease.source) == {ORDERS: [batch.id]}
    assert ledger.mark_merged(lease) == [first.id]
    merged(ledger, lease, ORDERS, batch.id, batch.id, 2)
    assert ledger.pending_batches(lease.source) == {}
    assert ledger.mark_merged(lease) == [batch.id]
    for one in (first, batch):
        ledger.acknowledge(lease, one.id)
    entries = [ledger.version_set(lease.source, one.id).entries for one in (first, batch)]
    assert [[entry.delta_version for entry in entry_set] for entry_set in entries] == [[1], [2]]


def test_a_settled_write_tells_what_the_mirror_shows(ledger: Ledger, lease: Lease) -> None:
    """Until another one tells; one that is settled again tells nothing new."""
    first = first_captured(ledger, lease, ORDERS)

    def shown() -> int | None:
        return ledger.table_states(lease.source)[ORDERS].mirror_schema_version

    assert shown() is None
    intent = intended(ledger, lease, ORDERS, first.id, first.id)
    with refused(ledger, lease, "table_states_mirror_schema_version"):
        ledger.settle(lease, intent, 1, schema_version=2)
    ledger.settle(lease, intent, 1, schema_version=1)
    batch = following(ledger, lease)
    history = BatchHistory(versions=(version(ORDERS, 2, 110),))
    changed = replace(event(batch, TableEventKind.CHANGED), version=2)
    made = replace(with_events(batch, changed), history=history, tables=(state(ORDERS),))
    ledger.record_capture(lease, batch.id, made)
    assert shown() == 1
    later = intended(ledger, lease, ORDERS, batch.id, batch.id)
    ledger.settle(lease, later, 2, schema_version=2)
    ledger.settle(lease, later, 2, schema_version=1)
    assert shown() == 2
    third = next_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, third.id, third.id, 3)
    assert shown() == 2


# -- files that a replay put in the place of a batch's own -------------------------------


def revision(ledger: Ledger, lease: Lease, batch: int) -> Revision:
    """Of the batch's first segment, whose files are named by another content."""
    segment = batch_content(ledger, lease.source, batch).segments[0]
    files = with_revised_names(replace(file, sha256="1" * 64) for file in segment.files)
    told = RevisedSegment(batch, segment.table, segment.schema_version, files)
    return ledger.begin_revision(lease, [told])


def test_files_are_those_of_the_newest_settled_revision(
    ledger: Ledger, lease: Lease, batches: list[int]
) -> None:
    """An open one, and one that was given up, change nothing; settling is for good."""
    first, source = batches[0], lease.source
    before = batch_content(ledger, lease.source, first).segments

    def counts() -> dict[int, int]:
        return dict(ledger.special_batches(source, first, batches[-1]).revision_counts)

    assert ledger.revisions(source) == Revisions(0, None)
    opened = revision(ledger, lease, first)
    assert ledger.revisions(source) == Revisions(opened.id, opened)
    assert (batch_content(ledger, lease.source, first).segments, counts()) == (before, {})
    with pytest.raises(LedgerRefused):
        revision(ledger, lease, first)
    ledger.end_revision(lease, opened, settled=False)
    with refused(ledger, lease, "revisions_end_once"):
        ledger.end_revision(lease, opened, settled=True)
    assert batch_content(ledger, lease.source, first).segments == before
    assert ledger.revisions(source) == Revisions(opened.id, None)
    done = revision(ledger, lease, first)
    for _ in range(2):
        ledger.end_revision(lease, done, settled=True)
    [other, *rest] = batch_content(ledger, lease.source, first).segments
    assert other == replace(before[0], files=done.segments[0].files)
    assert (rest, counts()) == (list(before[1:]), {first: 1})
    ledger.end_revision(lease, revision(ledger, lease, first), settled=True)
    assert counts() == {first: 2}


def test_what_is_no_revision(ledger: Ledger, lease: Lease) -> None:
    """One that nobody began."""
    with refused(ledger, lease, "revisions_known"):
        ledger.end_revision(lease, Revision(0, ()), settled=True)


def test_writes_of_replays(ledger: Ledger, lease: Lease, batches: list[int]) -> None:
    """They are of acknowledged batches, as often as somebody wants, and cover nothing."""
    for delta_version in (10, 11):
        intent = begun_write(ledger, lease, ORDERS, "m", batches[-1], batches[-1], REPLAY)
        assert ledger.open_intents(lease.source) == [intent]
        ledger.settle(lease, intent, delta_version)
    captured = next_captured(ledger, lease, ORDERS)
    assert ledger.pending_batches(lease.source) == {ORDERS: [captured.id]}
