"""A batch that is abandoned never was: whatever its capture recorded, the ledger answers as before
the batch began. And what a source records is no other source's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import EndedTransaction
from lockstep.pipeline.model.table_state import (
    Extent,
    OrderKind,
    StoppedTable,
    TableCondition,
    TableEvent,
    TableEventKind,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import BatchHistory, DatabaseVersion
from lockstep.pipeline.schema.model import DatabaseSchema, ForeignKey
from lockstep.pipeline.values.decisions import Continuity, Lease
from lockstep.pipeline.values.position import SetAnchor
from lockstep.pipeline.values.table import TableName, TablePatterns
from tests.ledger.made import (
    CONTIGUOUS,
    GAP,
    ORDERS,
    OTHER,
    OVERLAP,
    SERVER,
    STOCK,
    begun,
    captured_elsewhere,
    elsewhere,
    first_captured,
    following,
    merged,
    newest,
    next_captured,
    on,
    place,
    position,
    prepared,
    record,
    state,
    version,
)
from tests.ledger.test_continuity import settle, swap
from tests.ledger.test_history import STATEMENT
from tests.ledger.test_loads import follows, joins, merged_orders, read_load, the_load
from tests.ledger.test_orders import caught_up

STOPPED = StoppedTable(STOCK, "nobody understands it", "resume it", "x", place(150))
FIRST_SEEN = TableName("shop", "first_seen")


def answers(ledger: Ledger, source: str) -> dict[str, object]:
    """All that is asked of a source, but for batches that are abandoned."""
    return {
        "cursors": ledger.cursors(source),
        "batches": ledger.live_batches(source, 0, 1 << 60),
        "unfinished": ledger.unfinished_batches(source),
        "times": ledger.batch_times(source),
        "read": [ledger.captured_batch(source, SERVER, place(offset)) for offset in (50, 150)],
        "overlaps": ledger.live_batches(source, continuity=Continuity.OVERLAP),
        "gaps": ledger.gaps(source),
        "servers": ledger.server_periods(source),
        "choice": ledger.open_override(source),
        "states": ledger.table_states(source),
        "orders": ledger.open_orders(source),
        "loads": ledger.open_loads(source),
        "prepared": ledger.open_prepared(source),
        "partial": ledger.partial_tables(source),
        "anchors": ledger.set_anchors(source, 1 << 60),
        "scopes": ledger.capture_scopes(source),
        "schemas": ledger.schemas_at(source),
        "referring": ledger.schemas_at(source, referring=True),
        "versions": ledger.schema_versions(source, ORDERS),
        "databases": ledger.databases_at(source),
        "statements": ledger.schema_statements(source),
        "has history": ledger.has_history(source),
        "pending": ledger.pending_batches(source),
    }


Captures = Iterator[None]
"""Captures a batch behind its `yield`; what comes before is there already."""


def rows(ledger: Ledger, lease: Lease) -> Captures:
    first_captured(ledger, lease, ORDERS, STOCK)
    yield
    next_captured(ledger, lease, STOCK)


def the_first_batch(ledger: Ledger, lease: Lease) -> Captures:
    yield
    batch = begun(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), history=_baseline()))


def _baseline() -> BatchHistory:
    database = DatabaseVersion("shop", place(4), DatabaseSchema("shop", "latin1", "latin1_bin"))
    return BatchHistory((STATEMENT,), (version(FIRST_SEEN),), (database,))


def structures(ledger: Ledger, lease: Lease) -> Captures:
    first_captured(ledger, lease, ORDERS, STOCK)
    yield
    plain, key = version(ORDERS, 2, 110), ForeignKey("fk", ("a",), STOCK, ("b",), "CASCADE")
    assert plain.schema is not None
    referring = replace(plain, schema=replace(plain.schema, foreign_keys=(key,)))
    history = replace(_baseline(), versions=(referring, version(FIRST_SEEN)))
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), history=history))


def a_table_that_stops(ledger: Ledger, lease: Lease) -> Captures:
    first = first_captured(ledger, lease, ORDERS, STOCK)
    merged(ledger, lease, STOCK, first.id, first.id, 1)
    yield
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch, STOCK), stopped_tables=(STOPPED,)))


def a_table_that_is_dropped(ledger: Ledger, lease: Lease) -> Captures:
    first_captured(ledger, lease, ORDERS, STOCK)
    yield
    batch = following(ledger, lease)
    event = TableEvent(STOCK, TableEventKind.DROPPED, batch.sequence_before, 1, place(110))
    gone = replace(state(STOCK), condition=TableCondition.DROPPED)
    ledger.record_capture(lease, batch.id, replace(record(batch), events=(event,), tables=(gone,)))


def _resumed(ledger: Ledger, lease: Lease) -> int:
    """An order about stock, which was stopped at the end of a batch that was merged without it."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    merged(ledger, lease, ORDERS, first.id, first.id, 1)
    ledger.quarantine(lease, replace(STOPPED, at=None))
    ledger.mark_merged(lease)
    order = ledger.order_table(lease, STOCK, OrderKind.RESUME, author="ada", reason="mended")
    return order.id


