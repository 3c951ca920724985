"""Compares table maps with the history. A table map is the event before a table's rows
in the log, which describes their columns.

With `binlog_row_metadata=MINIMAL`, MySQL's default, a table map has the columns' types,
widths, nullability, signs and character sets; with FULL also their names, members and
the primary key. MariaDB's default has only types, widths and nullability. MySQL 8.0
also logs the hidden column that it makes for each expression of a functional index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from lockstep.pipeline.binlog.rows.table_map import OptionalField, Outline, TableMap, read_outlines
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.run.stop_errors import resume_reads_hint
from lockstep.pipeline.schema.hidden_columns import (
    FIRST_WITH_HIDDEN,
    FIRST_WITHOUT_HIDDEN,
    LAST_WITH_PLACES,
    expression_parts,
    hidden_places,
    is_hidden,
)
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import logged_structure
from lockstep.pipeline.schema.types import FAMILIES, Family
from lockstep.pipeline.shape.shaping import placeholder_members
from lockstep.pipeline.values.errors import Need, TableError
from lockstep.pipeline.values.shown import name_list, pluralize
from lockstep.pipeline.values.table import Column, TableStructure

_TYPE_IN_TABLE_MAP: Final = {"binary": "char", "varbinary": "varchar", "blob": "text"}
"""Types of binary columns, each with the type that a table map shows for it. Only the
character set tells the two apart, so they are treated as equal if the map has none."""

_TYPES_WITH_FRACTION: Final = frozenset({"time", "datetime", "timestamp"})


def checked_hidden_columns(version: SchemaVersion, table_map: TableMap) -> tuple[int, ...]:
    """Return the indexes, from 0, of a table map's hidden columns. Raise `TableError`
    if these cannot be determined, or if the other columns differ from the version's."""
    assert version.schema is not None, "only tables with a known structure are decoded"
    outlines, structure = read_outlines(table_map), logged_structure(version.schema)
    hidden = _hidden_column_indexes(outlines, structure, version.schema, table_map)
    # There are two outlines if it is unknown whether the server wrote a sign for YEAR
    # columns; the one with fewer differences counts.
    differences = min(
        (map_differences(without_columns(outline, hidden), structure) for outline in outlines),
        key=len,
    )
    expected = len(expression_parts(version.schema.keys)) if logs_hidden(table_map.writer) else 0
    if not differences and len(hidden) < expected:
        shown = len(structure.columns)
        differences = [f"columns: {shown}, {shown} and {expected} hidden"]
    if differences:
        raise TableError(
            "the log and the history disagree about its structure (log, history): "
            f"{name_list(differences, '; ')}",
            hint="either a statement is not in the log (sql_log_bin=0, another server), or "
            "Lockstep read one differently from the server: `lockstep schema "
            f"{table_map.table.word}` shows the history, {resume_reads_hint(table_map.table)}",
            need=Need.STRUCTURE,
        )
    return hidden


def map_differences(outline: Outline, structure: TableStructure) -> list[str]:
    """Return the differences between the table map and the structure, each as text:
    "what: log, history"."""
    map_columns, recorded_columns = outline.columns, structure.columns
    if len(map_columns) != len(recorded_columns):
        names = ", ".join(column.name for column in recorded_columns)
        return [f"columns: {len(map_columns)}, {len(recorded_columns)} ({names})"]
    differences = [
        f"column {number} ({recorded.name}) {attribute}: {in_log}, {in_history}"
        for number, (logged, recorded) in enumerate(
            zip(map_columns, recorded_columns, strict=True), start=1
        )
        for attribute, in_log, in_history in _comparable_attributes(
            logged, recorded, outline.optional_fields
        )
        if in_log != in_history
    ]
    if (
        OptionalField.NAMES in outline.optional_fields
        and outline.primary_key != structure.primary_key
    ):
        keys = (", ".join(key) or "none" for key in (outline.primary_key, structure.primary_key))
        differences.append(f"primary key: {', '.join(keys)}")
    return differences


def _is_same_column(
    logged: Column, recorded: Column, optional_fields: frozenset[OptionalField]
) -> bool:
    """Return whether a column of the table map equals the recorded column in all
    attributes that the map has. `optional_fields`: the optional fields of the map."""
    return all(
        in_log == in_history
        for _, in_log, in_history in _comparable_attributes(logged, recorded, optional_fields)
    )


def _comparable_attributes(
    logged: Column, recorded: Column, optional_fields: frozenset[OptionalField]
) -> Iterator[tuple[str, object, object]]:
    """Yield each attribute of a column that the table map has: its name, its value in
    the map, and its value in the history."""
    shown_types = {} if OptionalField.CHARSETS in optional_fields else _TYPE_IN_TABLE_MAP
    described_fields = _fields_of(FAMILIES.get(recorded.type)) & optional_fields
    if OptionalField.NAMES in optional_fields:
        yield "name", logged.name, recorded.name
    yield (
        "type",
        shown_types.get(logged.type, logged.type),
        shown_types.get(recorded.type, recorded.type),
    )
    yield "width", _length_and_precision(logged), _length_and_precision(recorded)
    yield "nullable", logged.nullable, recorded.nullable
    if OptionalField.SIGNS in described_fields:
        yield "unsigned", logged.unsigned, recorded.unsigned
    if described_fields & {OptionalField.CHARSETS, OptionalField.MEMBER_CHARSETS}:
        yield "character set", logged.charset, recorded.charset
    if OptionalField.MEMBERS in described_fields:
        if recorded.members == placeholder_members(recorded.members):
            yield "number of members", len(logged.members), len(recorded.members)
        else:
            yield "members", logged.members, recorded.members


