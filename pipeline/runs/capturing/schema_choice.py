"""Which version of a table a table map's rows are read by, and whether both agree.

Belongs here: the choice, and its refusals. Does not: the history (`pipeline.schema.tracker`),
what a table map says (`pipeline.binlog.rows.table_map`).
"""

from __future__ import annotations

from pipeline.binlog.rows.metadata import OptionalField
from pipeline.binlog.rows.table_map import TableMap, read_outlines, read_structure
from pipeline.errors import SchemaUnknownAt, StructureUnknown, TableError
from pipeline.position import Coordinates
from pipeline.runs.capturing.hidden_in_log import (
    hidden_in,
    logs_hidden,
    may_log_hidden,
    without,
)
from pipeline.runs.capturing.witness import disagreements
from pipeline.schema.hidden_columns import expressions, may_be_hidden
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.rows import logged_structure
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableStructure

_SHOWN = 5
"""So many disagreements are told."""


def version_for(mapped: TableMap, structures: SchemaTracker, at: Coordinates) -> SchemaVersion:
    """The version in force at `at`; what the log itself says where the history does not
    know and the log says all.

    `SchemaUnknownAt` where the table's structure is known only from a later place on: the
    start lies too far back. StructureUnknown where it is not known at all.
    """
    table = mapped.table
    version = structures.version(table)
    if version is not None and version.knowledge is Knowledge.KNOWN:
        return version
    dropped = version is not None and version.knowledge is Knowledge.DROPPED
    if not dropped and OptionalField.NAMES in read_outlines(mapped)[0].said:
        return structures.told_by_map(_told(mapped), at)
    later = structures.known_from(table)
    if later is not None:
        raise SchemaUnknownAt(
            f"there are rows of {table} at {at}, but its structure there is not known: statements "
            f"up to {later} changed it, and the log has no column names "
            "(binlog_row_metadata=MINIMAL)",
            hint=f"start at {later} or later, or exclude {table}; nothing was recorded",
        )
    why = "it is not in the history" if version is None else version.reason or "it was dropped"
    raise StructureUnknown(
        f"its structure is not known: {why}",
        hint=f"`lockstep release {table} --reason …` re-reads it from MySQL",
    )


def _told(mapped: TableMap) -> TableStructure:
    """The structure as the map tells it; TableError where a column may be one that MySQL hides."""
    structure = read_structure(mapped)
    suspects = [name for name in structure.names if may_be_hidden(name)]
    if suspects and may_log_hidden(mapped.writer):
        raise TableError(
            f"its structure is known from the log alone, which does not tell whether {suspects[0]} "
            "is a column of its own or one that MySQL hides behind a functional index",
            hint=f"`lockstep release {mapped.table} --reason …` re-reads it from MySQL",
        )
    return structure


def checked(version: SchemaVersion, mapped: TableMap) -> tuple[int, ...]:
    """Hold the log's own account of a table against the version: return which columns of the
    map, from 0, are none of the version's, because MySQL hides them behind functional indexes.

    TableError where the two disagree, or where it is not known which columns are hidden.
    """
    if version.schema is None:
        raise ValueError(f"{version.table}: version {version.version} is {version.knowledge}")
    outlines, structure = read_outlines(mapped), logged_structure(version.schema)
    hidden = hidden_in(outlines, structure, version.schema, mapped)
    found = min((disagreements(without(one, hidden), structure) for one in outlines), key=len)
    expected = len(expressions(version.schema.keys)) if logs_hidden(mapped.writer) else 0
    if not found and len(hidden) < expected:
        count = len(structure.columns)
        found = (f"columns: {count}, {count} and {expected} that functional indexes hide",)
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise TableError(
            "the log and the history disagree about it (log, history): "
            f"{'; '.join(found[:_SHOWN])}{more}",
            hint="either a statement is not in the log (sql_log_bin=0, another server), or "
            f"Lockstep read one differently from the server: `lockstep schema {mapped.table}` "
            f"shows the history, `lockstep release {mapped.table} --reason …` re-reads the table "
            "from MySQL",
        )
    return hidden
