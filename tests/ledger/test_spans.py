"""What is asked of many batches at once is what each of them answers."""

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
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import Ledger, batch_content, table_contents
from lockstep.pipeline.replay.spans import Span, batches_in_span, ends_early, needed_id_ranges
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.places import AtMoment, Earliest, Latest, Place
from lockstep.pipeline.values.segment import RowCounts, SegmentFile
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    MOMENT,
    ORDERS,
    STOCK,
    first_captured,
    following,
    merged,
    next_captured,
    place,
    position,
    prepared,
    record,
    version,
)
from tests.ledger.test_events import FILES
from tests.ledger.test_revisions import revision

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


def test_a_span_has_what_its_batches_have(ledger: Ledger, lease: Lease) -> None:
    """Rows by batch and table, events, writes; nothing of batches outside of it, or abandoned."""
    source = lease.source
    first = first_captured(ledger, lease, STOCK, ORDERS)
    second = following(ledger, lease)
    truncated = TableEvent(ORDERS, TableEventKind.TRUNCATED, second.sequence_before, 1, place(150))
    read = SegmentFile("rows.parquet", 40, 4000, "a" * 64)
    reread = TableEvent(
        STOCK, TableEventKind.REREAD, second.sequence_before, 1, place(160), "it was asked"
    )
    ledger.record_capture(
        lease,
        second.id,
        replace(
            record(second, ORDERS),
            events=(truncated, reread),
            snapshots=(SnapshotFiles(STOCK, 1, second.sequence_before, (read,)),),
        ),
    )
    lost = next_captured(ledger, lease, STOCK)
    ledger.abandon(lease, lost.id, "damaged")
    assert [
        (rows.batch, rows.table, rows.counts, rows.image_count, rows.size, rows.rows_read)
        for content in ledger.contents(source, first.id, lost.id)
        for rows in content.captured_rows()
    ] == [
        (first.id, ORDERS, RowCounts(1, 2, 3), 10, 3000, 0),
        (first.id, STOCK, RowCounts(1, 2, 3), 10, 3000, 0),
        (second.id, ORDERS, RowCounts(1, 2, 3), 10, 3000, 0),
        (second.id, STOCK, RowCounts(), 0, 4000, 40),
    ]
    assert batch_content(ledger, source, first.id).events == ()
    contents = ledger.contents(source, first.id, lost.id)
    assert [one for content in contents for one in content.events] == [truncated, reread]
    merged(ledger, lease, ORDERS, first.id, second.id, 5)
    merged(ledger, lease, STOCK, first.id, first.id, 6)
    for batch, versions in ((first.id, [5, 6]), (second.id, [5]), (lost.id, [])):
        writes = ledger.writes_within(source, batch, batch)
        assert [write.delta_version for write in writes] == versions
        assert writes == ledger.writes_within(source, batch, batch)
        assert all(write.intended_at <= write.settled_at for write in writes)
    assert ledger.contents(source, second.id + 1, lost.id) == []
