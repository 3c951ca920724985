"""Effects of a statement on the schema, table by table."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.table import TableName


class CannotFollow(ValueError):
    """The statement does not fit the schema that it should change; `str()` says why. `evolve`
    catches it and returns `NotFollowed`."""


@dataclass(frozen=True, slots=True)
class Created:
    table: TableName
    after: TableSchema


@dataclass(frozen=True, slots=True)
class Dropped:
    """A table was dropped. `before`: None if its structure was unknown."""

    table: TableName
    before: TableSchema | None


@dataclass(frozen=True, slots=True)
class Renamed:
    """A table was renamed. `after`: None if its structure is unknown; then `columns_from` is empty.
    Otherwise that is as in `Changed`."""

    table: TableName
    to: TableName
    after: TableSchema | None
    columns_from: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncated:
    table: TableName


@dataclass(frozen=True, slots=True)
class Changed:
    """A table's structure changed. `columns_from`: the name of each column of `after` before the
    statement, None for a new one; a column that was dropped and added again is new. If the
    statement also renames the table, `Renamed` has the same `columns_from`."""

    table: TableName
    before: TableSchema
    after: TableSchema
    columns_from: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The statement named the table without changing it; `why` in a few words."""

    table: TableName
    why: str


@dataclass(frozen=True, slots=True)
class UnloggedChange:
    """Rows may have changed without row events."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """The table's structure is unknown from here on."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class UnknownTable:
    """The statement changes a table that the schema does not have: the name is that of a view or a
    sequence, or the history has a gap."""

    table: TableName
    statement: str


@dataclass(frozen=True, slots=True)
class DatabaseEffect:
    """A database was created, changed or dropped; its tables have effects of their own."""

    name: str
    kind: str


Effect = (
    Created
    | Dropped
    | Renamed
    | Truncated
    | Changed
    | Unchanged
    | UnloggedChange
    | NotFollowed
    | UnknownTable
    | DatabaseEffect
)
