"""Tables that are not followed just now, as `lockstep status` tells of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.commands.status import inactive, inactive_lines, inactive_values
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.table_state import (
    OrderKind,
    Stopped,
    TableCondition,
    TableOrder,
    TableState,
)
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

MOMENT = datetime(2026, 11, 1, 6, tzinfo=UTC)
STOPPED = Stopped(3, Coordinates.parse("binlog.000002:400"))


def state(name: str, condition: TableCondition, reason: str | None = None) -> TableState:
    table = TableName("shop", name)
    found = TableState(table, condition, 1, f"shop/shop/{name}", f"shop/_changes/shop/{name}")
    if condition is TableCondition.FOLLOWING:
        return found
    hint = "do this" if reason else None
    by = None if reason is None else StoppedBy.PERSON if "paused" in reason else StoppedBy.SYSTEM
    return replace(
        found,
        reason=reason,
        hint=hint,
        position=str(STOPPED.at) if reason else None,
        stopped_by=by,
        stopped=STOPPED,
    )


STATES = {
    one.table: one
    for one in (
        state("a", TableCondition.FOLLOWING),
        state("b", TableCondition.STOPPED, "bytes without meaning"),
        state("c", TableCondition.STOPPED, "ann paused it: a load"),
        state("d", TableCondition.DROPPED),
        state("e", TableCondition.STOPPED, "its key changed"),
    )
}
RESUMED = TableOrder(7, TableName("shop", "e"), OrderKind.RESUME, "bob", "mended", MOMENT, STOPPED)
TABLES = inactive(STATES, [RESUMED])


def test_each_is_told_as_what_it_is() -> None:
    """Stopped by somebody, or dropped; an order takes the hint's place."""
    assert list(inactive_lines(TABLES)) == [
        "  shop.b was stopped by Lockstep at binlog.000002:400: bytes without meaning",
        "    hint: do this",
        "  shop.c was stopped by a person at binlog.000002:400: ann paused it: a load",
        "    hint: do this",
        "  shop.d was dropped at the source at binlog.000002:400",
        "  shop.e was stopped by Lockstep at binlog.000002:400: its key changed",
        "    resumed by bob, 2026-11-01 06:00:00 UTC: mended; the next run catches it up "
        "through the log from binlog.000002:400",
    ]


@pytest.mark.parametrize(
    ("need", "way"),
    [
        (Need.ROWS, "reads it from the source"),
        (Need.CONSENT, "reads it from the source"),
        (Need.COLUMNS, "catches it up through the log from binlog.000002:400"),
        (Need.MIRROR, "catches it up through the log from binlog.000002:400"),
    ],
)
def test_an_order_tells_how_the_table_comes_back(need: Need, way: str) -> None:
    """What lacks only columns goes on through the log; they are read beside it."""
    table = replace(state("e", TableCondition.STOPPED, "it was altered"), need=need)
    assert way in list(inactive_lines(inactive({table.table: table}, [RESUMED])))[-1]


def test_a_dropped_table_is_not_quarantined() -> None:
    """It has no changes that the lake could lack."""
    assert [str(one.table) for one in stopped_tables(STATES)] == ["shop.b", "shop.c", "shop.e"]
    assert {one.position for one in stopped_tables(STATES)} == {str(STOPPED.at)}


def test_the_object_tells_the_order() -> None:
    """Null where there is none; the structure itself is not repeated."""
    told = {one["table"]: one for one in to_json(inactive_values(TABLES))}
    assert (told["shop.d"]["state"], told["shop.d"]["order"]) == ("dropped", None)
    assert told["shop.e"]["order"] == {
        "kind": "resume",
        "author": "bob",
        "reason": "mended",
        "ordered_at": "2026-11-01T06:00:00+00:00",
        "with_structure": False,
    }
