"""`lockstep tables`: every table of the source, captured or not, and why."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from lockstep import exits, report
from lockstep.context import CommandContext, Outcome
from pipeline.json_values import parts
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import SourceServer
from pipeline.runs.capturing.table_extents import partial_tables
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
                        one["why_not"],
                        ", ".join(one["primary_key"]) or "none",
                        "" if one["rows"] is None else f"~{one['rows']:,}",
                        _state(one),
                        one["position"],
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
    states, cursor = ledger.table_states(source), ledger.cursors(source).acknowledged
    listed = {table.name: table for table in server.tables()}
    partial = {extent.table: extent for extent in partial_tables(ledger, source, patterns)}
    found = []
    for name in (*listed, *sorted(states.keys() - listed.keys())):
        table, state = listed.get(name), states.get(name)
        why_not = patterns.reason(name) if table else "dropped at the source"
        place = state and (state.position or (str(cursor.position) if cursor else None))
        values = {
            "table": str(name),
            "captured": why_not is None,
            "why_not": why_not,
            "primary_key": table.primary_key if table else (),
            **parts(table, "rows, engine"),
            **parts(state, "condition as state"),
            **parts(partial.get(name) if table else None, "begins"),
            **parts(state, "reason, hint"),
            "position": place,
            **parts(state, "mirror"),
        }
        found.append(values)
    return found


def _state(one: Mapping[str, Any]) -> str:
    words = [one["state"] or "", f"partial: begins at {one['begins']}" if one["begins"] else ""]
    return ", ".join(filter(None, words))
