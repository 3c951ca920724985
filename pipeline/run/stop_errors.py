"""Errors and hints of tables that stop, and the value of a table that was read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lockstep.pipeline.model.load import Load
from lockstep.pipeline.model.table_state import StoppedTable, TableState
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.table_effects import why_versioned
from lockstep.pipeline.values.engines import why_refused
from lockstep.pipeline.values.errors import Need, StoppedBy, TableBusy, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName


def resume_hint(table: TableName) -> str:
    """Return the hint for a table that is quarantined."""
    return f"`lockstep resume {table} --reason …` brings it back"


def engine_hint(table: TableName) -> str:
    """Return the hint for a table whose engine is not captured."""
    return (
        f"exclude it, or `alter table {table} engine = InnoDB`, then "
        f"`lockstep resume {table} --reason …` reads it from the source"
    )


def versioning_hint(table: TableName) -> str:
    """Return the hint for a system-versioned table."""
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


def mirror_collides(
    table: TableName, other: TableName, name: TableName, *, known: bool
) -> TableError:
    """Return the error of a table whose mirror would be at the place of another one's. `known`: the
    lake has rows of it, so that it lacks only the log after its place."""
    return TableError(
        f"its mirror would be called {name}, and that of {other} is",
        hint=f"give one of the two another `into`, then {resume_hint(table)}",
        need=None if known else Need.ROWS,
    )


def reload_hint(table: TableName) -> str:
    """Return the hint for a table whose mirror cannot be continued."""
    return f"`lockstep reload {table} --reason …` rewrites its mirror"


_HINTS: Final = {
    Need.ROWS: "the next run reads it from the source",
    Need.COLUMNS: "the next run reads its new columns from the source",
}


@dataclass(frozen=True, slots=True)
class Reread:
    """A table that was read from the source. `why`: the reason. `schema`: None if the table was
    dropped at the source; `error`: why it cannot be read. The rows were read between the
    watermarks `low` and `high`. `columns`: those that were read besides the key, as `version` names
    them, while all else comes from the log; None for all, or what was read of `load` so far."""

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


def read_by_next_run(reason: str, need: Need = Need.ROWS) -> TableError:
    """Return the error of a table that stops only until the next run reads it from the source."""
    return TableError(reason, hint=_HINTS[need], need=need, by=StoppedBy.RUN)


def read_once_resumed(table: TableName, reason: str) -> TableError:
    """Return the error of a table that is read from the source once a person resumes it, because
    a person had asked for its changelog alone."""
    hint = f"`lockstep resume {table} --reason …` reads it from the source"
    return TableError(reason, hint=hint, need=Need.ROWS)


def waits_for_rows(error: TableError | StoppedTable) -> bool:
    """Return whether a table waits for a person, and all of it is read from the source then."""
    return error.by is StoppedBy.SYSTEM and error.need in (Need.ROWS, Need.CONSENT)


def not_readable(error: TableError, columns: Sequence[str] | None = None) -> TableError:
    """Return the error of a table that could not be read, or whose `columns` could not."""
    if isinstance(error, TableBusy):
        return read_by_next_run(error.reason, Need.ROWS if columns is None else Need.COLUMNS)
    if waits_for_rows(error):
        return error
    return TableError(
        str(error),
        hint=f"{error.hint}; resumed, it is read from the source",
        need=Need.ROWS,
    )


def stopped_tables(states: Mapping[TableName, TableState]) -> tuple[StoppedTable, ...]:
    """Return every table that is stopped, sorted. One that was dropped at the source is not: it has
    no changes that the lake lacks."""
    return tuple(
        StoppedTable(
            table,
            state.reason or "",
            state.hint or "",
            state.place,
            need=state.need,
            by=state.stopped_by,
        )
        for table, state in sorted(states.items())
        if state.stopped_by is not None
    )


@contextmanager
def for_one_table(doing: str) -> Iterator[None]:
    """Turn errors of Arrow about a table's values into a `TableError`, but for lack of memory,
    which concerns the whole run. `doing` completes the sentence "Arrow cannot …"."""
    try:
        yield
    except (pa.ArrowMemoryError, pa.ArrowCancelled, TableError):
        raise
    except pa.ArrowException as error:
        raise TableError(
            f"Arrow cannot {doing}: {type(error).__name__}",
            hint="report it to us with the table's structure",
        ) from error
