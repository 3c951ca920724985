"""Writes that are given up with their table, by every ledger."""

from __future__ import annotations

from lockstep.pipeline.model.table_state import OrderKind, StoppedTable
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need
from tests.ledger.made import (
    ORDERS,
    STOCK,
    first_captured,
    intended,
    merged,
    next_captured,
)
from tests.ledger.refusals import refused
from tests.ledger.test_orders import carried_out, resume

REFUSED = StoppedTable(ORDERS, "a value is refused", "mend it", "batch 1", need=Need.MIRROR)


def test_a_table_quarantined_at_its_merge_leaves_no_intent(ledger: Ledger, lease: Lease) -> None:
    """Another table's stays; what was given up stays so, and another write may take its batches."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    intent = intended(ledger, lease, ORDERS, first.id, first.id)
    other = intended(ledger, lease, STOCK, first.id, first.id)
    for _ in range(2):
        ledger.quarantine(lease, REFUSED)
        assert ledger.open_intents(lease.source) == [other]
        assert ledger.intents_of_batch(lease.source, first.id) == [intent, other]
    with refused(ledger, lease, "writes_given_up_once"):
        ledger.settle(lease, intent, 1)
    batch = carried_out(ledger, lease, resume(ledger, lease).id)
    assert ledger.table_states(lease.source)[ORDERS].is_complete
    later = intended(ledger, lease, ORDERS, first.id, batch.id)
    assert later.txn_version > intent.txn_version
    ledger.quarantine(lease, REFUSED)
    again = carried_out(ledger, lease, resume(ledger, lease).id)
    last = merged(ledger, lease, ORDERS, first.id, again.id, 1)
    assert [one.intent for one in ledger.writes_within(lease.source, first.id, first.id)] == [last]
    assert list(ledger.pending_batches(lease.source)) == [STOCK]


def test_a_capture_gives_no_write_up(ledger: Ledger, lease: Lease) -> None:
    """It may be in the lake, for all that a capture knows."""
    first = first_captured(ledger, lease, ORDERS)
    intent = intended(ledger, lease, ORDERS, first.id, first.id)
    order = ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="a migration")
    assert order.table == ORDERS
    assert ledger.open_intents(lease.source) == [intent]


def test_a_write_is_settled_before_it_is_given_up_or_never(ledger: Ledger, lease: Lease) -> None:
    """A settled one is not touched when its table is quarantined later."""
    first = first_captured(ledger, lease, ORDERS)
    intent = merged(ledger, lease, ORDERS, first.id, first.id, 1)
    ledger.quarantine(lease, REFUSED)
    assert [one.intent for one in ledger.writes_within(lease.source, first.id, first.id)] == [
        intent
    ]


def test_batches_by_their_ids(ledger: Ledger, lease: Lease) -> None:
    """Live ones only, whatever their state, oldest first."""
    first = first_captured(ledger, lease, ORDERS)
    second = next_captured(ledger, lease, ORDERS)
    third = next_captured(ledger, lease)
    ledger.abandon(lease, third.id, "damaged")
    fourth = next_captured(ledger, lease)
    assert next(iter(ledger.live_batches(lease.source, limit=1)), None) == first
    assert next(iter(ledger.live_batches("another source", limit=1)), None) is None
    assert ledger.live_batches(lease.source, second.id, third.id) == [second]
    found = ledger.live_batches(lease.source, first.id, fourth.id)
    assert found == [first, second, fourth]
    assert ledger.live_batches("another source", first.id, fourth.id) == []
