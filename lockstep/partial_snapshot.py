"""`lockstep snapshot TABLE --where CONDITION`: read some rows of a table again.

Belongs here: from the command line to the two runs, and what is told of them. Does not: whole
tables (`lockstep.commands.snapshot`), what becomes of the rows (`pipeline.runs.loading.part`).
"""

from __future__ import annotations

import argparse
import getpass
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.report import counted
from lockstep.running import run_sources
from lockstep.table_names import table_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.runs.context import Workplace
    from pipeline.source_plan import PartOrder
    from resources.adapters import Adapters

WHY = "`lockstep snapshot`"


def perform(arguments: argparse.Namespace, context: CommandContext, source: str) -> Outcome:
    """An ordinary run, so that the lake shows what the log tells; then one that reads the rows."""
    from pipeline.runs.context import Unwatched
    from resources.adapters import Adapters

    if len(arguments.tables) != 1:
        raise UsageError("--where is about one table.", hint="name it: database.table")
    with Adapters(context.settings, on_warning=context.note) as adapters:
        order, rows = _order(adapters.workplace(source, Unwatched()), arguments)
        _foresee(context, source, order, rows)
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
    from pipeline.runs.capturing.logged_statements import facts_of_server
    from pipeline.runs.loading.part import require_readable
    from pipeline.snapshot.condition import read_condition
    from pipeline.source_plan import PartOrder

    condition = read_condition(arguments.where, facts_of_server(work.server.facts()))
    order = PartOrder(
        table_name(arguments.tables[0]),
        condition,
        arguments.author or getpass.getuser(),
        arguments.reason or WHY,
    )
    require_readable(work, order)
    return order, work.server.estimated_where(order.table, condition)


def _foresee(context: CommandContext, source: str, order: PartOrder, rows: int) -> None:
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
