"""Tables that are not followed just now: quarantined, paused, dropped, ordered back.

Belongs here: how they are told, twice. Values in, text or JSON out. Does not: how the
source stands as a whole (`status_report`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.runs.rejoining.rejoin import must_be_read
from pipeline.standing.verdict import clock
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableCondition, TableOrder, TableState

_TOLD = {
    TableCondition.QUARANTINED: "is quarantined",
    TableCondition.PAUSED: "is paused",
    TableCondition.DROPPED: "was dropped at the source",
}
_ORDERED = {
    OrderKind.RESUME: "resumed",
    OrderKind.RELEASE: "released",
    OrderKind.RELOAD: "to be reloaded",
}


@dataclass(frozen=True, slots=True)
class Inactive:
    """A table that is not active, and the open order that brings it back."""

    state: TableState
    order: TableOrder | None

    @property
    def place(self) -> str:
        stopped = self.state.stopped
        return self.state.position or (str(stopped.at) if stopped is not None else "")


def _way(table: Inactive) -> str:
    """How it comes back; whether the log is still there only `plan` looks."""
    stopped = table.state.stopped
    if table.order is not None and table.order.kind is OrderKind.RELOAD:
        return "rewrites its mirror"
    if must_be_read(table.state) or stopped is None:
        return "reads it from the source"
    return f"catches it up through the log from {stopped.at}"


def inactive(
    states: Mapping[TableName, TableState], orders: Iterable[TableOrder]
) -> tuple[Inactive, ...]:
    """Those that are neither active nor being loaded, by name."""
    of = {order.table: order for order in orders}
    return tuple(
        Inactive(state, of.get(table))
        for table, state in sorted(states.items())
        if state.condition not in (TableCondition.ACTIVE, TableCondition.LOADING)
    )


def inactive_json(tables: Iterable[Inactive]) -> list[dict[str, Any]]:
    """`order` is null where nobody ordered the table back."""
    return [
        {
            "table": str(table.state.table),
            "state": table.state.condition.value,
            "position": table.place or None,
            "reason": table.state.reason,
            "hint": table.state.hint,
            "order": None if table.order is None else _order_json(table.order),
        }
        for table in tables
    ]


def _order_json(order: TableOrder) -> dict[str, Any]:
    return {
        "kind": order.kind.value,
        "author": order.author,
        "reason": order.reason,
        "ordered_at": order.ordered_at.isoformat(),
        "with_structure": order.schema is not None,
    }


def inactive_lines(tables: Iterable[Inactive]) -> Iterator[str]:
    """What happened to each, and what is to be done, or will be."""
    for table in tables:
        state, order = table.state, table.order
        at = f" at {table.place}" if table.place else ""
        why = f": {state.reason}" if state.reason else ""
        yield f"  {state.table} {_TOLD[state.condition]}{at}{why}"
        if order is not None:
            reason = f": {order.reason}" if order.reason else ""
            yield (
                f"    {_ORDERED[order.kind]} by {order.author}, {clock(order.ordered_at)}{reason}; "
                f"the next run {_way(table)}"
            )
        elif state.hint:
            yield f"    hint: {state.hint}"
