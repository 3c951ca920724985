"""The values of arguments that several commands have: a place in the log, a table, an
author, a reason.

Not here: which command has which argument (`lockstep.grammar`).
"""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from lockstep.grammar import UsageError
from lockstep.pipeline.values.table import TableName

if TYPE_CHECKING:
    import argparse

    from lockstep.pipeline.values.places import Place


def place_option(arguments: argparse.Namespace, option: str) -> Place | None:
    """Return the place that the option names, such as `--at`; None if it was left out."""
    text: str | None = getattr(arguments, option.strip("-"))
    return place_argument(text, option, arguments.command) if text else None


def place_argument(text: str, option: str, command: str) -> Place:
    """Return the place that the text names. Raise `UsageError` with the valid forms
    otherwise."""
    from lockstep.pipeline.values.places import parse_end, parse_place

    try:
        if option == "--until":
            return parse_end(text)
        return parse_place(text, as_start=command == "start-at")
    except ValueError as error:
        raise UsageError(f"{option}: {error}.", hint=f"`lockstep {command} --help`") from None


def parse_table_name(text: str) -> TableName:
    """Return a text such as `shop.orders` as a name, divided at the first dot. Raise
    `UsageError` if it has no dot."""
    database, _, name = text.partition(".")
    if not database or not name:
        raise UsageError(f"{text!r} is not a table's name.", hint="write it as database.table")
    return TableName(database, name)


def author_of(arguments: argparse.Namespace) -> str:
    """Return who gives an order that is recorded: `--author`, else the name of this
    account."""
    name: str | None = arguments.author
    return name or getpass.getuser()


def reason_of(arguments: argparse.Namespace) -> str:
    """Return `--reason`, or "" if it was left out. Raise `UsageError` if it is blank."""
    reason: str = (arguments.reason or "").strip()
    if arguments.reason is not None and not reason:
        raise UsageError("--reason is empty.", hint=f"`lockstep {arguments.command} --help`")
    return reason
