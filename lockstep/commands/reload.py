"""`lockstep reload`: have mirrors, or some rows of one, written again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, author, reason, table_name
from lockstep.report import counted
from lockstep.running import run_sources
from pipeline.errors import NothingMatches
from pipeline.json_values import parts
from pipeline.runs.capturing.logged_statements import facts_of_server
from pipeline.runs.context import Unwatched, Workplace
from pipeline.runs.inspecting.plan import loads_take
from pipeline.runs.inspecting.table_commands import (
    Asked,
    Reload,
    foresee_reload,
    give_reload,
)
from pipeline.runs.loading.part import require_readable
from pipeline.snapshot.condition import read_condition
from pipeline.source_plan import PartOrder
from pipeline.table import TableName
from pipeline.table_state import Supplier, TableCondition
from pipeline.tables import TablePatterns
from resources.adapters import Adapters
from resources.holders import holder


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """What the next run does is recorded for each table, or shown; rows of a condition are read at
    once, by runs of their own."""
    source = context.one_source(arguments.source)
    supplier = None if arguments.since is None else Supplier(arguments.since)
    if arguments.where is not None:
        return _some_rows(arguments, context, source.name)
    with context.adapters() as adapters:
        work = adapters.workplace(source.name, Unwatched())
        asked = [
            Asked(table, author(arguments), reason(arguments))
            for table in _chosen(work, arguments.tables)
        ]
        foreseen = [foresee_reload(work, one, supplier) for one in asked]
        _foresee(context, work, foreseen)
        if arguments.dry_run:
            context.say("nothing is recorded (--dry-run)")
        else:
            with work.ledger.lock(source.name, holder("reload"), None) as lease:
                foreseen = [give_reload(work, lease, one) for one in foreseen]
    return Outcome(
        exits.DONE,
        {
            "source": source.name,
            "tables": {
                reload.table: parts(reload, "order.id as order, load, next, rows as estimated_rows")
                for reload in foreseen
            },
        },
    )


def _chosen(work: Workplace, patterns: Sequence[str]) -> list[TableName]:
    matches = work.source.patterns.matches
    there = {table.name for table in work.server.tables()}
    states = work.ledger.table_states(work.source.name)
    there |= {t for t, one in states.items() if one.condition is not TableCondition.DROPPED}
    captured = sorted(filter(matches, there))
    for pattern in patterns:
        if not any(TablePatterns((pattern,), ()).matches(table) for table in captured):
            raise NothingMatches(
                f"no captured table of {work.source.name} is called {pattern}",
                hint="`lockstep tables` lists what there is, and what is captured",
            )
    asked = TablePatterns(tuple(patterns), ())
    return [table for table in captured if asked.matches(table)]


def _foresee(context: CommandContext, work: Workplace, reloads: Sequence[Reload]) -> None:
    for reload in reloads:
        about = "" if reload.rows is None else f", about {reload.rows:,} rows"
        context.say(f"{work.source.name}: {reload.next}{about}")
    total = sum(reload.rows or 0 for reload in reloads)
    if total:
        context.say(*(f"  {told}" for told in loads_take(work, work.server.facts(), total)))


# -- some rows of one table ----------------------------------------------------------------


def _some_rows(arguments: argparse.Namespace, context: CommandContext, source: str) -> Outcome:
    """An ordinary run, so that the lake shows what the log tells; then one that reads the rows."""
    if len(arguments.tables) != 1 or arguments.since == Supplier.CHANGELOG:
        raise UsageError(
            "--where is about rows of one table, as MySQL has them.",
            hint="name one table, database.table, without --from changelog",
        )
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
        reason(arguments),
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
