"""`lockstep schema TABLE`, `lockstep schema verify`: structures then and now."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, place_argument
from lockstep.table_names import table_name
from pipeline.errors import NothingMatches

if TYPE_CHECKING:
    from pipeline.places import Place
    from pipeline.runs.context import Workplace
    from pipeline.table import TableName
    from resources.adapters import Adapters

VERIFY = "verify"


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """A table's structure; or 4 where the history is not what it should be, 3 where the
    source keeps moving."""
    from resources.adapters import Adapters

    verifies = arguments.table == VERIFY
    if verifies and arguments.at:
        raise UsageError(
            "`lockstep schema verify` compares with the server as it is now.",
            hint="leave --at out",
        )
    table = None if verifies else table_name(arguments.table)
    place = place_argument(arguments.at, "--at", "schema") if arguments.at else None
    with Adapters(context.settings, on_warning=context.note) as adapters:
        if table is None:
            return _verify(adapters, context, arguments.source)
        return _show(adapters, context, arguments.source, table, place)


def _show(
    adapters: Adapters,
    context: CommandContext,
    chosen: str | None,
    table: TableName,
    place: Place | None,
) -> Outcome:
    """The first source that knows the table; the ledger alone is asked, if it can tell."""
    from lockstep.schema_report import schema_json, show_schema_of
    from pipeline.runs.context import Unwatched
    from pipeline.runs.inspecting.schema_history import show_schema, unknown_table

    known: list[TableName] = []
    for source in context.sources(chosen):
        name = source.name

        def work(name: str = name) -> Workplace:
            return adapters.workplace(name, Unwatched())

        try:
            shown = show_schema(adapters.ledger(), name, table, place, work)
        except NothingMatches:
            known += adapters.ledger().last_versions(name)
            continue
        at = str(place) if place is not None else None
        show_schema_of(context, name, shown, at)
        return Outcome(exits.DONE, schema_json(name, shown, at))
    raise unknown_table(table, known, "the history")


def _verify(adapters: Adapters, context: CommandContext, chosen: str | None) -> Outcome:
    from lockstep.schema_report import verification_json, verification_lines
    from pipeline.runs.comparing.verify_schema import verify_schema

    payload: dict[str, Any] = {}
    codes = []
    for source in context.sources(chosen):
        with context.watch(source.name) as progress:
            verification = verify_schema(adapters.workplace(source.name, progress))
        for line in verification_lines(source.name, verification):
            context.say(line)
        codes.append(exits.DONE if verification.equal else exits.DIFFERENCES)
        payload[source.name] = {**verification_json(verification), "exit_code": codes[-1]}
    return Outcome(exits.most_serious(codes), {"sources": payload})
