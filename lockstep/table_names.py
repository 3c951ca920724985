"""The name of a table as a person types it."""

from __future__ import annotations

from lockstep.grammar import UsageError
from pipeline.table import TableName


def table_name(text: str) -> TableName:
    """`shop.orders` → a name; the first dot divides."""
    database, _, name = text.partition(".")
    if not database or not name:
        raise UsageError(f"{text!r} is not a table's name.", hint="write it as database.table")
    return TableName(database, name)
