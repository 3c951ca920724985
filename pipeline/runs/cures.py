"""What brings a table back, in words that several steps say.

Belongs here: a command and what it does. Does not: why a table stopped, which is said where it is
found.
"""

from __future__ import annotations

from pipeline.table import TableName


def release_hint(table: TableName) -> str:
    """The cure for a table that is quarantined."""
    return f"`lockstep release {table} --reason …` brings it back"


def engine_hint(table: TableName) -> str:
    """The cure for a table whose engine is not captured."""
    return (
        f"exclude it, or `alter table {table} engine = InnoDB`, then "
        f"`lockstep release {table} --reason …` reads it from the source"
    )


def reload_hint(table: TableName) -> str:
    """The cure for a table whose mirror cannot go on."""
    return f"`lockstep reload {table} --reason …` rewrites its mirror"
