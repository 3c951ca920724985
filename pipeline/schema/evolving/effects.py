"""What a change did to the schema, table by table.

What follows from them for a lake is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schema.model import TableSchema
from pipeline.table import TableName


class CannotFollow(ValueError):
    """The statement does not fit the schema it should change; `str()` says why. It never
    leaves `evolve`, which answers `NotFollowed`."""


@dataclass(frozen=True, slots=True)
class Created:
    table: TableName
    after: TableSchema


@dataclass(frozen=True, slots=True)
class Dropped:
    """`before` None: its structure was not known."""

    table: TableName
    before: TableSchema | None


@dataclass(frozen=True, slots=True)
class Renamed:
    """`after` None: its structure is not known under either name. `columns_from` is
    empty then, and else as in `Changed`."""

    table: TableName
    to: TableName
    after: TableSchema | None
    columns_from: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncated:
    table: TableName


@dataclass(frozen=True, slots=True)
class Changed:
    """Whether stored values changed is for whoever compares the two. `columns_from`: for
    each column of `after`, in order, its name before the statement; None for a new one, and
    one that was dropped and added again under its name is new. Where the statement renames
    the table too, `Renamed` says the same again: also there it is before the statement."""

    table: TableName
    before: TableSchema
    after: TableSchema
    columns_from: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The statement named the table and changed nothing of it; `why` in a few words."""

    table: TableName
    why: str


@dataclass(frozen=True, slots=True)
class Dirty:
    """Rows may have changed with no row events."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """The table's structure is unknown from here on."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class UnknownTable:
    """The statement changes a table that the schema does not hold: another kind of thing
    by that name (a view, a sequence), or a gap in the history."""

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
    | Dirty
    | NotFollowed
    | UnknownTable
    | DatabaseEffect
)
