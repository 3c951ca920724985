"""`lockstep versions`: for each table, the Delta version that shows the source as of
one place. A place is a point in the source's log. Read together, these versions are
consistent."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import place_option
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.run.status.version_sets import ShownVersions, newest_sets, version_set_at
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.printing import align_pairs, gap_values, show_table
from lockstep.resources.lake.store.paths import LakePath

MAX_PLACES: Final = 20
"""Largest number of places that `--list` shows."""
_SET_KEYS: Final = "batch.id as batch, batch.run_id as run, position"
_HEADS: Final = ("as of", "committed", "batch", "run", "tables", "missing")


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Show the versions as of a place, or list the places. Only the ledger is asked.
    The exit code is 0 even if tables are missing; the answer names each missing table
    with its cure."""
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
                version_sets = newest_sets(adapters.ledger(), source.name, MAX_PLACES)
                payload[source.name] = {
                    "sets": [_summary_values(version_set) for version_set in version_sets]
                }
                context.say(f"{source.name}:")
                show_table(
                    context, _HEADS, [_summary_cells(version_set) for version_set in version_sets]
                )
                context.say(
                    *(
                        f"batch {version_set.batch.id}: {line}"
                        for version_set in version_sets
                        for line in version_set.lines_on_gaps()
                    )
                )
                continue
            version_set = version_set_at(adapters.ledger(), source.name, place)
            payload[source.name] = version_set_values(version_set, lake)
            context.say(*_version_set_lines(version_set, lake))
    return Outcome(exits.DONE, {"sources": payload})


def version_set_values(version_set: ShownVersions, lake: LakePath) -> dict[str, Any]:
    return {
        **attributes(version_set, _SET_KEYS),
        "tables": {
            entry.table: {
                "path": str(lake / entry.mirror),
                **attributes(entry, "delta_version, table_id"),
            }
            for entry in version_set.entries
        },
        "missing": {missing.table: missing for missing in version_set.missing},
        "gaps": gap_values(version_set.gaps),
    }


def _summary_values(version_set: ShownVersions) -> dict[str, Any]:
    missing_tables = [missing.table for missing in version_set.missing]
    return {
        **attributes(version_set, _SET_KEYS),
        "table_count": len(version_set.entries),
        "missing": missing_tables,
        "gaps": gap_values(version_set.gaps),
    }


def _summary_cells(version_set: ShownVersions) -> tuple[object, ...]:
    return (
        version_set.position,
        _commit_time(version_set),
        str(version_set.batch.id),
        version_set.batch.run_id,
        len(version_set.entries),
        ", ".join(str(missing.table) for missing in version_set.missing),
    )


def _version_set_lines(version_set: ShownVersions, lake: LakePath) -> Iterator[str]:
    batch, position = version_set.batch.id, version_set.position
    moment = _commit_time(version_set)
    committed = f", committed {moment}" if moment else ""
    yield f"{version_set.source}: as of {position}{committed} (batch {batch})"
    gtids = position.gtid_set
    if gtids != GtidSet():
        yield f"  GTIDs: {gtids.shortened_text()}"
    yield align_pairs(
        {
            str(entry.table): f"{entry.delta_version}  {lake / entry.mirror}"
            for entry in version_set.entries
        }
    )
    yield from version_set.lines_on_gaps()
    if version_set.missing:
        yield "missing:"
        yield align_pairs(
            {
                str(missing.table): f"{missing.reason}; {missing.hint}"
                for missing in version_set.missing
            }
        )


def _commit_time(version_set: ShownVersions) -> str:
    committed = version_set.position.committed_at
    return "" if committed is None else committed.isoformat()
