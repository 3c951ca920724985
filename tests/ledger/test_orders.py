"""Tables that stop and go on: quarantined, paused, resumed, by every ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.life import MirrorReplaced
from lockstep.pipeline.model.table_state import (
    OrderKind,
    StoppedTable,
    StopPlace,
    TableCondition,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    ORDERS,
    STOCK,
    begun,
    begun_write,
    first_captured,
    following,
    intended,
    merged,
    newest,
    next_captured,
    place,
    record,
    schema,
    state,
)
from tests.ledger.refusals import refused
from tests.ledger.servers import Stand

QUARANTINED = StoppedTable(
    ORDERS, "nobody understands it", "resume it", "binlog.000001:150", place(150)
)


def orders(ledger: Ledger, lease: Lease) -> TableState:
    return ledger.table_states(lease.source)[ORDERS]


def pause(ledger: Ledger, lease: Lease, table: TableName = ORDERS) -> TableOrder:
    return ledger.order_table(lease, table, OrderKind.PAUSE, author="ada", reason="a migration")


def resume(ledger: Ledger, lease: Lease, table: TableName = ORDERS) -> TableOrder:
    return ledger.order_table(lease, table, OrderKind.RESUME, author="ada", reason="")


def carried_out(ledger: Ledger, lease: Lease, *done: int, quarantined: bool = False) -> Batch:
    """A batch with changes of orders, whose capture carries orders out."""
    batch = following(ledger, lease)
    stopped = (replace(QUARANTINED, at=place(280)),) if quarantined else ()
    made = replace(record(batch, ORDERS), orders_done=done, stopped_tables=stopped)
    ledger.record_capture(lease, batch.id, made)
    return newest(ledger, lease)


def carry_out(ledger: Ledger, lease: Lease, order: TableOrder) -> None:
    """By the newest batch."""
    batch = newest(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), orders_done=(order.id,)))


def test_a_paused_table_stops_where_the_captures_are(stand: Stand, source: str) -> None:
    """At once; whoever looks is told who did it, and how it goes on."""
    with stand.ledger.lock(source, "a test", None) as lease:
        batch = first_captured(stand.ledger, lease, ORDERS, STOCK)
        merged(stand.ledger, lease, ORDERS, batch.id, batch.id, 1)
        stopped = StopPlace(batch.id, place(104))
        order = pause(stand.ledger, lease)
        assert (order.table, order.kind, order.author) == (ORDERS, OrderKind.PAUSE, "ada")
        assert (order.reason, order.stopped) == ("a migration", stopped)
        assert stand.other.table_states(source)[ORDERS] == replace(
            state(ORDERS),
            condition=TableCondition.STOPPED,
            stopped_by=StoppedBy.PERSON,
            reason="ada paused it: a migration",
            hint="`lockstep resume shop.orders` brings it back",
            position="binlog.000001:104",
            stopped=stopped,
        )
        assert stand.other.open_orders(source) == []


def test_a_paused_table_holds_nothing_up(ledger: Ledger, lease: Lease) -> None:
    """What of it is not merged is known, and waits until it is followed again."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    second = next_captured(ledger, lease, ORDERS)
    pause(ledger, lease)
    assert orders(ledger, lease).missing_since == first.id
    assert orders(ledger, lease).stopped == StopPlace(second.id, place(204))
    merged(ledger, lease, STOCK, first.id, first.id, 1)
    assert ledger.pending_batches(lease.source) == {}
    assert ledger.mark_merged(lease) == [first.id, second.id]
    for batch in (first, second):
        ledger.acknowledge(lease, batch.id)
    with refused(ledger, lease, "writes_of_(merged_tables|captured_batches)"):
        intended(ledger, lease, ORDERS, first.id, second.id)


