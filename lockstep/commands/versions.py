"""`lockstep versions`: the versions of all tables that show a source as of one place."""

from __future__ import annotations

import argparse
from typing import Any, Final

from lockstep import exits, report
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument

LISTED: Final = 20
_COLUMNS: Final = ("as of", "committed", "batch", "run", "tables", "missing")


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """The ledger alone is asked. 0 also where tables are missing: each is named, with its
    cure."""
    from lockstep.version_report import (
        listed_json,
        listed_rows,
        version_set_json,
        version_set_lines,
    )
    from pipeline.runs.inspecting.version_sets import newest_sets, version_set_at
    from resources.adapters import Adapters

    if arguments.list and arguments.at:
        raise UsageError("--list lists the newest; --at shows one.", hint="leave one of them out")
    place = place_argument(arguments.at, "--at", "versions") if arguments.at else None
    payload: dict[str, Any] = {}
    with Adapters(context.settings, on_warning=context.note) as adapters:
        lake = context.settings.lake_path().absolute()
        for source in context.sources(arguments.source):
            if arguments.list:
                sets = newest_sets(adapters.ledger(), source.name, LISTED)
                payload[source.name] = {"sets": [listed_json(set_) for set_ in sets]}
                context.say(f"{source.name}:")
                report.show_table(context, _COLUMNS, listed_rows(sets))
                continue
            shown = version_set_at(adapters.ledger(), source.name, place)
            payload[source.name] = version_set_json(shown, lake)
            for line in version_set_lines(shown, lake):
                context.say(line)
    return Outcome(exits.DONE, {"sources": payload})