def an_order_that_is_carried_out(ledger: Ledger, lease: Lease) -> Captures:
    order = _resumed(ledger, lease)
    yield
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch, STOCK), orders_done=(order,)))


def an_order_whose_table_stops_again(ledger: Ledger, lease: Lease) -> Captures:
    order = _resumed(ledger, lease)
    yield
    batch = following(ledger, lease)
    stopped = replace(record(batch, STOCK), orders_done=(order,), stopped_tables=(STOPPED,))
    ledger.record_capture(lease, batch.id, stopped)


def a_table_that_is_caught_up(ledger: Ledger, lease: Lease) -> Captures:
    first = first_captured(ledger, lease, ORDERS, STOCK)
    ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="")
    next_captured(ledger, lease, STOCK)
    order = ledger.order_table(lease, ORDERS, OrderKind.RESUME, author="ada", reason="")
    yield
    caught_up(ledger, lease, first.start, order.id)


def mirrors_that_change_hands(ledger: Ledger, lease: Lease) -> Captures:
    settle(ledger, lease)
    yield
    swap(ledger, lease, following(ledger, lease))


def prepared_transactions_that_end(ledger: Ledger, lease: Lease) -> Captures:
    """One XID is used again by the batch that ends it."""
    batch = begun(ledger, lease)
    made = tuple(prepared(batch, name) for name in (b"a", b"b"))
    ledger.record_capture(lease, batch.id, replace(record(batch), prepared_transactions=made))
    yield
    batch = following(ledger, lease)
    ended = tuple(EndedTransaction(one, committed=one is made[0]) for one in made)
    again = replace(
        record(batch),
        prepared_transactions=(prepared(batch, b"a"), prepared(batch, b"c")),
        ended_transactions=ended,
    )
    ledger.record_capture(lease, batch.id, again)


def a_load_that_is_followed(ledger: Ledger, lease: Lease) -> Captures:
    merged_orders(ledger, lease)
    load = read_load(ledger, lease)
    yield
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, follows(batch, load))


def a_load_that_is_joined(ledger: Ledger, lease: Lease) -> Captures:
    merged_orders(ledger, lease)
    load = read_load(ledger, lease)
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, follows(batch, load))
    yield
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, joins(batch, the_load(ledger, lease)))


def what_is_told_of_the_log(ledger: Ledger, lease: Lease) -> Captures:
    """Where tables begin, anchors, patterns, and that a set of GTIDs is not to be trusted."""
    batch = begun(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch, ORDERS, first=True), by_gtid=True))
    yield
    batch = following(ledger, lease)
    told = replace(
        record(batch),
        extents=(Extent(ORDERS, place(7)),),
        set_anchors=(SetAnchor("b:7", 9),),
        scope=TablePatterns(("shop.*",)),
    )
    ledger.record_capture(lease, batch.id, told)


def a_gap_that_somebody_chose(ledger: Ledger, lease: Lease) -> Captures:
    first = first_captured(ledger, lease, ORDERS)
    choice = ledger.choose_start(lease, place="latest", reason="it was lost", author="ada")
    yield
    chosen = replace(GAP, override=choice.id)
    captured_elsewhere(ledger, lease, elsewhere(ledger, lease, first, chosen))


def a_part_that_is_read_again(ledger: Ledger, lease: Lease) -> Captures:
    first = first_captured(ledger, lease, ORDERS)
    yield
    batch = elsewhere(ledger, lease, first, OVERLAP, start=position(54))
    ledger.record_capture(lease, batch.id, record(batch))


def another_server(ledger: Ledger, lease: Lease) -> Captures:
    first = first_captured(ledger, lease, ORDERS)
    yield
    there = elsewhere(ledger, lease, first, CONTIGUOUS, on(OTHER, position(4)))
    captured_elsewhere(ledger, lease, there, on(OTHER, position(300)))


@pytest.mark.parametrize(
    "captures",
    [
        *(rows, the_first_batch, structures, a_table_that_stops, a_table_that_is_dropped),
        *(an_order_that_is_carried_out, an_order_whose_table_stops_again),
        *(a_table_that_is_caught_up, mirrors_that_change_hands, prepared_transactions_that_end),
        *(a_load_that_is_followed, a_load_that_is_joined, what_is_told_of_the_log),
        *(a_gap_that_somebody_chose, a_part_that_is_read_again, another_server),
    ],
)
def test_an_abandoned_batch_never_was(
    ledger: Ledger, lease: Lease, captures: Callable[[Ledger, Lease], Captures]
) -> None:
    """Nor is anything of it a source's beside, whose tables have the same names."""
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        first_captured(ledger, beside, ORDERS)
    others = answers(ledger, beside.source)
    steps = captures(ledger, lease)
    next(steps)
    before = answers(ledger, lease.source)
    assert next(steps, "captured") == "captured"
    assert answers(ledger, lease.source) != before
    ledger.abandon(lease, newest(ledger, lease).id, "damaged")
    assert answers(ledger, lease.source) == before
    assert answers(ledger, beside.source) == others
