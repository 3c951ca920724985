"""The texts of SQL statements on a mirror (the Delta table with a table's present
rows). Pure.

Identifiers are quoted by doubling backticks (Spark SQL reference, "Identifiers"). Names
come from the source's log, so each is quoted in every statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never

import pyarrow as pa

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    RenameColumn,
    SetProperties,
    WidenColumn,
)
from lockstep.pipeline.schema.types import sql_type

COMPLETION = "complete"
"""The `_change_type` of a row of the merged view that is no change: it only has columns
that were read from MySQL by key."""

_IS_DELETE = "s.`_change_type` = 'delete'"
_IS_NO_DELETE = "s.`_change_type` <> 'delete'"
_IS_COMPLETION = f"s.`_change_type` = '{COMPLETION}'"

CHANGES_VIEW: Final = "changes"
"""The view with the changes that a MERGE reads."""


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def merge_statement(
    *,
    mirror: str,
    columns: Sequence[str],
    source_columns: Sequence[str],
    key: Sequence[str],
    bounds: Sequence[tuple[str, str, str]],
    keep_marks: Mapping[str, str],
    soft: bool,
    completed_columns: Sequence[str],
) -> str:
    """Return the MERGE of folded changes into a mirror.

    `mirror`: its absolute path. The view `CHANGES_VIEW` has `_change_type` and
    `source_columns`: the view's names for `columns`, in the same order.
    `bounds`: key columns with the least and the greatest value of the changes as
    literals, by which Delta skips files. `keep_marks`: a column → the view's boolean
    column that is true where the mirror's value stays. `soft`: a deleted row stays as
    its last image shows it, and its `_deleted_at` gets the view's `_committed_at`; all
    other changed rows get NULL there. `completed_columns`: the columns that a
    "complete" row sets in an existing row.
    """
    view_names = dict(zip(columns, source_columns, strict=True))
    conditions = [f"t.{quoted(c)} = s.{quoted(view_names[c])}" for c in key]
    conditions += [f"t.{quoted(c)} between {low} and {high}" for c, low, high in bounds]
    values = [(quoted(c), f"s.{quoted(view_names[c])}") for c in columns]
    if soft:
        values.append(
            (quoted(DELETED_AT.name), f"case when {_IS_DELETE} then s.`_committed_at` end")
        )
    marks = {quoted(c): quoted(mark) for c, mark in keep_marks.items()}
    assignments = ", ".join(
        f"t.{name} = if(s.{marks[name]}, t.{name}, {value})"
        if name in marks
        else f"t.{name} = {value}"
        for name, value in values
    )
    delete_clause = "" if soft else f"when matched and {_IS_DELETE} then delete\n"
    insert_condition = "" if soft else f" and {_IS_NO_DELETE}"
    complete_clause = ""
    if completed_columns:
        completion_assignments = ", ".join(
            f"t.{quoted(c)} = s.{quoted(view_names[c])}" for c in completed_columns
        )
        complete_clause = (
            f"when matched and {_IS_COMPLETION} then update set {completion_assignments}\n"
        )
        insert_condition += f" and not ({_IS_COMPLETION})"
    return (
        f"merge into delta.{quoted(mirror)} as t using {CHANGES_VIEW} as s\n"
        f"on {' and '.join(conditions)}\n"
        f"{delete_clause}"
        f"{complete_clause}"
        f"when matched then update set {assignments}\n"
        f"when not matched{insert_condition} then insert "
        f"({', '.join(name for name, _ in values)}) "
        f"values ({', '.join(value for _, value in values)})"
    )


def keyless_merge_statement(
    *, mirror: str, columns: Sequence[str], source_columns: Sequence[str]
) -> str:
    """Return the MERGE into a mirror without a key. It deletes all rows that are equal
    to a "delete" of the view `CHANGES_VIEW`, and inserts the view's other rows."""
    pairs = list(zip(columns, source_columns, strict=True))
    conditions = [_IS_DELETE, *(f"t.{quoted(c)} <=> s.{quoted(spelled)}" for c, spelled in pairs)]
    names = ", ".join(quoted(c) for c, _ in pairs)
    return (
        f"merge into delta.{quoted(mirror)} as t using {CHANGES_VIEW} as s\n"
        f"on {' and '.join(conditions)}\n"
        "when matched then delete\n"
        f"when not matched and {_IS_NO_DELETE} then insert ({names}) "
        f"values ({', '.join(f's.{quoted(spelled)}' for _, spelled in pairs)})"
    )


def step_statement(
    mirror: str,
    step: SetProperties | DropColumns | RenameColumn | WidenColumn | AddColumns,
    spell: Callable[[str], str],
) -> str:
    """Return the ALTER TABLE for a step. `mirror`: the table's absolute path. `spell`
    turns a column's name at the source into its name in the table."""
    table = f"delta.{quoted(mirror)}"

    def spelled(name: str) -> str:
        return quoted(spell(name))

    match step:
        case SetProperties(properties):
            assignments = ", ".join(f"'{name}' = '{value}'" for name, value in properties)
            return f"alter table {table} set tblproperties ({assignments})"
        case DropColumns(names):
            return f"alter table {table} drop columns ({', '.join(map(spelled, names))})"
        case RenameColumn(name, new_name):
            return f"alter table {table} rename column {spelled(name)} to {spelled(new_name)}"
        case WidenColumn(name, kind):
            return f"alter table {table} alter column {spelled(name)} type {sql_type(kind)}"
        case AddColumns(fields):
            column_definitions = ", ".join(
                f"{spelled(field.name)} {sql_type(field.type)}" for field in fields
            )
            return f"alter table {table} add columns ({column_definitions})"
    assert_never(step)


def literal(value: pa.Scalar) -> str:
    """Return a value as a literal of Spark SQL; text is written as the hex of its
    UTF-8, which needs no escapes."""
    kind = value.type
    if not value.is_valid:
        text = "null"
    elif pa.types.is_string(kind):
        text = f"X'{value.as_py().encode().hex()}'"
    elif pa.types.is_binary(kind):
        text = f"X'{value.as_py().hex()}'"
    elif pa.types.is_date(kind):
        text = f"'{value.as_py().isoformat()}'"
    elif pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "+00:00"
        text = f"'{value.as_py().replace(tzinfo=None).isoformat(' ')}{zone}'"
    elif pa.types.is_floating(kind):
        text = f"'{value.as_py()!r}'"
    elif pa.types.is_decimal(kind):
        text = f"{value.as_py():f}BD"
    else:
        text = str(value.as_py()).lower()
    return f"cast({text} as {sql_type(kind)})"
