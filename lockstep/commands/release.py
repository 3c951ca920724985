"""`lockstep release`: bring back a table that is quarantined; once, recorded, foretold."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.table_orders import foresee, order
from pipeline.table_state import OrderKind


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """One order in the ledger, or with --dry-run only what it would do; 5 where the table is
    not quarantined, 2 for a structure or names that cannot be taken."""
    statement = _read(Path(arguments.schema)) if arguments.schema else None
    renames = _renames(arguments.rename)
    if renames and statement is None:
        raise UsageError(
            "--rename needs a structure: it says which of its columns had another name.",
            hint="give the structure too: --schema FILE, with what `show create table` prints",
        )
    if arguments.dry_run:
        return foresee(arguments, context, statement, renames)
    return order(arguments, context, OrderKind.RELEASE, statement, renames)


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
