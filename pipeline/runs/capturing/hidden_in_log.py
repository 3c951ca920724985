"""The columns of a table map that MySQL hides behind functional indexes.

Belongs here: telling them from the columns of the history, by names, types or places. Does not:
where the history has them (`pipeline.schema.hidden_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.binlog.rows.metadata import OptionalField
from pipeline.binlog.rows.table_map import Outline, TableMap
from pipeline.binlog.stream.description import LogWriter
from pipeline.errors import TableError
from pipeline.runs.capturing.witness import agrees
from pipeline.schema.hidden_columns import (
    FIRST,
    FIRST_WITHOUT,
    LAST_PLACED,
    expressions,
    hidden_places,
    is_hidden,
)
from pipeline.schema.model import TableSchema
from pipeline.table import TableStructure


def may_log_hidden(writer: LogWriter) -> bool:
    """Return whether the log may have hidden columns."""
    return writer.between(FIRST, FIRST_WITHOUT - 1)


def logs_hidden(writer: LogWriter) -> bool:
    """Return whether the log has hidden columns for certain, in places that are known."""
    return writer.version is not None and writer.between(FIRST, LAST_PLACED)


def hidden_in(
    outlines: Sequence[Outline], structure: TableStructure, schema: TableSchema, mapped: TableMap
) -> tuple[int, ...]:
    """Return which columns of a table map, from 0, are hidden; none where the number of its
    columns, or its writer, says that none is. TableError where it is not known which are.

    They are told by their names, or by the one way in which the others are the structure, or by
    the places in the history. A version of which nobody knows whether it logs them may have columns
    too many for another reason: there only names count.
    """
    logged = outlines[0]
    count = len(logged.columns) - len(structure.columns)
    if not may_log_hidden(mapped.writer) or not 0 < count == len(expressions(schema.keys)):
        return ()
    certain = logs_hidden(mapped.writer)
    ways = {way for one in outlines for way in ways_to_hide(one, structure, schema)}
    if len(ways) == 1 and (certain or OptionalField.NAMES in logged.said):
        return ways.pop()
    places = hidden_places(schema) if certain else None
    if ways and places is None:
        columns = "a column" if count == 1 else f"{count} columns"
        raise TableError(
            f"the log has {columns} more than the history, which MySQL may hide behind functional "
            "indexes, and does not tell which of all columns these are",
            hint="set binlog_row_metadata=FULL on the source, then `lockstep release "
            f"{mapped.table} --reason …` re-reads the table from MySQL",
        )
    return places or ()


def without(outline: Outline, places: tuple[int, ...]) -> Outline:
    """Return the outline without the columns at these places."""
    columns = (column for at, column in enumerate(outline.columns) if at not in places)
    return replace(outline, columns=tuple(columns))


def ways_to_hide(
    outline: Outline, structure: TableStructure, schema: TableSchema
) -> list[tuple[int, ...]]:
    """Return the ways in which the map without its hidden columns is the structure, by the places
    of these columns, from 0; of more than two ways only two."""
    named = OptionalField.NAMES in outline.said
    logged, known = outline.columns, structure.columns
    most = len(logged) - len(known)
    # ways[hidden]: those for the columns from the one at hand on, if so many before it are hidden.
    ways: list[list[tuple[int, ...]]] = [[] for _ in range(most)] + [[()]]
    for at in range(len(logged) - 1, -1, -1):
        hides = not named or is_hidden(logged[at].name, schema.keys)
        before = ways
        ways = []
        for hidden in range(most + 1):
            found: list[tuple[int, ...]] = []
            if hides and hidden < most:
                found += ((at, *way) for way in before[hidden + 1])
            place = at - hidden
            if 0 <= place < len(known) and agrees(logged[at], known[place], outline.said):
                found += before[hidden]
            ways.append(found[:2])
    return ways[0]
