"""What is read together: each table as of one batch, or why it cannot be read so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.table_state import (
    OrderKind,
    StoppedTable,
    TableCondition,
    TableEvent,
    TableEventKind,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused
from lockstep.pipeline.values.intent import MissingReason, MissingTable, VersionSetEntry
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    ORDERS,
    STOCK,
    begun_write,
    first_captured,
    following,
    next_captured,
    place,
    record,
    state,
)
from tests.ledger.test_orders import caught_up

QUARANTINED = StoppedTable(STOCK, "a value", "resume it", "batch 1")


def settled(
    ledger: Ledger, lease: Lease, table: TableName, first: int, last: int, version: int, uuid: str
) -> None:
    app_id = f"lockstep/{lease.source}/{table}/mirror/1"
    intent = begun_write(ledger, lease, table, app_id, first, last)
    ledger.settle(lease, intent, version, table_id=uuid)


def acknowledged(ledger: Ledger, lease: Lease, *batches: int) -> None:
    ledger.mark_merged(lease)
    for batch in batches:
        ledger.acknowledge(lease, batch)


def test_a_set_names_the_newest_version_with_its_rows(ledger: Ledger, lease: Lease) -> None:
    """Upkeep shows the rows of a write in other files: sets of before and of later name those, as
    long as nothing else was written; sets of other writes stay."""
    first = first_captured(ledger, lease, ORDERS)
    settled(ledger, lease, ORDERS, first.id, first.id, 1, "a")
    acknowledged(ledger, lease, first.id)
    mirror = "s/shop/orders"
    for version in (2, 3, 3):
        ledger.note_upkeep_version(lease, mirror, shows=1, delta_version=version)
    second = next_captured(ledger, lease, ORDERS)
    settled(ledger, lease, ORDERS, second.id, second.id, 4, "a")
    acknowledged(ledger, lease, second.id)
    with pytest.raises(LedgerRefused):
        ledger.note_upkeep_version(lease, mirror, shows=1, delta_version=5)
    shown = {
        batch: ledger.version_set(lease.source, batch).entries for batch in (first.id, second.id)
    }
    assert [shown[first.id][0].delta_version, shown[second.id][0].delta_version] == [3, 4]
    found = ledger.mirror_versions(lease.source, ORDERS, second.id)
    assert [version.delta_version for version in found] == [4, 3]
    [write, *_] = ledger.intents_of_batch(lease.source, second.id)
    assert found[0] == ledger.mirror_version(lease.source, write.id)
    # Nobody has looked at what was committed to the mirror before its newest version.
    ledger.note_examined_versions(lease, {mirror: 3})
    assert found[1:] == ledger.mirror_versions(lease.source, ORDERS, second.id)
    assert ledger.upkeep_versions(lease.source) == {mirror: 3}


def test_a_set_is_as_of_its_batch_for_good(ledger: Ledger, lease: Lease) -> None:
    """Once that is acknowledged; with the id of each Delta table, for one that is made anew in the
    folder is another. What comes later changes nothing of it, also where only some tables changed.
    A table that is dropped is not missing."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    settled(ledger, lease, ORDERS, first.id, first.id, 1, "a")
    settled(ledger, lease, STOCK, first.id, first.id, 1, "b")
    ledger.mark_merged(lease)
    assert ledger.version_set(lease.source, first.id).entries == []
    acknowledged(ledger, lease, first.id)
    second = next_captured(ledger, lease, STOCK)
    settled(ledger, lease, STOCK, second.id, second.id, 2, "b")
    third = next_captured(ledger, lease)
    acknowledged(ledger, lease, second.id, third.id)
    fourth = following(ledger, lease)
    gone = replace(state(STOCK), condition=TableCondition.DROPPED)
    event = TableEvent(STOCK, TableEventKind.DROPPED, fourth.sequence_before, 1, place(350))
    dropped = replace(record(fourth), tables=(gone,), events=(event,))
    ledger.record_capture(lease, fourth.id, dropped)
    settled(ledger, lease, STOCK, fourth.id, fourth.id, 3, "b")
    acknowledged(ledger, lease, fourth.id)
    orders, path = VersionSetEntry(ORDERS, "s/shop/orders", 1, "a"), "s/shop/stock"
    for batch, others in (
        (first, [VersionSetEntry(STOCK, path, 1, "b")]),
        (second, [VersionSetEntry(STOCK, path, 2, "b")]),
        (third, [VersionSetEntry(STOCK, path, 2, "b")]),
        (fourth, []),
    ):
        found = ledger.version_set(lease.source, batch.id)
        assert (found.entries, found.missing_tables) == ([orders, *others], [])


