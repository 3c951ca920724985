"""Under which names the tables of a source are mirrored: their own, or what `into` makes of them.

Belongs here: reading such a text, filling it in, and which tables would meet under one name. Does
not: where a name lies in the lake (`pipeline.changes.layout`), which names a catalog takes.

A name is that of a database and a table, as at the source. Placeholders stand for parts of the
source's name, which may hold anything: they are escaped as any name is. What a person writes beside
them is plain, so that no name has to be escaped which need not be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pipeline.table import TableName
from pipeline.tables import TablePatterns

_PLACEHOLDER: Final = re.compile(r"\{(source|database|table)\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]*")
_LONGEST: Final = 128
"""A Hive metastore takes no longer name."""


@dataclass(frozen=True, slots=True)
class Into:
    """A mirror's database and table, with `{source}`, `{database}` and `{table}` in them."""

    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> Into:
        """ValueError for what is no such name, or one that is not to be in a lake."""
        database, dot, table = text.partition(".")
        for part in (database, table):
            words = _PLACEHOLDER.sub("", part)
            if not dot or not part:
                raise ValueError(
                    f"{text!r} is not the name of a mirror such as crm.customers (database.table)"
                )
            if _PLAIN.fullmatch(words) is None:
                raise ValueError(
                    f"{text!r}: a mirror's name has letters, digits, _ and - beside {{source}}, "
                    "{database} and {table}"
                )
            if part.startswith("_"):
                raise ValueError(f"{text!r}: names that begin with _ are the lake's own")
            if len(words) > _LONGEST:
                raise ValueError(f"{text!r}: a mirror's name has {_LONGEST} characters at most")
        return cls(database, table)

    def filled(self, source: str, table: TableName) -> TableName:
        values = {"source": source, "database": table.database, "table": table.name}

        def filled(template: str) -> str:
            return _PLACEHOLDER.sub(lambda found: values[found[1]], template)

        return TableName(filled(self.database), filled(self.table))


@dataclass(frozen=True, slots=True)
class MirrorNames:
    """The names of one source. `rules`: for tables that match; the last one counts."""

    source: str
    rules: tuple[tuple[TablePatterns, Into], ...] = ()

    def of(self, table: TableName) -> TableName:
        into = self._into(table)
        return table if into is None else into.filled(self.source, table)

    def given(self, table: TableName) -> bool:
        """Return whether the settings name the table's mirror."""
        return self._into(table) is not None

    def folded(self, table: TableName) -> TableName:
        """The name of its mirror where large letters are not told from small ones."""
        name = self.of(table)
        return TableName(name.database.lower(), name.name.lower())

    def meet(self, one: TableName, other: TableName) -> bool:
        """Return whether the mirrors of two tables may not both be there. Two that differ in case
        alone may, where the source calls them so and the settings say nothing."""
        if self.folded(one) != self.folded(other):
            return False
        return self.of(one) == self.of(other) or self.given(one) or self.given(other)

    def meetings(self, tables: Iterable[TableName]) -> dict[TableName, TableName]:
        """Tables that would meet an earlier one, each with that one."""
        first: dict[TableName, TableName] = {}
        found = {}
        for table in tables if self.rules else ():
            other = first.setdefault(self.folded(table), table)
            if other != table and self.meet(table, other):
                found[table] = other
        return found

    def called(self, name: TableName, tables: Iterable[TableName]) -> list[TableName]:
        """The tables that are meant by a name: their own, or that of their mirror."""
        return [table for table in tables if name in (table, self.of(table))]

    def _into(self, table: TableName) -> Into | None:
        matching = (into for match, into in reversed(self.rules) if match.matches(table))
        return next(matching, None)
