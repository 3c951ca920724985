"""Mirrors that a ledger made from the lake goes on with; and parts of a gap, which go to another
name with their rows."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.gaps import ClosedTable
from lockstep.pipeline.model.life import MirrorRemoved
from lockstep.pipeline.model.table_state import (
    Handover,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableState,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.decisions import Lease
from tests.ledger.made import (
    ORDERS,
    STOCK,
    begun_write,
    captured_elsewhere,
    elsewhere,
    first_captured,
    following,
    merged,
    place,
    position,
    record,
    version,
)


def settle(ledger: Ledger, lease: Lease) -> None:
    """Orders and stock, merged at 6 and 7 and acknowledged; each mirror shows version 1."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    for table, delta_version in ((ORDERS, 6), (STOCK, 7)):
        app_id = f"{lease.source}/{table}/1"
        intent = begun_write(ledger, lease, table, app_id, batch.id, batch.id)
        ledger.settle(lease, intent, delta_version, shows=1)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)


def _handed(before: TableState, mirror: str, at: int, shows: int) -> Handover:
    return Handover(before.table, before.generation + 1, mirror, at, shows, before)


def _states(*handed: Handover) -> tuple[TableState, ...]:
    return tuple(
        replace(
            one.state_before,
            generation=one.generation,
            mirror=one.mirror,
            condition=TableCondition.FOLLOWING,
        )
        for one in handed
    )


def swap(ledger: Ledger, lease: Lease, batch: Batch) -> None:
    """Orders and stock, with new versions of both."""
    states = ledger.table_states(lease.source)
    handed = (
        _handed(states[ORDERS], states[STOCK].mirror, 7, 2),
        _handed(states[STOCK], states[ORDERS].mirror, 6, 2),
    )
    history = BatchHistory(versions=(version(ORDERS, 2, 150), version(STOCK, 2, 150)))
    made = replace(record(batch), history=history, handovers=handed, tables=_states(*handed))
    ledger.record_capture(lease, batch.id, made)


def test_tables_go_on_with_mirrors_of_before(ledger: Ledger, lease: Lease) -> None:
    """Each in its next generation, from the Delta version and the version that it shows."""
    settle(ledger, lease)
    before = ledger.table_states(lease.source)
    swap(ledger, lease, following(ledger, lease))
    states = ledger.table_states(lease.source)
    assert states[ORDERS] == replace(
        before[ORDERS],
        generation=2,
        mirror=before[STOCK].mirror,
        mirror_schema_version=2,
        adopted_version=7,
    )
    assert states[STOCK] == replace(
        before[STOCK],
        generation=2,
        mirror=before[ORDERS].mirror,
        mirror_schema_version=2,
        adopted_version=6,
    )


def test_the_next_generation_adopts_nothing(ledger: Ledger, lease: Lease) -> None:
    """A table whose mirror ends begins anew, wherever it began before."""
    settle(ledger, lease)
    swap(ledger, lease, following(ledger, lease))
    ledger.mark_merged(lease)
    batch = following(ledger, lease)
    dropped = replace(ledger.table_states(lease.source)[ORDERS], condition=TableCondition.DROPPED)
    ledger.record_capture(lease, batch.id, replace(record(batch), tables=(dropped,)))
    assert ledger.table_states(lease.source)[ORDERS].adopted_version == 7
    ledger.record_event(lease, ORDERS, MirrorRemoved())
    ended = ledger.table_states(lease.source)[ORDERS]
    assert (ended.generation, ended.mirror_schema_version, ended.adopted_version) == (3, None, None)


def test_a_gaps_parts_go_with_the_rows_and_close_by_events(ledger: Ledger, lease: Lease) -> None:
    """Orders and stock exchange their names behind a gap; what is emptied then is the part of the
    other. Only an acknowledged batch closes anything."""
    settle(ledger, lease)
    (first,) = ledger.batches(lease.source)
    swapping = elsewhere(ledger, lease, first, start=position(104))
    history = BatchHistory(versions=(version(ORDERS, 2, 150), version(STOCK, 2, 150)))
    copied, at = TableEventKind.COPIED, place(150)
    events = (
        TableEvent(ORDERS, copied, swapping.sequence_before, 2, at, "it was called stock", STOCK),
        TableEvent(STOCK, copied, swapping.sequence_before, 2, at, "it was called orders", ORDERS),
    )
    made = replace(record(swapping), history=history, events=events)
    ledger.record_capture(lease, swapping.id, made)
    last = following(ledger, lease)
    emptied = TableEvent(ORDERS, TableEventKind.TRUNCATED, last.sequence_before, 2, place(210))
    ledger.record_capture(lease, last.id, replace(record(last), events=(emptied,)))
    for table in (ORDERS, STOCK):
        merged(ledger, lease, table, swapping.id, swapping.id, 8)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, last.id - 1)
    (gap,) = ledger.gaps(lease.source)
    assert gap.closed == {}
    merged(ledger, lease, ORDERS, last.id, last.id, 9)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, last.id)
    (gap,) = ledger.gaps(lease.source)
    (done, *_) = ledger.batches(lease.source)
    assert done.acknowledged_at is not None
    told = ClosedTable(last.id, done.acknowledged_at, TableEventKind.TRUNCATED, str(ORDERS))
    assert gap.closed == {str(STOCK): told}
    assert gap.open_tables == (str(ORDERS),)


def test_a_gaps_part_is_closed_by_a_comparison(ledger: Ledger, lease: Lease) -> None:
    """Once its batch is acknowledged, and as of its end; one that was not equal stays open, and a
    comparison of before the gap tells nothing."""
    first = first_captured(ledger, lease)
    last = captured_elsewhere(ledger, lease, elsewhere(ledger, lease, first))
    ledger.note_complete(lease, first.id, {STOCK})
    ledger.note_complete(lease, last.id, {ORDERS})
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, first.id)
    (gap,) = ledger.gaps(lease.source)
    assert gap.closed == {}
    ledger.acknowledge(lease, last.id)
    (gap,) = ledger.gaps(lease.source, last.id)
    assert ledger.gaps(lease.source, first.id) == []
    assert (gap.closed[str(ORDERS)].kind, gap.closed[str(ORDERS)].batch) == (None, last.id)
    assert gap.open_tables == (str(STOCK),)
