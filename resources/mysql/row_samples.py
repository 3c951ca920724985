"""Some rows of a table, in stretches by its key.

Belongs here: the statement for a stretch, and where a key that is a whole number begins and ends.
Does not: how many stretches there are, and from where on (`pipeline.proof.sampling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipeline.ports.source import SourceSample
from pipeline.proof.sampling import STRETCH
from pipeline.table import TableStructure
from resources.mysql.connection import ConnectionSettings
from resources.mysql.row_hashes import HashedRead, as_table, opened
from resources.mysql.select import quoted, quoted_table
from resources.mysql.values import selected

Key = tuple[Any, ...]
Choose = Callable[[int, int], Sequence[int]]


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
