"""Errors and hints for tables that stop, and their states afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.model.life import next_state, quarantine_event
from lockstep.pipeline.model.table_state import StoppedTable, StopPlace, TableState
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.consequences import (
    ENGINE_REFUSED_RULE,
    VERSIONED_RULE,
    Consequence,
)
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.table_effects import reason_schema_versioned
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.engines import reason_refused
from lockstep.pipeline.values.errors import Need, StoppedBy, TableBusy, TableError
from lockstep.pipeline.values.mirror_names import ONLY_CASE_DIFFERS, MirrorNames
from lockstep.pipeline.values.table import TableName, quoted_table


def resume_hint(table: TableName) -> str:
    """Return the hint for a table that is quarantined."""
    return f"`lockstep resume {table.word} --reason …` brings it back"


def resume_reads_hint(table: TableName) -> str:
    """Return the hint for a quarantined table that has to be read from the source."""
    return f"`lockstep resume {table.word} --reason …` reads it from the source"


def engine_error(table: TableName, reason: str) -> TableError:
    """Return the error of a table whose storage engine is not supported. The log does
    not have all its rows, so once it is cured they are read from the source."""
    hint = (
        f"exclude it, or alter table {quoted_table(table)} engine = InnoDB; then "
        f"{resume_reads_hint(table)}"
    )
    return TableError(reason, hint=hint, need=Need.ROWS)


def versioning_error(table: TableName, reason: str) -> TableError:
    """Return the error of a system-versioned table. The log does not have its rows as
    they are, so once it is cured they are read from the source."""
    hint = (
        f"exclude it, or alter table {quoted_table(table)} drop system versioning, with its period "
        "and columns if they were declared, which drops its history for good; then "
        f"{resume_reads_hint(table)}"
    )
    return TableError(reason, hint=hint, need=Need.ROWS)


def logged_otherwise_errors(
    table: TableName, name_in_log: TableName
) -> Mapping[TableName, TableError]:
    """Return the errors of both names of a table whose rows the log has under another
    name: of its own name, and of `name_in_log`. Return no errors if these are the
    same."""
    if table == name_in_log:
        return {}
    if table.database == name_in_log.database:
        hint = (
            f"RENAME {table} to another name, and in a second statement to {name_in_log}, because "
            "the server takes both spellings for the same name; then "
            f"{resume_reads_hint(name_in_log)}; or exclude both spellings"
        )
    else:
        hint = (
            f"to follow it, RENAME {table} to a name in lower case in another database, whose name "
            "is in lower case, too; in any case exclude both spellings"
        )
    cause = "since lower_case_table_names is 2"
    reasons = {
        table: f"the server logs its rows as those of {name_in_log}, {cause}",
        name_in_log: f"the server logs rows of {table} under this name, {cause}",
    }
    return {name: TableError(reason, hint=hint, need=Need.ROWS) for name, reason in reasons.items()}


_REFUSALS: Final = {ENGINE_REFUSED_RULE: engine_error, VERSIONED_RULE: versioning_error}


def quarantine_error(table: TableName, consequence: Consequence) -> TableError:
    """Return the error of a table that a statement in the log quarantines."""
    refusal = _REFUSALS.get(consequence.rule_name)
    if refusal is not None:
        return refusal(table, consequence.reason)
    return TableError(consequence.reason, hint=resume_hint(table))


def unsupported_error(schema: TableSchema) -> TableError | None:
    """Return an error if the log does not describe all rows of the table, because of
    its storage engine or system versioning; otherwise None."""
    if reason := reason_refused(schema.engine):
        return engine_error(schema.name, reason)
    if reason := reason_schema_versioned(schema):
        return versioning_error(schema.name, reason)
    return None


def collision_error(
    table: TableName, other: TableName, names: MirrorNames, *, in_lake: bool
) -> TableError:
    """Return the error of a table that would have a folder of table `other`. `in_lake`:
    the lake has the table, so that it lacks only changes in the log."""
    reason = f"its mirror would be called {names.of(table)}, as the mirror of {other} is"
    cure = "give one of the two another `into`"
    if names.differ_in_case(table, other):
        reason = f"its name and {other} {ONLY_CASE_DIFFERS}, as this lake's does"
        cure = "rename one of the two, or exclude it"
    hint = f"{cure}; then {resume_hint(table)}"
    return TableError(reason, hint=hint, need=None if in_lake else Need.ROWS)


def reload_hint(table: TableName) -> str:
    """Return the hint for a table whose mirror (the Delta table with the current rows)
    cannot be continued."""
    return f"`lockstep reload {table.word} --reason …` rewrites its mirror"


NEXT_RUN_READS_HINT: Final = "the next run reads it from the source"

NOT_COMMITTED_REASON: Final = (
    "transactions that the log may have are not committed yet; if later runs say so again, a "
    "session or a replication thread holds one open (on MySQL, `select @@global.gtid_owned` ends "
    "with its thread), and somebody has to end it"
)
"""Why a table cannot be read from the source now: rows would be missing that the log has
before the place at which it was read."""

_HINTS: Final = {
    Need.ROWS: NEXT_RUN_READS_HINT,
    Need.COLUMNS: "the next run reads its new columns from the source",
}


def reread_error(reason: str, need: Need = Need.ROWS) -> TableError:
    """Return the error of a table that stops until the next run reads it from the
    source."""
    return TableError(reason, hint=_HINTS[need], need=need, by=StoppedBy.RUN)


def read_after_resume_error(table: TableName, reason: str) -> TableError:
    """Return the error of a table that a person ordered to be written from its
    changelog alone. It waits for a person, and is then read from the source."""
    return TableError(reason, hint=resume_reads_hint(table), need=Need.ROWS)


def waits_for_rows(error: TableError | StoppedTable) -> bool:
    """Return whether a table waits for a person, and is then read from the source
    completely."""
    return error.by is StoppedBy.SYSTEM and error.need in (Need.ROWS, Need.CONSENT)


def unreadable_error(error: TableError, columns: Sequence[str] | None = None) -> TableError:
    """Return the error of a table that could not be read from the source. `columns`:
    the columns that should have been read; None for all."""
    if isinstance(error, TableBusy):
        return reread_error(error.reason, Need.ROWS if columns is None else Need.COLUMNS)
    if waits_for_rows(error):
        return error
    return TableError(str(error), hint=error.hint, need=Need.ROWS)


def stopped_tables(
    states: Mapping[TableName, TableState], is_captured: Callable[[TableName], bool]
) -> tuple[StoppedTable, ...]:
    """Return all stopped tables, sorted. Tables that were dropped at the source do not
    count: the lake lacks no changes of them. Nor do tables for which `is_captured` is
    false: the source's patterns do not match them any more, so nothing of them is
    wanted."""
    return tuple(
        StoppedTable(
            table,
            state.reason or "",
            state.hint or "",
            state.place_text,
            need=state.need,
            by=state.stopped_by,
        )
        for table, state in sorted(states.items())
        if state.stopped_by is not None and is_captured(table)
    )


def states_once_stopped(
    states: Mapping[TableName, TableState], at: Cursor, errors: Mapping[TableName, TableError]
) -> dict[TableName, TableState]:
    """Return the tables' states as they will be once these errors stopped some of them.
    `at`: the end of the newest batch, where they stop."""
    stopped_states, place = dict(states), at.position.at
    for table, error in errors.items():
        quarantine = StoppedTable.of(table, error, str(place))
        event = quarantine_event(quarantine, StopPlace(at.batch, place))
        stopped_states[table] = next_state(table, states[table], event)
    return stopped_states


def stop_at_cursor(
    ports: RunPorts, lease: Lease, errors: Iterable[tuple[TableName, TableError]]
) -> None:
    """Stop tables with these errors at the end of the newest batch, before more of the
    log is read."""
    cursor = ports.ledger.cursors(ports.source.name).captured
    place = "" if cursor is None else str(cursor.position.at)
    for table, error in errors:
        ports.ledger.quarantine(lease, StoppedTable.of(table, error, place))
        ports.progress.note(f"{table}: {error.reason}")


@contextmanager
def arrow_errors_as_table_error(action: str) -> Iterator[None]:
    """Turn errors of Arrow about a table's values into a `TableError`, except lack of
    memory, which concerns the whole run. `action`: completes the sentence "Arrow cannot
    …"."""
    try:
        yield
    except (pa.ArrowMemoryError, pa.ArrowCancelled, TableError):
        raise
    except pa.ArrowException as error:
        raise TableError(
            f"Arrow cannot {action}: {type(error).__name__}",
            hint="report it to us with the table's structure",
        ) from error
