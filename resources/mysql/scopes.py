"""Conditions for queries on information_schema: all tables, or some tables of a database.

The conditions have the names as literals, because MySQL before 8.0 and MariaDB open every table
that no literal name excludes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from pymysql.cursors import Cursor

from lockstep.pipeline.values.table import SYSTEM_DATABASES, TableName

AT_ONCE: Final = 200
"""Most tables that one query names."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Some tables of one database, or all outside of the system databases (`database` None)."""

    database: str | None = None
    tables: tuple[str, ...] = ()

    def condition(self, schema: str, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the SQL condition over these two columns, and its parameters."""
        if self.database is None:
            return f"{schema} not in ({_marks(SYSTEM_DATABASES)})", tuple(sorted(SYSTEM_DATABASES))
        condition = f"{schema} = %s and {name} in ({_marks(self.tables)})"
        return condition, (self.database, *self.tables)


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def scopes_of(names: Collection[TableName] | None) -> tuple[Scope, ...]:
    """Return scopes that together are these tables; None means all tables.

    MariaDB treats literals as equal that differ only in case or accents, even if two tables have
    these names. Such names get a scope each.
    """
    if names is None:
        return (Scope(),)
    spellings = Counter(map(_folded, set(names)))
    scopes = []
    for database, of_database in groupby(sorted(set(names)), lambda name: name.database):
        alike, distinct = list[str](), list[str]()
        for name in of_database:
            is_distinct = name.name.isascii() and spellings[_folded(name)] == 1
            (distinct if is_distinct else alike).append(name.name)
        scopes += [
            Scope(database, tuple(distinct[first : first + AT_ONCE]))
            for first in range(0, len(distinct), AT_ONCE)
        ]
        scopes += [Scope(database, (name,)) for name in alike]
    return tuple(scopes)


def _folded(name: TableName) -> tuple[str, str]:
    return name.database, name.name.lower()


def ask(
    cursor: Cursor,
    question: str,
    scopes: Sequence[Scope],
    schema: str = "table_schema",
    name: str = "table_name",
) -> Iterator[tuple[TableName, tuple[Any, ...]]]:
    """Yield each row's table, from its first two columns, and the rest of the row. `question` has
    `{where}` for the condition over the columns `schema` and `name`."""
    for scope in scopes:
        where, values = scope.condition(schema, name)
        cursor.execute(question.format(where=where), values)
        for database, table, *rest in cursor.fetchall():
            yield TableName(database, table), tuple(rest)
