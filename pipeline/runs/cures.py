"""What brings a table back, in words that several steps say."""

from __future__ import annotations

from pipeline.engines import why_refused
from pipeline.errors import TableError
from pipeline.schema.happened import why_versioned
from pipeline.schema.model import TableSchema
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


def versioning_hint(table: TableName) -> str:
    """The cure for a system-versioned table."""
    return (
        f"exclude it, or `alter table {table} drop system versioning`, with its period and columns "
        f"if they were declared, which drops its history for good; then `lockstep release {table} "
        "--reason …` reads it from the source"
    )


def refusal(schema: TableSchema) -> TableError | None:
    """Return the error of a table that keeps other rows than the log says; None for any other."""
    if why := why_refused(schema.engine):
        return TableError(why, hint=engine_hint(schema.name))
    if why := why_versioned(schema):
        return TableError(why, hint=versioning_hint(schema.name))
    return None


def reload_hint(table: TableName) -> str:
    """The cure for a table whose mirror cannot go on."""
    return f"`lockstep reload {table} --reason …` rewrites its mirror"
