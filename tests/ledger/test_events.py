"""What happens to tables between their changes, and which structure a mirror shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.model.life import MirrorRemoved
from lockstep.pipeline.model.table_state import (
    SnapshotFiles,
    StopPlace,
    TableCondition,
    TableEvent,
    TableEventKind,
)
from lockstep.pipeline.ports.ledger import Ledger, batch_content
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.segment import SegmentFile
from tests.ledger.made import (
    ORDERS,
    STOCK,
    first_captured,
    following,
    intended,
    merged,
    newest,
    next_captured,
    place,
    record,
    state,
    version,
)
from tests.ledger.refusals import refused

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


def test_a_version_set_waits_for_what_happened(ledger: Ledger, lease: Lease) -> None:
    """Two batches merged at once: the first one's position is shown by no version."""
    first = first_captured(ledger, lease, ORDERS)
    batch = captured(ledger, lease, TableEventKind.TRUNCATED)
    merged(ledger, lease, ORDERS, first.id, batch.id, 1)
    ledger.mark_merged(lease)
    for one in (first, batch):
        ledger.acknowledge(lease, one.id)
    assert ledger.version_set(lease.source, first.id).entries == []
    assert [entry.table for entry in ledger.version_set(lease.source, batch.id).entries] == [ORDERS]


def test_a_settled_write_tells_what_the_mirror_shows(ledger: Ledger, lease: Lease) -> None:
    """Until another one tells; one that is settled again tells nothing new."""
    first = first_captured(ledger, lease, ORDERS)

    def shown() -> int | None:
        return ledger.table_states(lease.source)[ORDERS].mirror_schema_version

    assert shown() is None
    intent = intended(ledger, lease, ORDERS, first.id, first.id)
    with refused(ledger, lease, "table_states_mirror_schema_version"):
        ledger.settle(lease, intent, 1, shows=2)
    ledger.settle(lease, intent, 1, shows=1)
    batch = following(ledger, lease)
    history = BatchHistory(versions=(version(ORDERS, 2, 110),))
    changed = replace(event(batch, TableEventKind.CHANGED), version=2)
    made = replace(with_events(batch, changed), history=history, tables=(state(ORDERS),))
    ledger.record_capture(lease, batch.id, made)
    assert shown() == 1
    later = intended(ledger, lease, ORDERS, batch.id, batch.id)
    ledger.settle(lease, later, 2, shows=2)
    ledger.settle(lease, later, 2, shows=1)
    assert shown() == 2
    third = next_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, third.id, third.id, 3)
    assert shown() == 2


def test_a_table_that_is_made_anew_has_another_life(ledger: Ledger, lease: Lease) -> None:
    """Dropped, it is merged to its end; its next generation's mirror shows nothing yet."""
    first = first_captured(ledger, lease, ORDERS)
    intent = intended(ledger, lease, ORDERS, first.id, first.id)
    ledger.settle(lease, intent, 1, shows=1)
    batch = following(ledger, lease)
    stopped = StopPlace(batch.id, place(110))
    gone = replace(state(ORDERS), condition=TableCondition.DROPPED, stopped=stopped)
    made = with_events(batch, event(batch, TableEventKind.DROPPED))
    ledger.record_capture(lease, batch.id, replace(made, tables=(gone,)))
    assert ledger.table_states(lease.source) == {ORDERS: replace(gone, mirror_schema_version=1)}
    assert ledger.pending_batches(lease.source) == {ORDERS: [batch.id]}
    merged(ledger, lease, ORDERS, batch.id, batch.id, 2)
    ledger.mark_merged(lease)
    again = following(ledger, lease)
    ledger.record_event(lease, ORDERS, MirrorRemoved())
    anew = replace(state(ORDERS), generation=2, changelog_generation=3)
    told = replace(anew, stopped=stopped)
    ledger.record_capture(lease, again.id, replace(record(again), tables=(told,)))
    assert ledger.table_states(lease.source) == {ORDERS: anew}
