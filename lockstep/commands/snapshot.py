"""`lockstep snapshot`: read tables from the source until all are read; join them with the log."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, author, table_name
from lockstep.report import counted
from lockstep.running import run_sources
from pipeline.errors import NothingMatches
from pipeline.ports.source import ListedTable
from pipeline.runs.capturing.logged_statements import facts_of_server
from pipeline.runs.context import Unwatched, Workplace
from pipeline.runs.inspecting.plan import PlannedLoad, loads_take
from pipeline.runs.loading.part import require_readable
from pipeline.snapshot.condition import read_condition
from pipeline.source_plan import PartOrder
from pipeline.tables import TablePatterns
from resources.adapters import Adapters
from resources.holders import holder

WHY = "`lockstep snapshot`"


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Runs of the source, one after the other, until no table is being read any more, or one of
    them fails. Each is a run like any other: what others' tables have in the log goes on."""
    source = context.one_source(arguments.source)
    if arguments.where is not None:
        return _some_rows(arguments, context, source.name)
    with context.adapters() as adapters:
        work = adapters.workplace(source.name, Unwatched())
        chosen = _chosen(work, arguments.tables)
        _foresee(context, work, chosen)
        if arguments.dry_run:
            context.say("nothing is read (--dry-run)")
            rows_of = {table.name: {"estimated_rows": table.rows} for table in chosen}
            return Outcome(exits.DONE, {"source": source.name, "tables": rows_of})
        if chosen:
            with work.ledger.lock(source.name, holder("snapshot"), None) as lease:
                for one in _waiting(context, work, chosen):
                    reason = arguments.reason or WHY
                    work.ledger.order_load(lease, one.name, author=author(arguments), reason=reason)
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
    reading = {load.table for load in work.ledger.open_loads(work.source.name) if load.reading}
    for one in chosen:
        if one.name in reading:
            context.say(f"{one.name} is being read already: this reads on")
    return [table for table in chosen if table.name not in reading]


def _foresee(context: CommandContext, work: Workplace, tables: Sequence[ListedTable]) -> None:

    if not tables:
        return
    rows = sum(table.rows for table in tables)
    count = counted(len(tables), "table")
    context.say(f"{work.source.name}: {count}, about {rows:,} rows, to be read from the source")
    for sentence in loads_take(work, work.server.facts(), [PlannedLoad(WHY, 0, rows)]):
        context.say(f"  {sentence}")


# -- some rows of one table ----------------------------------------------------------------


def _some_rows(arguments: argparse.Namespace, context: CommandContext, source: str) -> Outcome:
    """An ordinary run, so that the lake shows what the log tells; then one that reads the rows."""
    if len(arguments.tables) != 1:
        raise UsageError("--where is about one table.", hint="name it: database.table")
    with context.adapters() as adapters:
        order, rows = _order(adapters.workplace(source, Unwatched()), arguments)
        _foresee_rows(context, source, order, rows)
        if arguments.dry_run:
            context.say("nothing is read (--dry-run)")
            told = {"where": order.condition.text, "estimated_rows": rows}
            return Outcome(exits.DONE, {"source": source, "tables": {str(order.table): told}})
        code, told = read_again(context, adapters, source, [order])
        return Outcome(code, {"source": source, **told})


def read_again(
    context: CommandContext, adapters: Adapters, source: str, orders: Sequence[PartOrder]
) -> tuple[int, dict[str, Any]]:
    """An ordinary run, then one for each of the orders; exit code and JSON of the last one, with
    what was read by all of them."""
    # A run whose sample differs has done all of its work.
    going = (exits.DONE, exits.QUARANTINED, exits.DIFFERENCES)
    read: dict[str, Any] = {}
    code, told = run_sources([source], adapters, None, context)[source]
    for order in orders:
        if code not in going:
            break
        code, told = run_sources([source], adapters, None, context, order)[source]
        if code in going:
            _tell(context, order, told)
        read |= told.get("refreshed", {})
    return code, {**told, "refreshed": read}


def _order(work: Workplace, arguments: argparse.Namespace) -> tuple[PartOrder, int]:
    """What is to be read, and about how many rows that is; refused where it cannot be."""
    condition = read_condition(arguments.where, facts_of_server(work.server.facts()))
    order = PartOrder(
        table_name(arguments.tables[0]),
        condition,
        author(arguments),
        arguments.reason or WHY,
    )
    require_readable(work, order)
    return order, work.server.estimated_where(order.table, condition)


def _foresee_rows(context: CommandContext, source: str, order: PartOrder, rows: int) -> None:
    table, limits = order.table, order.condition.limits
    about = ", ".join(dict.fromkeys(limit.column for limit in limits))
    which = (
        f"rows of the mirror that its {about} allows"
        if limits
        else "all rows of the mirror (it compares no column with a plain number or date)"
    )
    context.say(
        f"{source}: about {rows:,} rows of {table} are read from the source again, where "
        f"{order.condition.text}\n"
        f"  {which} and that are not read are looked up by key, and deleted where the source has "
        "none"
    )


def _tell(context: CommandContext, order: PartOrder, told: dict[str, Any]) -> None:
    found = told["refreshed"].get(str(order.table))
    stopped = {quarantine.table for quarantine in told["quarantined"]}
    if found is not None and order.table not in stopped:
        context.say(
            f"{order.table}: {counted(found.read, 'row')} read again, "
            f"{counted(found.gone, 'row')} of the mirror gone at the source and deleted"
        )
