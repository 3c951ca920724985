"""`lockstep snapshot`: read tables from the source until all are read; join them with the log."""

from __future__ import annotations

import argparse
import getpass
from typing import TYPE_CHECKING

from lockstep import exits, partial_snapshot, report
from lockstep.context import CommandContext, Outcome
from lockstep.holder import holder
from lockstep.running import run_sources
from pipeline.errors import NothingMatches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.ports.source import ListedTable
    from pipeline.runs.context import Workplace

WHY = partial_snapshot.WHY


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Runs of the source, one after the other, until no table is being read any more, or one of
    them fails. Each is a run like any other: what others' tables have in the log goes on."""
    from pipeline.runs.context import Unwatched
    from resources.adapters import Adapters

    source = context.one_source(arguments.source)
    if arguments.where is not None:
        return partial_snapshot.perform(arguments, context, source.name)
    with Adapters(context.settings, on_warning=context.note) as adapters:
        work = adapters.workplace(source.name, Unwatched())
        chosen = _chosen(work, arguments.tables)
        _foresee(context, work, chosen)
        if arguments.dry_run:
            context.say("nothing is read (--dry-run)")
            rows_of = {table.name: {"estimated_rows": table.rows} for table in chosen}
            return Outcome(exits.DONE, {"source": source.name, "tables": rows_of})
        if chosen:
            with work.ledger.lock(source.name, holder("snapshot"), None) as lease:
                author = arguments.author or getpass.getuser()
                for one in _waiting(context, work, chosen):
                    reason = arguments.reason or WHY
                    work.ledger.order_load(lease, one.name, author=author, reason=reason)
        before: dict[str, int] | None = None
        while True:
            code, told = run_sources([source.name], adapters, None, context)[source.name]
            rows = {table: progress.rows for table, progress in told["loading"].items()}
            if code not in (exits.DONE, exits.QUARANTINED) or not rows:
                return Outcome(code, {"source": source.name, **told})
            if rows == before:
                context.note(
                    f"{source.name}: the last run read no row of {', '.join(rows)}: others keep "
                    "the source busy\nhint: `lockstep snapshot` later, when there are fewer writes"
                )
                return Outcome(exits.TRY_AGAIN, {"source": source.name, **told})
            before = rows


def _chosen(work: Workplace, patterns: Sequence[str]) -> list[ListedTable]:
    """The source's tables that the patterns name, of those that are captured."""
    from pipeline.tables import TablePatterns

    captured = [table for table in work.server.tables() if work.source.patterns.matches(table.name)]
    for pattern in patterns:
        if not any(TablePatterns((pattern,), ()).matches(table.name) for table in captured):
            raise NothingMatches(
                f"no captured table of {work.source.name} is called {pattern}",
                hint="`lockstep tables` lists what there is, and what is captured",
            )
    asked = TablePatterns(tuple(patterns), ())
    return [table for table in captured if patterns and asked.matches(table.name)]


def _waiting(
    context: CommandContext, work: Workplace, chosen: Sequence[ListedTable]
) -> list[ListedTable]:
    """Those that are not being read already."""
    reading = {load.table for load in work.ledger.open_loads(work.source.name) if load.reading}
    for one in chosen:
        if one.name in reading:
            context.say(f"{one.name} is being read already: this reads on")
    return [table for table in chosen if table.name not in reading]


def _foresee(context: CommandContext, work: Workplace, tables: Sequence[ListedTable]) -> None:
    from pipeline.runs.inspecting.plan import PlannedLoad, loads_take

    if not tables:
        return
    rows = sum(table.rows for table in tables)
    count = report.counted(len(tables), "table")
    context.say(f"{work.source.name}: {count}, about {rows:,} rows, to be read from the source")
    for sentence in loads_take(work, work.server.facts(), [PlannedLoad(WHY, 0, rows)]):
        context.say(f"  {sentence}")
