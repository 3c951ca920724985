"""Which tables of a source are captured: `database.table` patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from pipeline.table import TableName

SYSTEM_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
"""Never captured, whatever a pattern says."""


@dataclass(frozen=True)
class TablePatterns:
    """Shell patterns (`*`, `?`, `[…]`) over `database.table`; the first dot divides.

    Names are compared as the server spells them, case and all. `mysql`,
    `information_schema`, `performance_schema` and `sys` never match.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    def matches(self, table: TableName) -> bool:
        return self.reason(table) is None

    def reason(self, table: TableName) -> str | None:
        """Why a table is not captured, in a few words; None when it is."""
        if table.database.lower() in SYSTEM_DATABASES:
            return "a system database"
        if not any(pattern.fullmatch(str(table)) for pattern in self._included):
            return "no pattern matches"
        for text, pattern in zip(self.exclude, self._excluded, strict=True):
            if pattern.fullmatch(str(table)):
                return f"excluded by {text!r}"
        return None

    def may_match_database(self, database: str) -> bool:
        """Whether some table of this database, now or later, could be captured."""
        if database.lower() in SYSTEM_DATABASES:
            return False
        return any(
            re.fullmatch(translate(text.partition(".")[0]), database) for text in self.include
        )

    def idle(self, tables: Iterable[TableName]) -> list[str]:
        """Patterns of `include` that match none of `tables`."""
        known = [str(table) for table in tables if table.database.lower() not in SYSTEM_DATABASES]
        return [
            text
            for text, pattern in zip(self.include, self._included, strict=True)
            if not any(pattern.fullmatch(name) for name in known)
        ]

    @cached_property
    def _included(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(text)) for text in self.include)

    @cached_property
    def _excluded(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(text)) for text in self.exclude)
