"""`lockstep versions`: the Delta version of each table that shows the source as of one
place, which is a point in the source's log. Read together, these versions are
consistent."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_option
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.run.status.version_sets import ShownVersions, newest_sets, version_set_at
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.printing import align_pairs, show_table
from lockstep.resources.lake.store.paths import LakePath

LISTED: Final = 20
"""Largest number of places that `--list` shows."""
_ABOUT: Final = "batch.id as batch, batch.dagster_run as run, position"
_COLUMNS: Final = ("as of", "committed", "batch", "run", "tables", "missing")


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Show the versions as of a place, or list the places. Only the ledger is asked.
    The exit code is 0 even if tables are missing; the answer names each with its
    cure."""
    if arguments.list and arguments.at:
        raise UsageError(
            "--list lists the newest places, --at shows one place.", hint="leave one of them out"
        )
    place = place_option(arguments, "--at")
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        lake = context.settings.lake_path().absolute()
        for source in context.sources(arguments.source):
            if arguments.list:
                sets = newest_sets(adapters.ledger(), source.name, LISTED)
                payload[source.name] = {"sets": [_listed_values(versions) for versions in sets]}
                context.say(f"{source.name}:")
                show_table(context, _COLUMNS, [_listed_row(versions) for versions in sets])
                continue
            shown = version_set_at(adapters.ledger(), source.name, place)
            payload[source.name] = version_set_values(shown, lake)
            context.say(*_lines(shown, lake))
    return Outcome(exits.DONE, {"sources": payload})


def version_set_values(shown: ShownVersions, lake: LakePath) -> dict[str, Any]:
    return {
        **attributes(shown, _ABOUT),
        "tables": {
            entry.table: {
                "path": str(lake / entry.mirror),
                **attributes(entry, "delta_version", "table_id"),
            }
            for entry in shown.entries
        },
        "missing": {gap.table: gap for gap in shown.missing},
    }


def _listed_values(shown: ShownVersions) -> dict[str, Any]:
    missing = [gap.table for gap in shown.missing]
    return {**attributes(shown, _ABOUT), "tables": len(shown.entries), "missing": missing}


def _listed_row(shown: ShownVersions) -> tuple[object, ...]:
    missing = ", ".join(str(gap.table) for gap in shown.missing)
    batch, run = str(shown.batch.id), shown.batch.dagster_run
    return shown.position, _moment(shown), batch, run, len(shown.entries), missing


def _lines(shown: ShownVersions, lake: LakePath) -> Iterator[str]:
    moment = _moment(shown)
    committed = f", committed {moment}" if moment else ""
    yield f"{shown.source}: as of {shown.position}{committed} (batch {shown.batch.id})"
    gtids = shown.position.gtid_set
    if gtids != GtidSet():
        yield f"  executed: {gtids.shortened()}"
    yield align_pairs(
        {
            str(entry.table): f"{entry.delta_version}  {lake / entry.mirror}"
            for entry in shown.entries
        }
    )
    if shown.missing:
        yield "missing:"
        yield align_pairs({str(gap.table): f"{gap.reason}; {gap.hint}" for gap in shown.missing})


def _moment(shown: ShownVersions) -> str:
    committed = shown.position.committed_at
    return "" if committed is None else committed.isoformat()
