"""`lockstep tables`: every table of the source, and why it is or is not captured."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.check import invisible_tables
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.run.dump.table_extents import partial_tables
from lockstep.pipeline.run.left_out import states_of_next_run
from lockstep.pipeline.values.table import TablePatterns
from lockstep.printing import show_table


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """List the tables of each source. MySQL has to answer."""
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        for source in context.sources(arguments.source):
            server = adapters.server(source.name)
            server.facts()  # ask the server first: if it refuses us, no ledger is created
            tables = table_values(source.name, source.plan().patterns, server, adapters.ledger())
            payload[source.name] = {"tables": tables}
            context.say(f"{source.name}:")
            heads = ("table", "captured", "why not", "key", "rows", "state", "position")
            show_table(context, heads, list(map(_cells, tables)))
    return Outcome(exits.DONE, {"sources": payload})


def _cells(table: Mapping[str, Any]) -> tuple[object, ...]:
    server_has_it = table["engine"] is not None
    visibility = "not visible to the account" if table["captured"] and not server_has_it else ""
    extent = f"partial: begins at {table['begins']}" if table["begins"] else ""
    return (
        table["table"],
        "yes" if table["captured"] else "no",
        table["why_not"],
        ", ".join(table["primary_key"]) or "none",
        "" if table["rows"] is None else f"~{table['rows']:,}",
        ", ".join(filter(None, (table["state"], extent, visibility))),
        table["place"],
    )


def table_values(
    source: str, patterns: TablePatterns, server: SourceServer, ledger: Ledger
) -> list[dict[str, Any]]:
    """Return the values of the server's tables, then of tables that only the ledger
    has.

    `place`: the place in the log up to which the mirror is current, or where the table
    stopped. `begins`: the mirror has only rows that changed after this place; null if
    it has all rows.
    """
    states = states_of_next_run(ledger, source, patterns)
    cursor = ledger.cursors(source).acknowledged
    current_position = str(cursor.position) if cursor else None
    server_tables = {table.name: table for table in server.tables()}
    extents = {extent.table: extent for extent in partial_tables(ledger, source, patterns)}
    invisible = {
        stopped.table: stopped
        for stopped in invisible_tables(server, patterns, states, server_tables)
    }
    values = []
    for name in (*server_tables, *sorted(states.keys() - server_tables.keys())):
        table, state = server_tables.get(name), states.get(name)
        why_not = patterns.exclusion_reason(name)
        if why_not is None and table is None and name not in invisible:
            why_not = "dropped at the source"
        values.append(
            {
                "table": str(name),
                "captured": why_not is None,
                "why_not": why_not,
                "primary_key": table.primary_key if table else (),
                **attributes(table, "rows, engine"),
                **attributes(state, "condition as state"),
                **attributes(extents.get(name) if table else None, "begins"),
                **attributes(invisible.get(name, state), "reason, hint"),
                "place": (state.position or current_position) if state else None,
                **attributes(state, "mirror"),
            }
        )
    return values
