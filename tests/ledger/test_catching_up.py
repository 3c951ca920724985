"""A batch that catches tables up, by every ledger: it reads again, and the chain goes on."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.batch import Batch, BatchKind
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.position import Position
from tests.ledger.made import (
    CONTIGUOUS,
    ORDERS,
    SERVER,
    STOCK,
    elsewhere,
    first_captured,
    following,
    merged,
    newest,
    next_captured,
    place,
    record,
)


def caught_up(ledger: Ledger, lease: Lease, start: Position, order: int) -> Batch:
    """From that place to the end of the newest batch, for orders alone."""
    cursor = ledger.cursors(lease.source).captured
    assert cursor is not None
    followed = newest(ledger, lease)
    batch = elsewhere(ledger, lease, followed, CONTIGUOUS, start, BatchKind.CATCHING_UP)
    made = record(batch, ORDERS, end=cursor.position)
    made = replace(
        made, anchor=cursor.anchor, orders_done=(order,), tables=(), by_gtid=cursor.by_gtid
    )
    ledger.record_capture(lease, batch.id, made)
    return newest(ledger, lease)


def test_the_chain_goes_on_behind_it(ledger: Ledger, lease: Lease) -> None:
    """It ends where the batch ended that it follows: the cursor is another's end, numbers go
    on, and what it read again belongs to the batch that read it first."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    merged(ledger, lease, ORDERS, first.id, first.id, 1)
    ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="")
    second = next_captured(ledger, lease, STOCK)
    before = ledger.cursors(lease.source).captured
    order = ledger.order_table(lease, ORDERS, OrderKind.RESUME, author="ada", reason="")
    assert first.end is not None and before is not None
    batch = caught_up(ledger, lease, first.end, order.id)
    assert [one.catches_up for one in (first, second, batch)] == [False, False, True]
    assert (batch.start, batch.end, batch.previous_batch) == (first.end, second.end, second.id)
    assert batch.sequence_before == second.sequence_before + second.changes
    after = ledger.cursors(lease.source).captured
    assert after == replace(before, batch=batch.id)
    assert ledger.captured_batch(lease.source, SERVER, place(150)) == second
    assert ledger.table_states(lease.source)[ORDERS].is_complete
    assert ledger.pending_batches(lease.source)[ORDERS] == [batch.id]
    third = following(ledger, lease)
    assert (third.start, third.continued_batch) == (batch.end, batch.id)
    assert ledger.live_batches(lease.source, batch.id, batch.id) == [batch]
