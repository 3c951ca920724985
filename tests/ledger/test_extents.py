"""How much of a table the lake can have, as the books keep it."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.table_state import Extent, TableCondition
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    ORDERS,
    STOCK,
    first_captured,
    following,
    place,
    record,
    state,
)

UNSEEN = TableName("shop", "a_quiet_one")


def captured(ledger: Ledger, lease: Lease, *extents: Extent) -> int:
    """The next batch, with these."""
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), extents=extents))
    return batch.id


def test_the_newest_word_counts(ledger: Ledger, lease: Lease) -> None:
    """A table without a state is told of too."""
    first_captured(ledger, lease, ORDERS, STOCK)
    begin = [Extent(UNSEEN, place(4), place(9)), Extent(ORDERS, place(4)), Extent(STOCK, place(4))]
    captured(ledger, lease, *begin)
    assert ledger.partial_tables(lease.source) == begin
    captured(ledger, lease, Extent(STOCK, None), Extent(ORDERS, place(7)))
    assert ledger.partial_tables(lease.source) == [begin[0], Extent(ORDERS, place(7))]


def test_a_dropped_table_is_not_partial(ledger: Ledger, lease: Lease) -> None:
    """There is nothing that it could be a part of."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = following(ledger, lease)
    dropped = replace(state(ORDERS), condition=TableCondition.DROPPED)
    extents = (Extent(ORDERS, place(4)), Extent(STOCK, place(4)))
    made = replace(record(batch), tables=(dropped,), extents=extents)
    ledger.record_capture(lease, batch.id, made)
    assert [one.table for one in ledger.partial_tables(lease.source)] == [STOCK]


def test_what_was_found_equal_is_whole(ledger: Ledger, lease: Lease) -> None:
    """As of the batch; a later one may say otherwise."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = captured(ledger, lease, Extent(ORDERS, place(4)), Extent(STOCK, place(4)))
    ledger.note_complete(lease, batch, {ORDERS})
    assert [one.table for one in ledger.partial_tables(lease.source)] == [STOCK]
    captured(ledger, lease, Extent(ORDERS, place(8)))
    assert [one.table for one in ledger.partial_tables(lease.source)] == [ORDERS, STOCK]
