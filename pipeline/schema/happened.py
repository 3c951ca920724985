"""What a statement did to one table, and what of it concerns the rows that are stored.

Belongs here: an effect as the rules see it, and the questions that rules ask of a change; each
answers why, or None. Does not: what follows (`consequences`), what the statement does to the
structure (`evolve`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.engines import why_refused
from pipeline.errors import TableError
from pipeline.schema.evolving.effects import (
    Changed,
    Created,
    Dirty,
    Dropped,
    Effect,
    NotFollowed,
    Renamed,
    Truncated,
    UnknownTable,
)
from pipeline.schema.fills import StatementMoment, fill_of
from pipeline.schema.model import ColumnSchema, ExpressionDefault, TableSchema
from pipeline.schema.rows import row_structure
from pipeline.schema.stored import why_values_change
from pipeline.schema.types import arrow_type
from pipeline.table import Column, TableName


@dataclass(frozen=True, slots=True)
class Happened:
    """One table's part of a statement. `before` and `after` are there for a change, `after`
    for a new table; `strict` is of the session's sql_mode; `moment`: when the statement ran."""

    table: TableName
    kind: str
    reason: str = ""
    before: TableSchema | None = None
    after: TableSchema | None = None
    columns_from: tuple[str | None, ...] = ()
    strict: bool = True
    moment: StatementMoment | None = None

    @property
    def schemas(self) -> tuple[TableSchema, TableSchema]:
        """A change's `before` and `after`."""
        assert self.before is not None
        assert self.after is not None
        return self.before, self.after

    @property
    def pairs(self) -> Iterator[tuple[ColumnSchema | None, ColumnSchema]]:
        """Each column after, and what it was before."""
        before, after = self.schemas
        for origin, column in zip(self.columns_from, after.columns, strict=True):
            yield (before.column(origin) if origin is not None else None), column


def happened(
    effect: Effect, *, strict: bool, moment: StatementMoment | None = None
) -> Iterator[Happened]:
    """An effect as the rules see it, for each table it concerns."""
    match effect:
        case Created(table, after):
            yield Happened(table, "created", after=after)
        case Dropped(table):
            yield Happened(table, "dropped")
        case Renamed(table, to):
            yield Happened(table, "dropped", f"it is now called {to}")
            yield Happened(to, "renamed", f"it was called {table}")
        case Truncated(table):
            yield Happened(table, "truncated")
        case Dirty(table, reason):
            yield Happened(table, "dirty", f"{reason} changes rows that the log does not have")
        case NotFollowed(table, reason):
            yield Happened(table, "not followed", reason)
        case UnknownTable(table, statement):
            yield Happened(table, "not followed", f"{statement}, but its structure was not known")
        case Changed(table, before, after, columns_from):
            yield Happened(table, "changed", "", before, after, columns_from, strict, moment)
        case _:
            return


_ROWS_KEPT: Final = frozenset({"innodb", "myisam", "aria", "rocksdb"})
"""Engines that keep rows when a table changes from one to the other."""


def engine_refused(event: Happened) -> str | None:
    """From here on its engine keeps something else than the log says."""
    return None if event.after is None else why_refused(event.after.engine)


def versioned(event: Happened) -> str | None:
    """From here on MariaDB keeps rows of the past in it, and logs them as rows of the table."""
    return None if event.after is None else why_versioned(event.after)


def why_versioned(schema: TableSchema) -> str | None:
    """Return why a system-versioned table is quarantined; None for any other table."""
    if not schema.system_versioned:
        return None
    return "it is system-versioned: rows of the past are logged under the key of the present one"


def engine_changed(event: Happened) -> str | None:
    """Its rows do not come along to the new engine."""
    before, after = (schema.engine for schema in event.schemas)
    if before.lower() == after.lower() or {before.lower(), after.lower()} <= _ROWS_KEPT:
        return None
    return f"its engine {before} became {after}"


def values_changed(event: Happened) -> str | None:
    """A stored value may be another one than before."""
    for before, after in event.pairs:
        if before is not None and (why := why_values_change(before, after, strict=event.strict)):
            return f"stored values of {after.name} may have changed: {why}"
    return None


def key_changed(event: Happened) -> str | None:
    """Rows are told apart by other columns."""
    origin = dict(zip((c.name for c in event.schemas[1].columns), event.columns_from, strict=True))
    before, after = (schema.primary_key for schema in event.schemas)
    if tuple(origin.get(name) for name in after) == before:
        return None
    return f"its primary key was ({', '.join(before)}) and is ({', '.join(after)})"


def differs_per_row(event: Happened) -> str | None:
    """A new column has values that only the source knows."""
    _, schema = event.schemas
    structure = row_structure(schema)
    kinds = {column.name: column for column in structure.columns}
    for before, after in event.pairs:
        if before is not None:
            continue
        if after.generated is not None:
            return f"the new column {after.name} is generated"
        if after.auto_increment:
            return f"the new column {after.name} is numbered by the server"
        if isinstance(after.default, ExpressionDefault) and not _is_now(after.default):
            return f"the new column {after.name} has a default that differs per row"
        if _is_known(after, kinds[after.name], event.moment):
            continue
        if isinstance(after.default, ExpressionDefault):
            return f"the new column {after.name} has a moment of a zone that the log does not name"
        return f"the new column {after.name} has a default whose value only the server knows"
    return None


def _is_known(column: ColumnSchema, decoded: Column, moment: StatementMoment | None) -> bool:
    """Whether the lake can tell what the rows got; of a type that it does not read it says so
    elsewhere."""
    try:
        return fill_of(column, arrow_type(decoded), moment) is not None
    except TableError:
        return True


def _is_now(default: ExpressionDefault) -> bool:
    return default.text.upper().startswith("CURRENT_TIMESTAMP")


def columns_changed(event: Happened) -> str | None:
    """Its rows have other columns, or other types. One that goes and comes again in the same
    statement is another, however much it looks like the old one."""
    before, after = (row_structure(schema).columns for schema in event.schemas)
    names = tuple(column.name for column in event.schemas[0].columns)
    return "its columns changed" if before != after or event.columns_from != names else None
