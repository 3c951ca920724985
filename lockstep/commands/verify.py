"""`lockstep verify`: compare whole tables of MySQL and the lake."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockstep import exits, report
from lockstep.desk import Desk, Outcome
from lockstep.grammar import UsageError
from pipeline.table import TableName

if TYPE_CHECKING:
    from resources.config import SourceSettings


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """Exit code 4 if a table differs or cannot be compared, 6 if tables are set aside, 3 if the
    source moves."""
    from lockstep.progress import LiveProgress
    from pipeline.runs.verify import verify
    from resources.site import Site

    tables = [table_name(text) for text in arguments.tables]
    payload: dict[str, Any] = {}
    codes = []
    with Site(desk.settings, on_warning=desk.note) as site:
        for source, chosen in _chosen(desk.sources(arguments.source), tables):
            with LiveProgress(desk.console, source.name) as progress:
                found = verify(site.workplace(source.name, progress), chosen)
            report.show_verify(desk, source.name, found)
            whole = exits.SET_ASIDE if found.set_aside else exits.DONE
            codes.append(whole if found.equal else exits.DIFFERENCES)
            payload[source.name] = {**report.verify_json(found), "exit_code": codes[-1]}
    return Outcome(exits.most_serious(codes), {"sources": payload})


def table_name(text: str) -> TableName:
    """`shop.orders` → a name; the first dot divides."""
    database, _, name = text.partition(".")
    if not database or not name:
        raise UsageError(f"{text!r} is not a table's name.", hint="write it as database.table")
    return TableName(database, name)


def _chosen(
    sources: Sequence[SourceSettings], tables: Sequence[TableName]
) -> list[tuple[SourceSettings, list[TableName] | None]]:
    """Each source with those of the tables that its patterns capture; None for all."""
    if not tables:
        return [(source, None) for source in sources]
    found: list[tuple[SourceSettings, list[TableName] | None]] = []
    taken: set[TableName] = set()
    for source in sources:
        patterns = source.plan().patterns
        own = [table for table in tables if patterns.matches(table)]
        if own:
            taken.update(own)
            found.append((source, own))
    unknown = [table for table in tables if table not in taken]
    if unknown:
        raise UsageError(f"No source captures {unknown[0]}.", hint="lockstep tables")
    return found
