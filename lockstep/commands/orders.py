"""`lockstep pause` and `resume`: what a person orders of one table; recorded."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, author, reason, table_name
from pipeline.json_values import parts
from pipeline.runs.context import Unwatched
from pipeline.runs.inspecting.table_commands import Asked, Ordered, foresee_resume, give_order
from pipeline.schema.model_json import schema_to_json
from pipeline.table_state import OrderKind
from resources.holders import holder


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """One order in the ledger; 5 where it does not fit the table's state, 2 for a structure or
    names that cannot be taken. Of what no run could carry out nothing is recorded."""
    kind, asked = OrderKind(arguments.command), _asked(arguments)
    with context.adapters() as adapters:
        source = context.source_of(adapters, arguments.source, asked.table)
        work = adapters.workplace(source, Unwatched())
        if kind is OrderKind.RESUME and arguments.dry_run:
            found = foresee_resume(work, asked)
            context.say(f"{source}: {found.next}\n  nothing is recorded (--dry-run)")
            return Outcome(exits.DONE, {"source": source, **_values(found), "order": None})
        with work.ledger.lock(source, holder(kind), None) as lease:
            done = give_order(
                work, lease, kind, asked, lambda told: context.say(f"{source}: {told}")
            )
    why = f": {asked.reason}" if asked.reason else ""
    recorded = f"{source}: recorded: {kind} {asked.table} ({asked.author}{why})"
    context.say(recorded if kind is OrderKind.RESUME else f"{recorded}\n  {done.next}")
    return Outcome(exits.DONE, {"source": source, **_values(done)})


def _asked(arguments: argparse.Namespace) -> Asked:
    """`--schema` and `--rename` are a resume's."""
    statement: str | None = None
    renames: tuple[tuple[str, str], ...] = ()
    if arguments.command == OrderKind.RESUME:
        statement = _read(Path(arguments.schema)) if arguments.schema else None
        renames = _renames(arguments.rename)
        if renames and statement is None:
            raise UsageError(
                "--rename needs a structure: it says which of its columns had another name.",
                hint="give the structure too: --schema FILE, with what `show create table` prints",
            )
    table, why = table_name(arguments.table), reason(arguments)
    return Asked(table, author(arguments), why, statement, renames)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read as UTF-8 text.",
            hint="give a file with what `show create table` prints",
        ) from error


def _renames(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """OLD=NEW each, with or without the backticks of SQL."""
    found = []
    for word in words:
        old, told, new = (part.strip().strip("`") for part in word.partition("="))
        if not (old and told and new):
            raise UsageError(
                f"--rename {word} does not name two columns.",
                hint="--rename OLD=NEW: the name where the table stopped, and the one it has now",
            )
        found.append((old, new))
    return tuple(found)


def _values(done: Ordered) -> dict[str, Any]:
    given = done.order
    return {
        "order": {
            **parts(given, "id", "table", "kind", "author", "reason", "ordered_at"),
            "schema": given.schema and schema_to_json(given.schema),
            "renames": dict(given.renames),
        },
        **parts(done, "order.stopped.at as stopped", "next"),
    }
