"""The ledger knows which runs Dagster records, and what the others did."""

from __future__ import annotations

from lockstep.pipeline.model.batch import RunsElsewhere
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import ORDERS, STOCK, first_captured, intended, merged, next_captured


def test_what_others_did_is_told_by_the_leases_of_a_span(ledger: Ledger, source: str) -> None:
    """Runs, their batches, and each table once with its last write; nothing of what Dagster
    records, and commands are no runs, though they write. A write counts for the lease under which
    it was settled, whoever began it."""
    with ledger.lock(source, "a run", "run-1") as lease:
        one = first_captured(ledger, lease, ORDERS, STOCK).id
        merged(ledger, lease, STOCK, one, one, 0)
    with ledger.lock(source, "Dagster", "run-2", in_dagster=True) as lease:
        merged(ledger, lease, ORDERS, one, one, 0)
        two = next_captured(ledger, lease, ORDERS, STOCK).id
    with ledger.lock(source, "a command", None) as lease:
        merged(ledger, lease, STOCK, two, two, 1)
        left = intended(ledger, lease, ORDERS, two, two)
    with ledger.lock(source, "a run", "run-4") as lease:
        ledger.settle(lease, left, 1)

    def written(after: int, through: int, **more: TableName) -> list[tuple[TableName, int, int]]:
        found = ledger.written_elsewhere(source, after, through, more.get("beyond"), 9)
        return [(one.last.intent.table, one.first_batch, one.last.delta_version) for one in found]

    assert ledger.runs_elsewhere(source, 0, 4) == RunsElsewhere(2, (one,))
    assert ledger.runs_elsewhere(source, 1, 3) == RunsElsewhere(0, ())
    assert ledger.runs_elsewhere(source, 0, 9).forgotten == 5
    assert written(0, 4) == [(ORDERS, two, 1), (STOCK, one, 1)]
    assert written(0, 4, beyond=ORDERS) == [(STOCK, one, 1)]
    assert (written(1, 3), written(1, 2)) == ([(STOCK, two, 1)], [])
    (first,) = ledger.written_elsewhere(source, 0, 4, None, 1)
    assert first.last.intent.table == ORDERS
