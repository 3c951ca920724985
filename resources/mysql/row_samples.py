"""Some rows of a table: those with some keys, and stretches of a key.

Belongs here: which rows, and their marks. Does not: how many stretches there are, and from where on
(`pipeline.proof.sampling`), rows as Arrow (`select`), hashes of all rows (`row_hashes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa

from pipeline.ports.compared import ComparedRows, SourceSample
from pipeline.proof.sampling import STRETCH
from pipeline.schema.types import arrow_schema
from pipeline.table import TableStructure
from resources.mysql.connection import ConnectionSettings
from resources.mysql.row_hashes import HashedRead, opened
from resources.mysql.select import quoted, quoted_table, select_rows

Key = tuple[Any, ...]
Choose = Callable[[int, int], Sequence[int]]


def read_rows(
    settings: ConnectionSettings, structure: TableStructure, keys: Collection[int]
) -> ComparedRows:
    """See `pipeline.ports.SourceServer.rows_by_hash`."""
    with opened(settings, structure) as read:
        marks = read.begin()
        batches = select_rows(read.cursor, structure, where=read.statement.among(keys))
        read.require_structure()
        rows = pa.Table.from_batches(batches, arrow_schema(structure))
        marks = read.ended(marks)
    return ComparedRows(marks, rows)


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
        rows = [_stretch(read, structure, start) for start in starts]
        marks = read.ended(marks)
    return SourceSample(marks, tuple(starts), tuple(rows))


def _stretch(read: HashedRead, structure: TableStructure, start: Key) -> pa.Table:
    behind, values = _behind([quoted(one) for one in structure.primary_key], start)
    batches = select_rows(
        read.cursor,
        structure,
        where=behind,
        parameters=values,
        order=structure.primary_key,
        limit=STRETCH,
    )
    return pa.Table.from_batches(batches, arrow_schema(structure))


def _behind(names: Sequence[str], start: Key) -> tuple[str | None, list[str | bytes]]:
    """The condition that a key is that or behind it, and its values; none for no start."""
    if not start:
        return None, []
    texts = [one if isinstance(one, bytes) else str(one) for one in start]
    parts, values = [], list[str | bytes]()
    for last, name in enumerate(names):
        sign = ">=" if last == len(names) - 1 else ">"
        plain = [one.replace("%", "%%") for one in (*names[:last], name)]
        equal = [f"{one} = %s" for one in plain[:-1]]
        parts.append(" and ".join([*equal, f"{plain[-1]} {sign} %s"]))
        values += texts[: last + 1]
    return " or ".join(f"({part})" for part in parts), values
