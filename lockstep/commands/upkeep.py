"""`lockstep upkeep`: mirrors' files made fewer, and those deleted that no version needs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.holder import holder
from lockstep.table_names import table_name

if TYPE_CHECKING:
    from pipeline.runs.upkeeping.upkeep import UpkeepReport
    from pipeline.table import TableName
    from resources.adapters import Adapters


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """0 also where a table was left to the next upkeep: the answer says so."""
    from lockstep.upkeep_report import show_upkeep, upkeep_json
    from resources.adapters import Adapters

    only = frozenset(map(table_name, arguments.tables)) or None
    payload: dict[str, Any] = {}
    with Adapters(context.settings, on_warning=context.note) as adapters:
        for source in context.sources(arguments.source):
            done = _done(arguments, context, adapters, source.name, only)
            show_upkeep(context, source.name, done, planned=arguments.dry_run)
            payload[source.name] = upkeep_json(done, planned=arguments.dry_run)
    return Outcome(exits.DONE, {"sources": payload})


def _done(
    arguments: argparse.Namespace,
    context: CommandContext,
    adapters: Adapters,
    source: str,
    only: frozenset[TableName] | None,
) -> UpkeepReport:
    from pipeline.runs.upkeeping.changes import plan_changes
    from pipeline.runs.upkeeping.gather import plan_upkeep
    from pipeline.runs.upkeeping.logs import thin_logs
    from pipeline.runs.upkeeping.upkeep import TableDone, UpkeepReport, upkeep

    policy = context.settings.upkeep(purge=arguments.purge)
    with context.watch(source) as progress:
        work, lake = adapters.workplace(source, progress), adapters.upkeep()
        if arguments.dry_run:
            planned = plan_upkeep(work, lake, policy, only)
            tables = tuple(TableDone(p, left=[*p.plan.left]) for p in planned)
            if only is not None:
                return UpkeepReport(tables, 0.0)
            due = plan_changes(work, policy.keep_changes, lake.keep)
            return UpkeepReport(tables, 0.0, due.plan, thin_logs(work, lake, delete=False))
        return upkeep(work, lake, policy, holder("upkeep"), only)
