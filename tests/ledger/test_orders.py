"""Tables that stop and go on, as the ledger keeps them: quarantined, paused, resumed, caught up,
dropped; writes given up with them; and states, which are what their events make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extras import RealDictCursor

from lockstep.pipeline.model.batch import Batch, BatchKind
from lockstep.pipeline.model.life import MirrorRemoved, state_after
from lockstep.pipeline.model.table_state import (
    OrderKind,
    StoppedTable,
    StopPlace,
    TableCondition,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.schema.model import ForeignKey
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused, Need, StoppedBy
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.ledger import open_ledger
from lockstep.resources.postgres.life_events import event_of
from tests.ledger.made import (
    CONTIGUOUS,
    ORDERS,
    SERVER,
    STOCK,
    begun,
    begun_write,
    elsewhere,
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
    version,
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
    """A newer order takes the place of one that is open. Outside a capture a table stops where the
    captures are; its mirror lacks what was not merged."""
    first = first_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, first.id, first.id, 1)
    second = next_captured(ledger, lease, ORDERS)
    ledger.quarantine(lease, replace(QUARANTINED, at=None))
    stopped = orders(ledger, lease)
    assert (stopped.stopped, stopped.missing_since) == (
        StopPlace(second.id, place(204)),
        second.id,
    )
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


REFUSED = StoppedTable(ORDERS, "a value is refused", "mend it", "batch 1", need=Need.MIRROR)


# -- writes that are given up with their table -------------------------------------------


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


# -- a state and its events --------------------------------------------------------------


_SOURCE = "the source of a life"


def _lived(ledger: Ledger, lease: Lease) -> dict[int, Coordinates]:
    """Orders come back from a pause in a batch that drops stock; the next one, which quarantines
    stock's successor and drops orders, is abandoned: its start."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    for number, table in enumerate((ORDERS, STOCK), start=2):
        merged(ledger, lease, table, first.id, first.id, number)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, first.id)
    ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="a repair")
    order = ledger.order_table(
        lease, ORDERS, OrderKind.RESUME, author="ada", reason="it is repaired"
    )
    batch = following(ledger, lease)
    made = replace(record(batch, ORDERS), orders_done=(order.id,), tables=(_dropped(STOCK),))
    ledger.record_capture(lease, batch.id, made)
    batch = following(ledger, lease)
    aside = StoppedTable(STOCK, "why", "hint", str(place(220)), place(220), Need.COLUMNS)
    made = replace(record(batch), tables=(_dropped(ORDERS), state(STOCK)), stopped_tables=(aside,))
    ledger.record_capture(lease, batch.id, made)
    ledger.abandon(lease, batch.id, "damaged")
    ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="another repair")
    return {batch.id: batch.start.at}


def _dropped(table: TableName) -> TableState:
    return replace(state(table), condition=TableCondition.DROPPED, stopped=None)


def test_a_state_is_what_its_events_make_of_it(embedded_dsn: str) -> None:
    """Each event says who told it."""
    with open_ledger(embedded_dsn, Path()) as ledger:
        with ledger.lock(_SOURCE, "a test", None) as lease:
            begins = _lived(ledger, lease)
        states = ledger.table_states(_SOURCE)
    connection = psycopg2.connect(embedded_dsn)
    with connection.cursor(cursor_factory=RealDictCursor) as cursor:
        cursor.execute("select * from lockstep.table_life where source = %s order by id", [_SOURCE])
        rows = cursor.fetchall()
    connection.close()
    assert {name.name: one.condition.value for name, one in states.items()} == {
        "orders": "stopped",
        "stock": "dropped",
    }
    assert all(row["token"] for row in rows)
    assert {
        name: state_after(
            name,
            [(row["batch"], event_of(row)) for row in rows if row["name"] == name.name],
            begins,
        )
        for name in states
    } == {name: replace(one, missing_since=None) for name, one in states.items()}


# -- a batch that catches tables up ------------------------------------------------------


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


# -- foreign keys, and mirrors that are removed ------------------------------------------


def test_tables_with_foreign_keys(ledger: Ledger, lease: Lease) -> None:
    """By what they have now: a key that came later counts, one that is gone does not."""
    key = ForeignKey("fk", ("a",), STOCK, ("b",), "CASCADE")

    plain, other = version(ORDERS), version(STOCK)
    assert plain.schema is not None
    assert other.schema is not None
    with_key = replace(other, schema=replace(other.schema, foreign_keys=(key,)))
    first = begun(ledger, lease)
    history = BatchHistory(versions=(plain, with_key))
    ledger.record_capture(lease, first.id, replace(record(first), history=history))
    assert ledger.schemas_at(lease.source, referring=True) == [replace(with_key, batch=first.id)]
    second = following(ledger, lease)
    gained = replace(version(ORDERS, 2, 110), schema=replace(plain.schema, foreign_keys=(key,)))
    history = BatchHistory(versions=(gained, version(STOCK, 2, 120)))
    ledger.record_capture(lease, second.id, replace(record(second), history=history))
    assert ledger.schemas_at(lease.source, referring=True) == [replace(gained, batch=second.id)]
    ledger.abandon(lease, second.id, "damaged")
    assert ledger.schemas_at(lease.source, referring=True) == [replace(with_key, batch=first.id)]


def test_a_mirror_ends_once(ledger: Ledger, lease: Lease) -> None:
    """The next life of a dropped table is another generation, whose writes have versions of
    their own; a table that is there keeps its mirror."""
    first = first_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, first.id, first.id, 7)
    settled = ledger.newest_writes(lease.source, [f"{lease.source}/{ORDERS}@1"])[
        f"{lease.source}/{ORDERS}@1"
    ].settled_write
    assert settled is not None
    with pytest.raises(LedgerRefused, match="table_states_dropped"):
        ledger.record_event(lease, ORDERS, MirrorRemoved())
    with pytest.raises(LedgerRefused, match="table_states_dropped"):
        ledger.record_event(lease, STOCK, MirrorRemoved())
    second = following(ledger, lease)
    gone = replace(state(ORDERS), condition=TableCondition.DROPPED)
    ledger.record_capture(lease, second.id, replace(record(second, ORDERS), tables=(gone,)))
    app_id = settled.intent.app_id
    intent = begun_write(ledger, lease, ORDERS, app_id, second.id, second.id)
    ledger.settle(lease, intent, 8, schema_version=1)
    for _ in range(2):
        ledger.record_event(lease, ORDERS, MirrorRemoved())
        found = ledger.table_states(lease.source)[ORDERS]
        assert (found.generation, found.mirror_schema_version) == (2, None)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, first.id)
    ledger.acknowledge(lease, second.id)
    assert ledger.version_set(lease.source, second.id).entries == []
    third = following(ledger, lease)
    again = replace(state(ORDERS), generation=2)
    ledger.record_capture(lease, third.id, replace(record(third, ORDERS), tables=(again,)))
    intent = begun_write(ledger, lease, ORDERS, "another", third.id, third.id)
    ledger.settle(lease, intent, 0, schema_version=1)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, third.id)
    (entry,) = ledger.version_set(lease.source, third.id).entries
    assert (entry.table, entry.delta_version) == (ORDERS, 0)