def _fields_of(family: Family | None) -> frozenset[OptionalField]:
    """Return the parts of the optional metadata that describe columns of a family."""
    match family:
        case Family.INTEGER | Family.FLOATING | Family.DECIMAL:
            return frozenset({OptionalField.SIGNS})
        case Family.TEXT | Family.BYTES:
            return frozenset({OptionalField.CHARSETS})
        case Family.ENUM | Family.SET:
            return frozenset({OptionalField.MEMBER_CHARSETS, OptionalField.MEMBERS})
        case Family.BIT | Family.YEAR | Family.DATE | Family.TIME | Family.DATETIME:
            return frozenset()
        case Family.TIMESTAMP | Family.JSON | Family.GEOMETRY | Family.VECTOR | None:
            return frozenset()
        case _:
            assert_never(family)


def _length_and_precision(column: Column) -> object:
    length = column.length
    if column.type in _TYPES_WITH_FRACTION:
        # Columns created before MySQL 5.6 have other type codes, without a width.
        length = length or 0
    return length, column.precision, column.scale


def may_log_hidden(writer: LogWriter) -> bool:
    """Return whether a server of this version may log hidden columns. If the version is
    not known exactly, return True."""
    return writer.is_mysql_between(FIRST_WITH_HIDDEN, FIRST_WITHOUT_HIDDEN - 1)


def logs_hidden(writer: LogWriter) -> bool:
    """Return whether a server of this version certainly logs hidden columns, at places
    that can be computed from the table's structure."""
    return writer.version is not None and writer.is_mysql_between(
        FIRST_WITH_HIDDEN, LAST_WITH_PLACES
    )


def _hidden_column_indexes(
    outlines: Sequence[Outline], structure: TableStructure, schema: TableSchema, table_map: TableMap
) -> tuple[int, ...]:
    """Return the indexes, from 0, of a table map's hidden columns. The result is empty
    if the number of columns, or the version of the server that wrote the log, rules
    them out. Raise `TableError` if the hidden columns cannot be determined.

    A choice of hidden columns is possible if all other columns match the structure, and
    if the names, where the map has them, are those of hidden columns. If several
    choices are possible, the places that the history has decide. If it is not certain
    that the server's version logs hidden columns, the map may have more columns for
    another reason, so a choice without names does not count."""
    logged = outlines[0]
    hidden_count = len(logged.columns) - len(structure.columns)
    may_be_hidden = may_log_hidden(table_map.writer) and hidden_count > 0
    if not may_be_hidden or hidden_count != len(expression_parts(schema.keys)):
        return ()
    is_certain = logs_hidden(table_map.writer)
    choices = {
        choice for outline in outlines for choice in _hiding_choices(outline, structure, schema)
    }
    if len(choices) == 1 and (is_certain or OptionalField.NAMES in logged.optional_fields):
        return choices.pop()
    recorded_indexes = hidden_places(schema) if is_certain else None
    if choices and recorded_indexes is None:
        count = pluralize(hidden_count, "column")
        raise TableError(
            f"the log has {count} more than the history, probably because it includes the hidden "
            "columns of functional indexes, but it does not say which columns are hidden",
            hint="set binlog_row_metadata=FULL on the source, then "
            f"{resume_reads_hint(table_map.table)}",
            need=Need.STRUCTURE,
        )
    return recorded_indexes or ()


def without_columns(outline: Outline, indexes: tuple[int, ...]) -> Outline:
    """Return the outline without the columns with these indexes, from 0."""
    columns = (column for index, column in enumerate(outline.columns) if index not in indexes)
    return replace(outline, columns=tuple(columns))


def _hiding_choices(
    outline: Outline, structure: TableStructure, schema: TableSchema
) -> list[tuple[int, ...]]:
    """Return the ways to choose hidden columns, by index from 0, so that the map's
    other columns match the structure's. At most two are returned, because two already
    make the result ambiguous."""
    has_names = OptionalField.NAMES in outline.optional_fields
    logged, recorded = outline.columns, structure.columns
    hidden_total = len(logged) - len(recorded)
    # From the last column to the first. choices_by_hidden[n]: the choices among the
    # columns from `index` on, if n columns before `index` are hidden.
    choices_by_hidden: list[list[tuple[int, ...]]] = [[] for _ in range(hidden_total)] + [[()]]
    for index in range(len(logged) - 1, -1, -1):
        may_hide = not has_names or is_hidden(logged[index].name, schema.keys)
        from_next, choices_by_hidden = choices_by_hidden, []
        for hidden in range(hidden_total + 1):
            choices: list[tuple[int, ...]] = []
            if may_hide and hidden < hidden_total:
                choices += ((index, *choice) for choice in from_next[hidden + 1])
            recorded_index = index - hidden
            if 0 <= recorded_index < len(recorded) and _is_same_column(
                logged[index], recorded[recorded_index], outline.optional_fields
            ):
                choices += from_next[hidden]
            choices_by_hidden.append(choices[:2])
    return choices_by_hidden[0]
