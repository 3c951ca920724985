"""Steps that concern nothing that the ledger knows: each is refused by name and changes nothing.

Not here: steps that a constraint refuses (`violations.sql`).
"""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from tests.ledger.made import (
    ORDERS,
    begun,
    first_captured,
    intended,
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


def test_setting_an_unknown_table_aside(ledger: Ledger, lease: Lease) -> None:
    """Its state is recorded first."""
    with refused(ledger, lease, "table_states_known"):
        ledger.quarantine(lease, QUARANTINED)


def test_settling_what_nobody_began(ledger: Ledger, lease: Lease) -> None:
    """A write is known by its number."""
    batch = first_captured(ledger, lease, ORDERS)
    intent = intended(ledger, lease, ORDERS, batch.id, batch.id)
    with refused(ledger, lease, "writes_known"):
        ledger.settle(lease, replace(intent, txn_version=0), 7)
