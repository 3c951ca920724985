"""Steps out of order: each is refused by name and changes nothing."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from tests.ledger.made import (
    ORDERS,
    begun,
    first_captured,
    following,
    intended,
    merged,
    newest,
    next_captured,
    record,
)
from tests.ledger.refusals import refused

QUARANTINED = StoppedTable(ORDERS, "a type is not supported", "exclude it", "binlog.000001:100")


def test_a_batch_of_another_source(ledger: Ledger, lease: Lease) -> None:
    """Steps are for the lease's source only."""
    batch = begun(ledger, lease)
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        with refused(ledger, lease, "batches_known"):
            ledger.record_capture(beside, batch.id, record(batch))
        with refused(ledger, lease, "batches_known"):
            ledger.abandon(beside, batch.id, "not ours")
        with refused(ledger, lease, "batches_known"):
            ledger.acknowledge(beside, batch.id)


def test_a_capture_recorded_twice(ledger: Ledger, lease: Lease) -> None:
    """A captured batch keeps its segments and its end."""
    batch = first_captured(ledger, lease, ORDERS)
    with refused(ledger, lease, "batches_(end_stays|move_forward)"):
        ledger.record_capture(lease, batch.id, record(batch))
    with refused(ledger, lease, "segments_while_capturing"):
        ledger.record_capture(lease, batch.id, record(batch, ORDERS))


def test_setting_an_unknown_table_aside(ledger: Ledger, lease: Lease) -> None:
    """Its state is recorded first."""
    with refused(ledger, lease, "table_states_known"):
        ledger.quarantine(lease, QUARANTINED)


def test_acknowledging_what_is_not_merged(ledger: Ledger, lease: Lease) -> None:
    """Capturing, captured and abandoned batches are not acknowledged."""
    batch = begun(ledger, lease)
    with refused(ledger, lease, "batches_(move_forward|end_recorded)"):
        ledger.acknowledge(lease, batch.id)
    ledger.record_capture(lease, batch.id, record(batch))
    with refused(ledger, lease, "batches_move_forward"):
        ledger.acknowledge(lease, batch.id)
    ledger.abandon(lease, batch.id, "damaged")
    with refused(ledger, lease, "batches_move_forward"):
        ledger.acknowledge(lease, batch.id)


def test_acknowledging_twice_and_out_of_order(ledger: Ledger, lease: Lease) -> None:
    """The predecessor comes first, and each once."""
    first = first_captured(ledger, lease)
    second = next_captured(ledger, lease)
    ledger.mark_merged(lease)
    with refused(ledger, lease, "batches_acknowledged_in_order"):
        ledger.acknowledge(lease, second.id)
    ledger.acknowledge(lease, first.id)
    with refused(ledger, lease, "batches_move_forward"):
        ledger.acknowledge(lease, first.id)


def test_abandoning_below_a_later_batch(ledger: Ledger, lease: Lease) -> None:
    """The newest goes first."""
    first = first_captured(ledger, lease)
    following(ledger, lease)
    with refused(ledger, lease, "batches_abandoned_newest_first"):
        ledger.abandon(lease, first.id, "damaged")


def test_abandoning_what_is_merged(ledger: Ledger, lease: Lease) -> None:
    """Merged batches stay."""
    batch = first_captured(ledger, lease)
    ledger.mark_merged(lease)
    with refused(ledger, lease, "batches_move_forward"):
        ledger.abandon(lease, batch.id, "damaged")


def test_settling_otherwise(ledger: Ledger, lease: Lease) -> None:
    """A settled write keeps its version, and versions only go up."""
    first = first_captured(ledger, lease, ORDERS)
    intent = merged(ledger, lease, ORDERS, first.id, first.id, 5)
    with refused(ledger, lease, "writes_settled_once"):
        ledger.settle(lease, intent, 6)
    with refused(ledger, lease, "writes_known"):
        ledger.settle(lease, replace(intent, txn_version=0), 7)
    second = next_captured(ledger, lease, ORDERS)
    later = intended(ledger, lease, ORDERS, second.id, second.id)
    with refused(ledger, lease, "writes_delta_version_ascends"):
        ledger.settle(lease, later, 4)
    assert newest(ledger, lease) == second
