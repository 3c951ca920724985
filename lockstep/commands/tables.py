"""`lockstep tables`: every table of the source, captured or not, and why."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockstep import exits, report
from lockstep.context import CommandContext, Outcome

if TYPE_CHECKING:
    from pipeline.ports.ledger import Ledger
    from pipeline.ports.source import ListedTable, SourceServer
    from pipeline.table import TableName
    from pipeline.table_state import Extent, TableState
    from pipeline.tables import TablePatterns


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        for source in context.sources(arguments.source):
            server = adapters.server(source.name)
            server.facts()  # the server speaks first: without it, nothing is made here
            told = rows(source.name, source.plan().patterns, server, adapters.ledger())
            payload[source.name] = {"tables": told}
            context.say(f"{source.name}:")
            report.show_table(
                context,
                ("table", "captured", "why not", "key", "rows", "state", "position"),
                [
                    (
                        one["table"],
                        "yes" if one["captured"] else "no",
                        one["why_not"] or "",
                        ", ".join(one["primary_key"]) or "none",
                        "" if one["rows"] is None else f"~{one['rows']:,}",
                        _state(one),
                        one["position"] or "",
                    )
                    for one in told
                ],
            )
    return Outcome(exits.DONE, {"sources": payload})


def rows(
    source: str, patterns: TablePatterns, server: SourceServer, ledger: Ledger
) -> list[dict[str, Any]]:
    """The server's tables, then those only the ledger knows, as JSON. `position` is where
    the mirror stands: the merged position, or where the table was quarantined; `begins`, for a
    table that the lake can have but a part of, where that begins."""
    from pipeline.runs.capturing.table_extents import partial_tables

    states = ledger.table_states(source)
    cursor = ledger.acknowledged_cursor(source)
    place = str(cursor.position) if cursor else None
    partial = {extent.table: extent for extent in partial_tables(ledger, source, patterns)}
    captured = [
        _row(
            table.name,
            patterns.reason(table.name),
            table,
            states.pop(table.name, None),
            place,
            partial.get(table.name),
        )
        for table in server.tables()
    ]
    gone = [
        _row(name, "dropped at the source", None, state, place, None)
        for name, state in sorted(states.items())
    ]
    return captured + gone


def _state(one: Mapping[str, Any]) -> str:
    words = [one["state"] or "", f"partial: begins at {one['begins']}" if one["begins"] else ""]
    return ", ".join(filter(None, words))


def _row(
    name: TableName,
    why_not: str | None,
    listed: ListedTable | None,
    state: TableState | None,
    place: str | None,
    partial: Extent | None,
) -> dict[str, Any]:
    return {
        "table": str(name),
        "captured": why_not is None,
        "why_not": why_not,
        "primary_key": listed.primary_key if listed else (),
        "rows": listed.rows if listed else None,
        "engine": listed.engine if listed else None,
        "state": state and state.condition,
        "begins": partial and partial.begins,
        "reason": state and state.reason,
        "hint": state and state.hint,
        "position": state and (state.position or place),
        "mirror": state and state.mirror,
    }
