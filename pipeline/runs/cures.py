"""How a table is quarantined, or left to be read from the source, and what brings it back: words
and remedies, the value of a reading, and which tables are quarantined now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.engines import why_refused
from pipeline.errors import Remedy, TableBusy, TableError
from pipeline.load import Load
from pipeline.position import Coordinates
from pipeline.schema.model import TableSchema
from pipeline.schema.table_effects import why_versioned
from pipeline.segment import SegmentFile
from pipeline.table import TableName
from pipeline.table_state import STOPPED, Quarantine, TableState


def resume_hint(table: TableName) -> str:
    """The cure for a table that is quarantined."""
    return f"`lockstep resume {table} --reason …` brings it back"


def engine_hint(table: TableName) -> str:
    """The cure for a table whose engine is not captured."""
    return (
        f"exclude it, or `alter table {table} engine = InnoDB`, then "
        f"`lockstep resume {table} --reason …` reads it from the source"
    )


def versioning_hint(table: TableName) -> str:
    """The cure for a system-versioned table."""
    return (
        f"exclude it, or `alter table {table} drop system versioning`, with its period and columns "
        f"if they were declared, which drops its history for good; then `lockstep resume {table} "
        "--reason …` reads it from the source"
    )


def refusal(schema: TableSchema) -> TableError | None:
    """Return the error of a table that keeps other rows than the log says; None for any other."""
    if why := why_refused(schema.engine):
        return TableError(why, hint=engine_hint(schema.name))
    if why := why_versioned(schema):
        return TableError(why, hint=versioning_hint(schema.name))
    return None


def met(table: TableName, other: TableName, name: TableName, *, known: bool) -> TableError:
    """The error of a table whose mirror would lie where that of another one lies. `known`: the lake
    has rows of it, so that the log behind its place is all that it lacks."""
    return TableError(
        f"its mirror would be called {name}, and that of {other} is",
        hint=f"give one of the two another `into`, then {resume_hint(table)}",
        remedy=Remedy.CATCH_UP if known else Remedy.RESUMED_RESNAPSHOT,
    )


def reload_hint(table: TableName) -> str:
    """The cure for a table whose mirror cannot go on."""
    return f"`lockstep reload {table} --reason …` rewrites its mirror"


_HINTS: Final = {
    Remedy.RESNAPSHOT: "the next run reads it from the source",
    Remedy.BACKFILL: "the next run reads its new columns from the source",
}


@dataclass(frozen=True, slots=True)
class Reread:
    """A table as it was read: `schema` None where the source has it no more, `error` where
    it cannot be read. The rows belong between `low` and `high`. `why` it was read. `columns`:
    those that were read beside the key of a table that goes on through the log, as `version`
    names them; None: all, or what was read of `load` so far."""

    table: TableName
    why: str
    schema: TableSchema | None
    low: Coordinates
    high: Coordinates
    files: tuple[SegmentFile, ...] = ()
    error: TableError | None = None
    columns: tuple[str, ...] | None = None
    version: int = 0
    load: Load | None = None

    @property
    def complete(self) -> bool:
        return self.load is None or self.load.complete


def owed(reason: str, remedy: Remedy = Remedy.RESNAPSHOT) -> TableError:
    """What a table is quarantined with only to be read from the source by the next run, which
    is told in the hint's words and knows it by the remedy."""
    return TableError(reason, hint=_HINTS[remedy], remedy=remedy)


def in_vain(error: TableError, columns: Sequence[str] | None = None) -> TableError:
    """What a table is quarantined with that could not be read, or those `columns` of it."""
    if isinstance(error, TableBusy):
        return owed(error.reason, Remedy.RESNAPSHOT if columns is None else Remedy.BACKFILL)
    if error.remedy in (Remedy.RESUMED_RESNAPSHOT, Remedy.CONSENT):
        return error
    return TableError(
        str(error),
        hint=f"{error.hint}; resumed, it is read from the source",
        remedy=Remedy.RESUMED_RESNAPSHOT,
    )


def quarantines_of(states: Mapping[TableName, TableState]) -> tuple[Quarantine, ...]:
    """Every table that is quarantined, by the system or by a person; sorted. One that was dropped
    at the source is not: it has no changes that the lake lacks."""
    return tuple(
        Quarantine(
            table,
            state.reason or "",
            state.hint or "",
            _place(state),
            remedy=state.remedy or Remedy.CATCH_UP,
        )
        for table, state in sorted(states.items())
        if state.condition in STOPPED
    )


def _place(state: TableState) -> str:
    return state.position or (str(state.stopped.at) if state.stopped is not None else "")
