"""The texts of a mirror's statements. Pure.

Identifiers are quoted by doubling backticks (Spark SQL reference, "Identifiers"); names
come from the source's log, so none is ever put into a statement unquoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import assert_never

import pyarrow as pa

from pipeline.changes.layout import DELETED_AT
from pipeline.ports.mirror_writes import (
    AddColumns,
    DropColumns,
    RenameColumn,
    SetProperties,
    WidenColumn,
)
from pipeline.schema.types import sql_type

COMPLETE = "complete"
"""What a row of a MERGE's source is that no image speaks of: columns of a row that is there."""

_GONE = "s.`_change_type` = 'delete'"
_PRESENT = "s.`_change_type` <> 'delete'"
_COMPLETES = f"s.`_change_type` = '{COMPLETE}'"
_NONE: Mapping[str, str] = MappingProxyType({})


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def merge_statement(
    *,
    mirror: str,
    source: str,
    columns: Sequence[str],
    source_columns: Sequence[str],
    key: Sequence[str],
    bounds: Sequence[tuple[str, str, str]],
    keeps: Mapping[str, str] = _NONE,
    soft: bool = False,
    completed: Sequence[str] = (),
) -> str:
    """MERGE of folded changes into a mirror.

    `mirror` is its absolute path, `source` the name of a view with `_change_type` and
    `source_columns`, which are `columns` in the same order as the changes spell them.
    `bounds` are (key column, least, greatest) as literals; they let Delta pass over files.
    `keeps`: a column → the view's boolean that says whether the mirror's value stays.
    `soft`: a deleted row stays as its last image shows it, and `_deleted_at` is the view's
    `_committed_at`; it is NULL for every other. `completed`: all that a "complete" brings,
    to rows that there are.
    """
    spelled = dict(zip(columns, source_columns, strict=True))
    on = [f"t.{quoted(c)} = s.{quoted(spelled[c])}" for c in key]
    on += [f"t.{quoted(c)} between {low} and {high}" for c, low, high in bounds]
    values = [(quoted(c), f"s.{quoted(spelled[c])}") for c in columns]
    if soft:
        values.append((quoted(DELETED_AT.name), f"case when {_GONE} then s.`_committed_at` end"))
    assignments = ", ".join(
        f"t.{name} = {value}" for name, value in _updated(columns, values, keeps)
    )
    gone = "" if soft else f"when matched and {_GONE} then delete\n"
    present = "" if soft else f" and {_PRESENT}"
    complete = ""
    if completed:
        told = ", ".join(f"t.{quoted(c)} = s.{quoted(spelled[c])}" for c in completed)
        complete = f"when matched and {_COMPLETES} then update set {told}\n"
        present += f" and not ({_COMPLETES})"
    return (
        f"merge into delta.{quoted(mirror)} as t using {quoted(source)} as s\n"
        f"on {' and '.join(on)}\n"
        f"{gone}"
        f"{complete}"
        f"when matched then update set {assignments}\n"
        f"when not matched{present} then insert "
        f"({', '.join(name for name, _ in values)}) "
        f"values ({', '.join(value for _, value in values)})"
    )


def _updated(
    columns: Sequence[str], values: Sequence[tuple[str, str]], keeps: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for (name, value), column in zip_longest(values, columns):
        if column in keeps:
            yield name, f"if(s.{quoted(keeps[column])}, t.{name}, {value})"
        else:
            yield name, value


def count_statement(
    *, mirror: str, source: str, columns: Sequence[str], source_columns: Sequence[str]
) -> str:
    """MERGE into a mirror without a key: every copy of an image that `source` calls a
    "delete" goes, and its other rows come."""
    pairs = list(zip(columns, source_columns, strict=True))
    on = [_GONE, *(f"t.{quoted(c)} <=> s.{quoted(spelled)}" for c, spelled in pairs)]
    return (
        f"merge into delta.{quoted(mirror)} as t using {quoted(source)} as s\n"
        f"on {' and '.join(on)}\n"
        "when matched then delete\n"
        f"when not matched and {_PRESENT} then insert ({', '.join(quoted(c) for c, _ in pairs)}) "
        f"values ({', '.join(f's.{quoted(spelled)}' for _, spelled in pairs)})"
    )


def step_statement(
    mirror: str,
    step: SetProperties | DropColumns | RenameColumn | WidenColumn | AddColumns,
    spell: Callable[[str], str],
) -> str:
    """The ALTER of a step; `mirror` is the table's absolute path, which spells its columns by
    `spell`."""
    table = f"delta.{quoted(mirror)}"

    def own(name: str) -> str:
        return quoted(spell(name))

    match step:
        case SetProperties(properties):
            told = ", ".join(f"'{name}' = '{value}'" for name, value in properties)
            return f"alter table {table} set tblproperties ({told})"
        case DropColumns(names):
            return f"alter table {table} drop columns ({', '.join(map(own, names))})"
        case RenameColumn(name, to):
            return f"alter table {table} rename column {own(name)} to {own(to)}"
        case WidenColumn(name, kind):
            return f"alter table {table} alter column {own(name)} type {sql_type(kind)}"
        case AddColumns(fields):
            added = ", ".join(f"{own(field.name)} {sql_type(field.type)}" for field in fields)
            return f"alter table {table} add columns ({added})"
    assert_never(step)


def literal(value: pa.Scalar) -> str:
    """A value as Spark reads it: text as the hex of its UTF-8, so that no escaping matters."""
    kind = value.type
    if not value.is_valid:
        told = "null"
    elif pa.types.is_string(kind):
        told = f"X'{value.as_py().encode().hex()}'"
    elif pa.types.is_binary(kind):
        told = f"X'{value.as_py().hex()}'"
    elif pa.types.is_date(kind):
        told = f"'{value.as_py().isoformat()}'"
    elif pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "+00:00"
        told = f"'{value.as_py().replace(tzinfo=None).isoformat(' ')}{zone}'"
    elif pa.types.is_floating(kind):
        told = f"'{value.as_py()!r}'"
    elif pa.types.is_decimal(kind):
        told = f"{value.as_py():f}BD"
    else:
        told = str(value.as_py()).lower()
    return f"cast({told} as {sql_type(kind)})"