def test_what_is_merged_together_is_in_the_last_set(ledger: Ledger, lease: Lease) -> None:
    """The set of an earlier batch names the one that has the table, and its other tables."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    second = next_captured(ledger, lease, ORDERS)
    settled(ledger, lease, ORDERS, first.id, second.id, 1, "a")
    settled(ledger, lease, STOCK, first.id, first.id, 1, "b")
    acknowledged(ledger, lease, first.id, second.id)
    assert [one.table for one in ledger.version_set(lease.source, first.id).entries] == [STOCK]
    assert ledger.version_set(lease.source, first.id).missing_tables == [
        MissingTable(ORDERS, MissingReason.TOGETHER, second.id)
    ]
    assert [one.table for one in ledger.version_set(lease.source, second.id).entries] == [
        ORDERS,
        STOCK,
    ]
    assert ledger.version_set(lease.source, second.id).missing_tables == []


def test_a_table_quarantined_is_missing_until_it_is_back(ledger: Ledger, lease: Lease) -> None:
    """Its mirror stands still while the others go on; once it has what it lacked it is there."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    settled(ledger, lease, ORDERS, first.id, first.id, 1, "a")
    ledger.quarantine(lease, QUARANTINED)
    acknowledged(ledger, lease, first.id)
    assert ledger.version_set(lease.source, first.id).missing_tables == [
        MissingTable(STOCK, MissingReason.STOPPED)
    ]
    order = ledger.order_table(lease, STOCK, OrderKind.RESUME, author="ada", reason="mended")
    second = following(ledger, lease)
    ledger.record_capture(lease, second.id, replace(record(second, STOCK), orders_done=(order.id,)))
    settled(ledger, lease, STOCK, first.id, second.id, 1, "b")
    acknowledged(ledger, lease, second.id)
    assert [one.table for one in ledger.version_set(lease.source, second.id).entries] == [
        ORDERS,
        STOCK,
    ]
    assert [one.table for one in ledger.version_set(lease.source, first.id).entries] == [ORDERS]


def test_what_came_back_later_is_not_in_an_earlier_set(ledger: Ledger, lease: Lease) -> None:
    """A batch may be acknowledged when the next one is captured already: that a table is active
    again does not make its mirror one of the earlier batch."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    settled(ledger, lease, ORDERS, first.id, first.id, 1, "a")
    settled(ledger, lease, STOCK, first.id, first.id, 1, "b")
    acknowledged(ledger, lease, first.id)
    ledger.quarantine(lease, QUARANTINED)
    second = next_captured(ledger, lease, ORDERS)
    order = ledger.order_table(lease, STOCK, OrderKind.RESUME, author="ada", reason="mended")
    third = following(ledger, lease)
    ledger.record_capture(lease, third.id, replace(record(third, STOCK), orders_done=(order.id,)))
    settled(ledger, lease, ORDERS, second.id, second.id, 2, "a")
    settled(ledger, lease, STOCK, third.id, third.id, 2, "b")
    acknowledged(ledger, lease, second.id, third.id)
    assert ledger.version_set(lease.source, second.id).missing_tables == [
        MissingTable(STOCK, MissingReason.RESUMED_LATER)
    ]
    assert ledger.version_set(lease.source, third.id).missing_tables == []


@pytest.mark.parametrize("resumed", [False, True])
def test_a_table_stays_in_the_set_of_a_batch_that_only_catches_up_others(
    ledger: Ledger, lease: Lease, resumed: bool
) -> None:
    """Such a batch ends where the batch before it ended, and so does a table that stopped there:
    whether it is still stopped, or came back in a batch that was captured meanwhile."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    settled(ledger, lease, ORDERS, first.id, first.id, 1, "a")
    settled(ledger, lease, STOCK, first.id, first.id, 1, "b")
    acknowledged(ledger, lease, first.id)
    ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="")
    second = next_captured(ledger, lease, STOCK)
    settled(ledger, lease, STOCK, second.id, second.id, 2, "b")
    acknowledged(ledger, lease, second.id)
    ledger.order_table(lease, STOCK, OrderKind.PAUSE, author="ada", reason="")
    order = ledger.order_table(lease, ORDERS, OrderKind.RESUME, author="ada", reason="")
    assert first.end is not None
    third = caught_up(ledger, lease, first.end, order.id)
    order = ledger.order_table(lease, STOCK, OrderKind.RESUME, author="ada", reason="")
    fourth = following(ledger, lease)
    back = (order.id,) if resumed else ()
    ledger.record_capture(lease, fourth.id, replace(record(fourth), orders_done=back))
    settled(ledger, lease, ORDERS, third.id, third.id, 2, "a")
    acknowledged(ledger, lease, third.id, fourth.id)
    shown = {
        batch.id: [
            (one.table, one.delta_version)
            for one in ledger.version_set(lease.source, batch.id).entries
        ]
        for batch in (second, third, fourth)
    }
    orders, stock = (ORDERS, 2), (STOCK, 2)
    assert shown == {
        second.id: [stock],
        third.id: [orders, stock],
        fourth.id: [orders, stock] if resumed else [orders],
    }
    assert ledger.version_set(lease.source, third.id).missing_tables == []
