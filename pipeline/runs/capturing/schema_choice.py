"""Which version of a table a table map's rows are read by, and whether both agree.

Belongs here: the choice, and its refusals. Does not: the history (`pipeline.schema.tracker`),
what a table map says (`pipeline.binlog.rows.table_map`).
"""

from __future__ import annotations

from pipeline.binlog.rows.metadata import OptionalField
from pipeline.binlog.rows.table_map import TableMap, read_outline, read_structure
from pipeline.errors import SchemaUnknownAt, TableError
from pipeline.position import Coordinates
from pipeline.runs.capturing.witness import disagreements
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableStructure

_SHOWN = 5
"""So many disagreements are told."""


def version_for(
    mapped: TableMap, flavour: str, structures: SchemaTracker, at: Coordinates
) -> SchemaVersion:
    """The version in force at `at`; what the log itself says where the history does not
    know and the log says all.

    `SchemaUnknownAt` where the table's structure is known only from a later place on: the
    start lies too far back. TableError where it is not known at all.
    """
    table = mapped.table
    version = structures.version(table)
    if version is not None and version.knowledge is Knowledge.KNOWN:
        return version
    if OptionalField.NAMES in read_outline(mapped.raw, flavour).said:
        return structures.told_by_map(read_structure(mapped.raw, flavour), at)
    later = structures.known_from(table)
    if later is not None:
        raise SchemaUnknownAt(
            f"there are rows of {table} at {at}, but its structure there is not known: statements "
            f"up to {later} changed it, and the log has no column names "
            "(binlog_row_metadata=MINIMAL)",
            hint=f"start at {later} or later, or exclude {table}; nothing was recorded",
        )
    why = "it is not in the history" if version is None else version.reason or "it was dropped"
    raise TableError(
        f"its structure is not known: {why}",
        hint=f"`lockstep release {table} --reason …` re-reads it from MySQL",
    )


def checked(version: SchemaVersion, mapped: TableMap, flavour: str) -> TableStructure:
    """The version's structure; TableError where the log's own account is another."""
    outline = read_outline(mapped.raw, flavour)
    structure = version.structure
    found = disagreements(outline, structure)
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
    return structure
