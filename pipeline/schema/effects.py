"""A statement of the log, its effects on tables and databases, and its record for the
ledger (Lockstep's tables in Postgres)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, Literal, assert_never

from lockstep.pipeline.schema.compare import differences
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.history import RecordedEffect, SchemaStatement, StatementOutcome
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.statements.changes import NotUnderstood, StatementKind
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName


class CannotFollow(ValueError):
    """Raised by `schema.evolving` for a statement that does not fit the schema that it
    should change. `schema.evolve` turns it into the effect `NotFollowed`."""


@dataclass(frozen=True, slots=True)
class Created:
    table: TableName
    after: TableSchema


@dataclass(frozen=True, slots=True)
class Dropped:
    table: TableName


@dataclass(frozen=True, slots=True)
class Renamed:
    """A table was renamed. `columns_from`: the former name of each column, None for a
    new one; empty if the table's structure is unknown."""

    table: TableName
    to: TableName
    columns_from: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncated:
    table: TableName


@dataclass(frozen=True, slots=True)
class Changed:
    """A table's structure changed. `columns_from`: the former name of each column of
    `after`, None for a new column; a column that was dropped and added again is new. If
    the statement also renames the table, `Renamed` has the same `columns_from`."""

    table: TableName
    before: TableSchema
    after: TableSchema
    columns_from: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The statement names the table but does not change it. `reason`: in a few words."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class UnloggedChange:
    """Rows may have changed without row events."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """The statement cannot be applied to the table, whose structure is unknown from
    here on. `copies_unknown`: it is created LIKE a table whose structure is unknown."""

    table: TableName
    reason: str
    copies_unknown: bool = False


@dataclass(frozen=True, slots=True)
class UnknownTable:
    """The statement changes a table that the history does not have: the name belongs to
    a view or a sequence, or the history has a gap. `statement`: its first words."""

    table: TableName
    statement: str

    @property
    def reason(self) -> str:
        return f"{self.statement} on an unknown table"


@dataclass(frozen=True, slots=True)
class DatabaseEffect:
    """A statement on a database; the database's tables have effects of their own."""

    name: str
    kind: Literal["created", "changed", "unchanged", "dropped", "unknown"]


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


# -- the statement, and its record -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement in the log. `text`: decoded by the client's character set.
    `executed_at`: the value of NOW() in the statement. `server_id`: the server that ran
    it first. `replaces_rows`: the statement was logged instead of the rows that it
    changed."""

    text: str
    context: StatementContext
    begin: Coordinates
    end: Coordinates
    gtid: str
    committed_at: datetime
    executed_at: datetime
    server_id: int = 0
    replaces_rows: bool = False


@dataclass(frozen=True, slots=True)
class FollowedStatement:
    """The effects of a statement. `effects`: empty if the statement was not understood;
    `not_understood` then says why. `kind`: None if it changes no structure."""

    effects: tuple[Effect, ...] = ()
    not_understood: NotUnderstood | None = None
    kind: StatementKind | None = None


def recorded_statement(logged: LoggedStatement, followed: FollowedStatement) -> SchemaStatement:
    """Return a statement and its effects as the history stores them."""
    outcome: StatementOutcome
    if followed.not_understood is not None:
        outcome = "not understood"
        reason = followed.not_understood.reason
        tables = followed.not_understood.possible_tables
        effects = [RecordedEffect(table, reason) for table in tables or [None]]
    else:
        outcome = "partly followed" if any(unknown_structures(followed)) else "followed"
        effects = [
            recorded for effect in followed.effects for recorded in _recorded_effects(effect)
        ]
    return SchemaStatement(
        begin=logged.begin,
        end=logged.end,
        gtid=logged.gtid,
        committed_at=logged.committed_at,
        database=logged.context.database,
        text=logged.text,
        outcome=outcome,
        effects=tuple(effects),
        context={**asdict(logged.context), "executed_at": logged.executed_at.isoformat()},
    )


EMPTIED: Final = "emptied"
"""The `words` of the `RecordedEffect` of a TRUNCATE."""

_MAX_DIFFERENCES: Final = 6
"""Largest number of differences in a sentence; further ones are only counted."""


def _recorded_effects(effect: Effect) -> Iterator[RecordedEffect]:
    match effect:
        case Created(table, after):
            yield RecordedEffect(table, f"created with {len(after.columns)} columns")
        case Dropped(table):
            yield RecordedEffect(table, "dropped")
        case Renamed(table, to):
            yield RecordedEffect(table, f"is now called {to}")
            yield RecordedEffect(to, f"was called {table}")
        case Truncated(table):
            yield RecordedEffect(table, EMPTIED)
        case Changed(table, before, after):
            sentences = differences(before, after)
            further = len(sentences) - _MAX_DIFFERENCES
            suffix = f"; and {further} more" if further > 0 else ""
            yield RecordedEffect(table, f"{'; '.join(sentences[:_MAX_DIFFERENCES])}{suffix}")
        case Unchanged(table, reason):
            yield RecordedEffect(table, f"unchanged: {reason}")
        case UnloggedChange(table, reason):
            yield RecordedEffect(table, f"rows may have changed ({reason})")
        case NotFollowed(table, reason):
            yield RecordedEffect(table, f"not followed, {reason}")
        case UnknownTable(table):
            yield RecordedEffect(table, effect.reason)
        case DatabaseEffect(name, kind):
            yield RecordedEffect(None, f"database {name}: {kind}")
        case _:
            assert_never(effect)


def unknown_structures(followed: FollowedStatement) -> Iterator[tuple[TableName, str]]:
    """Yield each table whose structure is unknown after the statement, with the reason.
    Names are spelled as in the statement."""
    if followed.not_understood is not None:
        for table in followed.not_understood.possible_tables or ():
            yield table, followed.not_understood.reason
    for effect in followed.effects:
        if isinstance(effect, NotFollowed | UnknownTable):
            yield effect.table, effect.reason


def former_column_names(
    effects: Sequence[Effect],
) -> Iterator[tuple[TableName, tuple[str | None, ...] | None]]:
    """Yield each changed table with the former names of its columns. Also yield the new
    name of each renamed table with None: its columns are not those of the table that
    had this name before."""
    for effect in effects:
        match effect:
            case Changed(table, _, _, columns_from):
                yield table, columns_from
            case Renamed(_, to):
                yield to, None
            case _:
                pass
