"""The names of mirrors (the Delta tables with the current rows of source tables). A
mirror has the name of its source table, unless the setting `into` gives it another one.

Here: parsing the setting, filling in its placeholders, and finding tables whose mirrors
would have the same name. Not here: the path of a name in the lake
(`pipeline.mirror.layout`), the names that a catalog accepts.

Placeholders stand for the name of the source, of the database and of the table. These
names may contain any character, and are escaped wherever they become a path. The text
around placeholders is restricted to plain characters, so that it never needs escaping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Final

from lockstep.pipeline.values.table import TableName, TablePatterns

_PLACEHOLDER: Final = re.compile(r"\{(source|database|table)\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]*")
_MAX_LENGTH: Final = 128
"""Length of the longest name that a Hive metastore takes."""


@dataclass(frozen=True, slots=True)
class MirrorNameTemplate:
    """A mirror's database and table, with `{source}`, `{database}` and `{table}` in
    them."""

    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> MirrorNameTemplate:
        """Return the template in the setting's text. Raise ValueError if the text is no
        template."""
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
            if len(words) > _MAX_LENGTH:
                raise ValueError(f"{text!r}: a mirror's name has {_MAX_LENGTH} characters at most")
        return cls(database, table)

    def fill(self, source: str, table: TableName) -> TableName:
        """Return the name of a table's mirror, with the placeholders replaced."""
        values = {"source": source, "database": table.database, "table": table.name}

        def filled(template: str) -> str:
            return _PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], template)

        return TableName(filled(self.database), filled(self.table))


ONLY_CASE_DIFFERS: Final = (
    "differ in case only, and would share a folder on a store that ignores case"
)


@dataclass(frozen=True, slots=True)
class MirrorNames:
    """The rules by which the mirrors of one source are named. The last rule whose
    patterns match a table applies to it. `ignores_case`: returns whether the lake's
    store ignores the case of names; it is only called for names that differ in case."""

    source: str
    rules: tuple[tuple[TablePatterns, MirrorNameTemplate], ...] = ()
    ignores_case: Callable[[], bool] = field(default=lambda: False, compare=False)

    def of(self, table: TableName) -> TableName:
        """Return the name of the table's mirror."""
        template = self._template(table)
        return table if template is None else template.fill(self.source, table)

    def is_configured(self, table: TableName) -> bool:
        """Return whether the setting `into` names the table's mirror."""
        return self._template(table) is not None

    def may_collide(self, tables: Set[TableName]) -> bool:
        """Return whether `collisions` may find any of these tables."""
        return bool(self.rules) or len({_lower(table) for table in tables}) < len(tables)

    def folder_names(self, table: TableName) -> Iterator[tuple[str, TableName]]:
        """Yield the names of the table's folders, for its mirror and its changelog, in
        lower case, as a case-insensitive file system compares them."""
        yield "mirror", _lower(self.of(table))
        yield "changelog", _lower(table)

    def collide(self, table: TableName, other: TableName) -> bool:
        """Return whether two tables would share a folder. Names of mirrors that differ
        only in case count as the same if the setting `into` makes one of them. The
        names of two source tables may differ only in case, unless the store ignores
        it."""
        if self.differ_in_case(table, other) and self.ignores_case():
            return True
        mirror, other_mirror = self.of(table), self.of(other)
        if _lower(mirror) != _lower(other_mirror):
            return False
        return mirror == other_mirror or any(map(self.is_configured, (table, other)))

    def differ_in_case(self, table: TableName, other: TableName) -> bool:
        """Return whether the names of two tables differ only in case."""
        return table != other and _lower(table) == _lower(other)

    def collisions(self, tables: Iterable[TableName]) -> dict[TableName, TableName]:
        """Return each table that would share a folder with an earlier one, and that
        earlier table."""
        owners: dict[tuple[str, TableName], TableName] = {}
        collisions: dict[TableName, TableName] = {}
        for table in tables:
            for name in self.folder_names(table):
                other = owners.setdefault(name, table)
                if other != table and self.collide(table, other):
                    collisions.setdefault(table, other)
        return collisions

    def tables_named(self, name: TableName, tables: Iterable[TableName]) -> list[TableName]:
        """Return the tables whose own name, or whose mirror's name, is `name`."""
        return [table for table in tables if name in (table, self.of(table))]

    def _template(self, table: TableName) -> MirrorNameTemplate | None:
        matching = (name for patterns, name in reversed(self.rules) if patterns.matches(table))
        return next(matching, None)


def _lower(name: TableName) -> TableName:
    return TableName(name.database.lower(), name.name.lower())
