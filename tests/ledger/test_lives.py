"""Tables' lives as Postgres keeps them: the state of each is what its events make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg2
from psycopg2.extras import RealDictCursor

from lockstep.pipeline.model.life import state_after
from lockstep.pipeline.model.table_state import OrderKind, StoppedTable, TableCondition, TableState
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.ledger import open_ledger
from lockstep.resources.postgres.life_events import event_of
from tests.ledger.made import (
    ORDERS,
    STOCK,
    first_captured,
    following,
    merged,
    place,
    record,
    state,
)

_SOURCE = "the source of test_lives"


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