def test_a_resumed_table_is_caught_up_by_a_capture(ledger: Ledger, lease: Lease) -> None:
    """The order is open until then; then the table is followed, and what it missed is pending, to
    be merged in steps, none of them twice. A write that was begun before it stopped counts once it
    is settled."""
    first = first_captured(ledger, lease, ORDERS)
    opened = intended(ledger, lease, ORDERS, first.id, first.id)
    second, third = next_captured(ledger, lease, ORDERS), next_captured(ledger, lease, ORDERS)
    pause(ledger, lease)
    assert orders(ledger, lease).missing_since == first.id
    ledger.settle(lease, opened, 1)
    assert orders(ledger, lease).missing_since == second.id
    ledger.mark_merged(lease)
    for batch in (first, second, third):
        ledger.acknowledge(lease, batch.id)
    resume(ledger, lease)
    pause(ledger, lease)
    assert ledger.open_orders(lease.source) == []
    order = resume(ledger, lease)
    assert ledger.open_orders(lease.source) == [order]
    assert (order.kind, order.stopped) == (OrderKind.RESUME, StopPlace(third.id, place(304)))
    batch = carried_out(ledger, lease, order.id)
    assert ledger.open_orders(lease.source) == []
    assert orders(ledger, lease) == replace(state(ORDERS), missing_since=second.id)
    assert ledger.pending_batches(lease.source) == {ORDERS: [second.id, third.id, batch.id]}
    merged(ledger, lease, ORDERS, second.id, second.id, 2)
    assert orders(ledger, lease).missing_since == third.id
    with refused(ledger, lease, "writes_(never_overlap|of_captured_batches)"):
        intended(ledger, lease, ORDERS, first.id, batch.id)
    assert ledger.mark_merged(lease) == []
    merged(ledger, lease, ORDERS, third.id, batch.id, 3)
    assert orders(ledger, lease) == state(ORDERS)
    assert ledger.mark_merged(lease) == [batch.id]
    ledger.acknowledge(lease, batch.id)
    assert [one.table for one in ledger.version_set(lease.source, batch.id).entries] == [ORDERS]


def test_a_capture_sets_a_table_aside_at_a_place(ledger: Ledger, lease: Lease) -> None:
    """Without one the table stopped at the batch's start."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    merged(ledger, lease, ORDERS, first.id, first.id, 1)
    batch = following(ledger, lease)
    other = replace(QUARANTINED, table=STOCK, at=None)
    made = replace(record(batch, ORDERS), stopped_tables=(QUARANTINED, other))
    ledger.record_capture(lease, batch.id, made)
    states = ledger.table_states(lease.source)
    assert [(one.stopped, one.missing_since) for one in states.values()] == [
        (StopPlace(batch.id, place(150)), batch.id),
        (StopPlace(batch.id, place(104)), first.id),
    ]


def test_a_resume_may_bring_a_structure(ledger: Ledger, lease: Lease) -> None:
    """A newer order takes the place of one that is open."""
    first_captured(ledger, lease, ORDERS)
    ledger.quarantine(lease, replace(QUARANTINED, at=None))
    older = resume(ledger, lease)
    assert ledger.open_orders(lease.source) == [older]
    given = schema(ORDERS, "note")
    renames = (("remark", "note"),)
    newer = ledger.order_table(
        lease,
        ORDERS,
        OrderKind.RESUME,
        author="ada",
        reason="by hand",
        schema=given,
        renames=renames,
    )
    assert (newer.schema, newer.renames) == (given, renames)
    assert ledger.open_orders(lease.source) == [newer]
    with refused(ledger, lease, "table_orders_renames_structured"):
        ledger.order_table(
            lease, ORDERS, OrderKind.RESUME, author="ada", reason="", renames=renames
        )
    following(ledger, lease)
    with refused(ledger, lease, "table_orders_newest_counts"):
        carry_out(ledger, lease, older)
    carry_out(ledger, lease, newer)
    assert orders(ledger, lease).is_complete
    assert ledger.open_orders(lease.source) == []


def test_a_pause_outlives_the_batch_it_stopped_behind(ledger: Ledger, lease: Lease) -> None:
    """The table stopped at the batch's start then: all that it read is read again."""
    first_captured(ledger, lease, ORDERS)
    second = next_captured(ledger, lease, ORDERS)
    pause(ledger, lease)
    order = resume(ledger, lease)
    ledger.abandon(lease, second.id, "damaged")
    stopped = StopPlace(second.id, place(104))
    assert orders(ledger, lease).stopped_by is StoppedBy.PERSON
    assert orders(ledger, lease).stopped == stopped
    assert ledger.open_orders(lease.source) == [replace(order, stopped=stopped)]


