"""`lockstep pause`, `resume`, `release`, `reload`: what a person orders of one table; recorded.

Belongs here: from the command line to one order, and what comes of it. Does not: the order
(`pipeline.runs.inspecting.table_commands`).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError, author, reason, table_name
from lockstep.holder import holder
from pipeline.json_values import parts
from pipeline.schema.model_json import schema_to_json
from pipeline.table_state import OrderKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.runs.inspecting.table_commands import Asked, Ordered
    from pipeline.table import TableName
    from resources.adapters import Adapters
    from resources.config import SourceSettings


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """One order in the ledger; 5 where it does not fit the table's state, 2 for a structure or
    names that cannot be taken. Of what no run could carry out nothing is recorded."""
    from pipeline.runs.context import Unwatched
    from pipeline.runs.inspecting.table_commands import give_order

    kind, asked = OrderKind(arguments.command), _asked(arguments)
    if kind is OrderKind.RELEASE and arguments.dry_run:
        return _foresee(arguments, context, asked)
    with context.adapters() as adapters:
        source = _source(adapters, context.sources(arguments.source), asked.table)
        work = adapters.workplace(source, Unwatched())
        with work.ledger.lock(source, holder(kind), None) as lease:
            told: list[str] = []
            done = give_order(
                work, lease, kind, asked, lambda line: _tell(context, source, line, told)
            )
    why = f": {asked.reason}" if asked.reason else ""
    recorded = f"{source}: recorded: {kind} {asked.table} ({asked.author}{why})"
    context.say(recorded if told else f"{recorded}\n  {done.next}")
    return Outcome(exits.DONE, {"source": source, **_values(done)})


def _tell(context: CommandContext, source: str, line: str, told: list[str]) -> None:
    told.append(line)
    context.say(f"{source}: {line}")


def _foresee(arguments: argparse.Namespace, context: CommandContext, asked: Asked) -> Outcome:
    """What a release would do, without the source's lock; nothing is recorded."""
    from pipeline.runs.context import Unwatched
    from pipeline.runs.inspecting.table_commands import foresee_release

    with context.adapters() as adapters:
        source = _source(adapters, context.sources(arguments.source), asked.table)
        found = foresee_release(adapters.workplace(source, Unwatched()), asked)
    context.say(f"{source}: {found.next}\n  nothing is recorded (--dry-run)")
    return Outcome(exits.DONE, {"source": source, **_values(found), "order": None})


def _asked(arguments: argparse.Namespace) -> Asked:
    """`--schema` and `--rename` are a release's."""
    from pipeline.runs.inspecting.table_commands import Asked

    statement: str | None = None
    renames: tuple[tuple[str, str], ...] = ()
    if arguments.command == OrderKind.RELEASE:
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


def _source(adapters: Adapters, sources: Sequence[SourceSettings], table: TableName) -> str:
    """The one source that has the table in the lake; `NothingMatches` for none."""
    from pipeline.runs.inspecting.schema_history import unknown_table

    states = {source.name: adapters.ledger().table_states(source.name) for source in sources}
    names = [name for name, known in states.items() if table in known]
    if len(names) == 1:
        return names[0]
    if not names:
        known = [name for state in states.values() for name in state]
        raise unknown_table(table, known, "the lake")
    raise UsageError(
        f"Several sources have a table {table}: {', '.join(names)}.",
        hint="say which one: --source NAME",
    )


def _values(done: Ordered) -> dict[str, Any]:
    given, stopped = done.order, done.order.stopped
    return {
        "order": {
            **parts(given, "id", "table", "kind", "author", "reason", "ordered_at"),
            "schema": given.schema and schema_to_json(given.schema),
            "renames": dict(given.renames),
        },
        "stopped": stopped and stopped.at,
        "next": done.next,
    }
