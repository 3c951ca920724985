"""The values of arguments that several commands have: a place in the log, a table, an
author, a reason.

Not here: which command has which argument (`lockstep.grammar`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lockstep.grammar import UsageError
from lockstep.pipeline.values.places import Place, parse_end, parse_place
from lockstep.pipeline.values.table import TableName
from lockstep.resources.holders import account_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

Value = TypeVar("Value")


def place_option(arguments: argparse.Namespace, option: str) -> Place | None:
    """Return the place that an option such as `--at` names; None if it was left out."""
    text: str | None = getattr(arguments, option.strip("-"))
    return None if text is None else place_argument(arguments, option, text)


def place_argument(arguments: argparse.Namespace, name: str, text: str) -> Place:
    """Return the place that `text`, the value of the argument `name`, names. Raise
    `UsageError` with the valid forms if it names no place."""
    return parse_argument(arguments, name, text, parse_end if name == "--until" else parse_place)


def parse_argument(
    arguments: argparse.Namespace, name: str, text: str, parse: Callable[[str], Value]
) -> Value:
    """Return the result of `parse` for `text`, the value of the argument `name`. Raise
    `UsageError` if `parse` raises ValueError."""
    try:
        return parse(text)
    except ValueError as error:
        hint = f"`lockstep {arguments.command} --help`"
        raise UsageError(f"{name}: {error}.", hint=hint) from None


def parse_table_name(text: str) -> TableName:
    """Return the table that a text such as `shop.orders` names. The database ends at
    the first dot. Raise `UsageError` if the database or the name is missing."""
    database, _, name = text.partition(".")
    if not database or not name:
        raise UsageError(f"{text!r} is not a table's name.", hint="write it as database.table")
    return TableName(database, name)


def author_of(arguments: argparse.Namespace) -> str:
    """Return the author of what is recorded: `--author`, else the name of this account."""
    name: str | None = arguments.author
    return name or account_name()


def reason_of(arguments: argparse.Namespace) -> str:
    """Return `--reason`, or "" if it was left out. Raise `UsageError` if it is blank."""
    reason: str = (arguments.reason or "").strip()
    if arguments.reason is not None and not reason:
        raise UsageError("--reason is empty.", hint=f"`lockstep {arguments.command} --help`")
    return reason
