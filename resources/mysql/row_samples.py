"""Some rows of a table: those with some keys, and stretches of a key.

Belongs here: their statements, and rows as Arrow. Does not: how many stretches there are, and from
where on (`pipeline.proof.sampling`), hashes of all rows (`row_hashes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa

from pipeline.ports.compared import SourceRows, SourceSample
from pipeline.proof.sampling import STRETCH
from pipeline.schema.types import arrow_schema
from pipeline.table import Column, TableStructure
from resources.mysql.connection import ConnectionSettings
from resources.mysql.row_hashes import HashedRead, opened
from resources.mysql.select import quoted, quoted_table
from resources.mysql.stored import require_text, stored
from resources.mysql.values import converter, selected

Key = tuple[Any, ...]
Choose = Callable[[int, int], Sequence[int]]


def read_rows(
    settings: ConnectionSettings, structure: TableStructure, keys: Collection[int]
) -> SourceRows:
    """See `pipeline.ports.SourceServer.rows_by_hash`."""
    keyed = frozenset(structure.primary_key)
    beside = {
        column: asked
        for column in structure.columns
        if (asked := stored(column, quoted(column.name), keyed=column.name in keyed)) is not None
    }
    with opened(settings, structure) as read:
        marks = read.ask(read.statement.rows(keys, tuple(beside.values())))
        answers = list(read.cursor.fetchall())
        read.require_told()
        marks = read.ended(marks)
    return SourceRows(marks, as_table(structure, answers, tuple(beside)))


def as_table(
    structure: TableStructure, answers: Sequence[Sequence[Any]], beside: Sequence[Column] = ()
) -> pa.Table:
    """What a statement answers that asks for every column as `values.selected` does, then for
    what the columns `beside` store (`stored`)."""
    schema = arrow_schema(structure)
    if not answers:
        return schema.empty_table()
    keyed = frozenset(structure.primary_key)
    values: list[Sequence[Any]] = list(zip(*answers, strict=True))
    printed = dict(zip(structure.columns, values, strict=False))
    for column, twice in zip(beside, values[len(structure.columns) :], strict=True):
        require_text(column, printed[column], twice, keyed=column.name in keyed)
    columns = []
    for column, field in zip(structure.columns, schema, strict=True):
        convert = converter(column)
        taken = [None if one is None else convert(one) for one in printed[column]]
        columns.append(pa.array(taken, field.type))
    return pa.table(columns, schema=schema)


def read_sample(
    settings: ConnectionSettings, structure: TableStructure, starts: Sequence[Key] | Choose
) -> SourceSample:
    """See `pipeline.ports.SourceServer.sample`."""
    first = quoted(structure.primary_key[0])
    table = quoted_table(structure.name)
    with opened(settings, structure) as read:
        marks = read.ask(f"select min({first}), max({first}) from {table}")
        [(least, most)] = read.cursor.fetchall()
        if callable(starts):
            chosen = [] if least is None else starts(int(least), int(most))
            starts = [(one,) for one in chosen]
        rows = [as_table(structure, _stretch(read, structure, start)) for start in starts]
        marks = read.ended(marks)
    return SourceSample(marks, tuple(starts), tuple(rows))


def _stretch(read: HashedRead, structure: TableStructure, start: Key) -> Sequence[Sequence[Any]]:
    columns = ", ".join(selected(one, quoted(one.name)) for one in structure.columns)
    order = ", ".join(map(quoted, structure.primary_key))
    table = quoted_table(structure.name)
    if start:  # with values in it, a statement's own percent signs are doubled
        columns, order, table = (one.replace("%", "%%") for one in (columns, order, table))
    behind, values = _behind([quoted(one) for one in structure.primary_key], start)
    read.cursor.execute(
        f"select {columns} from {table}{behind} order by {order} limit {STRETCH}",
        values or None,
    )
    answers: list[Sequence[Any]] = list(read.cursor.fetchall())
    read.require_told()
    return answers


def _behind(names: Sequence[str], start: Key) -> tuple[str, list[str | bytes]]:
    """The condition that a key is that or behind it, and its values; none for no start."""
    if not start:
        return "", []
    texts = [one if isinstance(one, bytes) else str(one) for one in start]
    parts, values = [], list[str | bytes]()
    for last, name in enumerate(names):
        sign = ">=" if last == len(names) - 1 else ">"
        plain = [one.replace("%", "%%") for one in (*names[:last], name)]
        equal = [f"{one} = %s" for one in plain[:-1]]
        parts.append(" and ".join([*equal, f"{plain[-1]} {sign} %s"]))
        values += texts[: last + 1]
    return f" where {' or '.join(f'({part})' for part in parts)}", values
