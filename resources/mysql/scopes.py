"""What a question to information_schema is about: all there is, or some tables of a database.

The names are literals: MySQL before 8.0 and MariaDB open each table that a condition does not rule
out by its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from pymysql.cursors import Cursor

from pipeline.table import TableName
from pipeline.tables import SYSTEM_DATABASES

AT_ONCE: Final = 200
"""Tables of a database that one question names at most."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Some tables of one database, or all but the system's (`database` None)."""

    database: str | None = None
    tables: tuple[str, ...] = ()

    def condition(self, schema: str, name: str) -> tuple[str, tuple[str, ...]]:
        """SQL over those two columns, and its values."""
        if self.database is None:
            return f"{schema} not in ({_marks(SYSTEM_DATABASES)})", tuple(sorted(SYSTEM_DATABASES))
        condition = f"{schema} = %s and {name} in ({_marks(self.tables)})"
        return condition, (self.database, *self.tables)


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def scopes_of(names: Collection[TableName] | None) -> tuple[Scope, ...]:
    """The scopes that together are these tables; None is all there is.

    MariaDB takes two literals for one that differ only in case or accents, though two tables have
    those names: such names are asked for one by one.
    """
    if names is None:
        return (Scope(),)
    spellings = Counter(map(_folded, set(names)))
    scopes = []
    for database, of_database in groupby(sorted(set(names)), lambda name: name.database):
        alike, others = list[str](), list[str]()
        for name in of_database:
            alone = name.name.isascii() and spellings[_folded(name)] == 1
            (others if alone else alike).append(name.name)
        scopes += [
            Scope(database, tuple(others[first : first + AT_ONCE]))
            for first in range(0, len(others), AT_ONCE)
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
    """Each row's table, its first two columns, and the rest. `question` has `{where}`."""
    for scope in scopes:
        where, values = scope.condition(schema, name)
        cursor.execute(question.format(where=where), values)
        for database, table, *rest in cursor.fetchall():
            yield TableName(database, table), tuple(rest)
