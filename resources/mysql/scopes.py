"""What a question to information_schema is about: all there is, a database, a table.

Belongs here: the conditions, and asking one question of each scope. A condition on one
database or table is looked up; MariaDB opens the tables of every other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pymysql.cursors import Cursor

from pipeline.table import TableName
from pipeline.tables import SYSTEM_DATABASES

_FEW: Final = 20
"""So many tables of one database are asked for one by one, more of them as the database."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One table, one database (`table` None), or all but the system's (both None)."""

    database: str | None = None
    table: str | None = None

    def condition(self, schema: str, name: str) -> tuple[str, tuple[str, ...]]:
        """SQL over those two columns, and its values."""
        if self.database is None:
            marks = ", ".join(["%s"] * len(SYSTEM_DATABASES))
            return f"{schema} not in ({marks})", tuple(sorted(SYSTEM_DATABASES))
        if self.table is None:
            return f"{schema} = %s", (self.database,)
        return f"{schema} = %s and {name} = %s", (self.database, self.table)


def scopes_of(names: Collection[TableName] | None) -> tuple[Scope, ...]:
    """The scopes that together hold these tables, and maybe others; None is all there is."""
    if names is None:
        return (Scope(),)
    many = {name for name, count in Counter(n.database for n in names).items() if count > _FEW}
    few = sorted({name for name in names if name.database not in many})
    return (
        *(Scope(database) for database in sorted(many)),
        *(Scope(name.database, name.name) for name in few),
    )


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