def test_a_pause_outlives_the_batch_that_caught_the_table_up(ledger: Ledger, lease: Lease) -> None:
    """Caught up, paused again, and the batch is lost: it stopped where it stood before."""
    first = first_captured(ledger, lease, ORDERS)
    pause(ledger, lease)
    ledger.mark_merged(lease)
    batch = carried_out(ledger, lease, resume(ledger, lease).id)
    pause(ledger, lease)
    ledger.abandon(lease, batch.id, "damaged")
    assert ledger.open_orders(lease.source) == []
    stood = orders(ledger, lease)
    assert stood.stopped_by is StoppedBy.PERSON
    assert (stood.stopped, stood.missing_since) == (StopPlace(first.id, place(104)), first.id)


def test_a_pause_before_anything_is_captured(ledger: Ledger, lease: Lease) -> None:
    """There is no place to stop at: it is paused all the same."""
    batch = begun(ledger, lease)
    ledger.record_capture(lease, batch.id, record(batch, ORDERS, first=True))
    ledger.abandon(lease, batch.id, "damaged")
    assert pause(ledger, lease).stopped is None
    paused = orders(ledger, lease)
    assert (paused.stopped_by, paused.stopped) == (StoppedBy.PERSON, None)
    assert paused.position == "nowhere in the log yet"
    resume(ledger, lease)
    assert [order.kind for order in ledger.open_orders(lease.source)] == [OrderKind.RESUME]


@pytest.mark.parametrize("state_", ["following", "paused", "quarantined"])
def test_a_reload(ledger: Ledger, lease: Lease, state_: str) -> None:
    """A followed table stops until the next run; any other stays as it is until the batch that
    carries the order out, and is that again when the batch is given up."""
    first_captured(ledger, lease, ORDERS)
    if state_ == "paused":
        pause(ledger, lease)
    elif state_ == "quarantined":
        ledger.quarantine(lease, QUARANTINED)
    before = orders(ledger, lease)
    order = ledger.order_table(lease, ORDERS, OrderKind.RELOAD, author="ann", reason="lost")
    assert [one.kind for one in ledger.open_orders(lease.source)] == [OrderKind.RELOAD]
    stopped = orders(ledger, lease)
    if state_ == "following":
        assert stopped.stopped_by is StoppedBy.RUN
        assert stopped.stopped is not None
        assert stopped.reason == "ann has it reloaded: lost"
    else:
        assert stopped == before
    second = following(ledger, lease)
    ledger.record_capture(lease, second.id, replace(record(second), orders_done=(order.id,)))
    assert orders(ledger, lease).is_complete
    ledger.abandon(lease, second.id, "damaged")
    assert orders(ledger, lease) == stopped
    assert [one.id for one in ledger.open_orders(lease.source)] == [order.id]


def test_a_mirror_that_is_lost_has_a_successor(ledger: Ledger, lease: Lease) -> None:
    """In another folder, with nothing of the table in it; the write that was open is given up,
    and the next one takes its batches."""
    batch = first_captured(ledger, lease, ORDERS)
    before = orders(ledger, lease)
    opened = begun_write(ledger, lease, ORDERS, "a", batch.id, batch.id)
    assert ledger.open_intents(lease.source) == [opened]
    ledger.give_up(lease, ORDERS)
    ledger.give_up(lease, ORDERS)
    assert ledger.open_intents(lease.source) == []
    after = ledger.record_event(lease, ORDERS, MirrorReplaced("elsewhere"))
    assert after == orders(ledger, lease)
    assert after == replace(
        before, mirror="elsewhere", mirror_generation=2, mirror_schema_version=None
    )


def test_orders_of_other_sources_are_not_ours(ledger: Ledger, lease: Lease) -> None:
    """Each source has its own."""
    first_captured(ledger, lease, ORDERS)
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        first_captured(ledger, beside, ORDERS)
        pause(ledger, beside)
        order = resume(ledger, beside)
    assert ledger.open_orders(lease.source) == []
    following(ledger, lease)
    with refused(ledger, lease, "table_orders_known"):
        carry_out(ledger, lease, order)
