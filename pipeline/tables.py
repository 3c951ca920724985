"""Which tables of a source are captured: `database.table` patterns, and which tables those of
earlier batches left out: a hole in what the lake could know.

A table that is captured again after a time outside the patterns must not go on as if
nothing had happened there. The ledger keeps what each batch was captured with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from typing import Final

from pipeline.table import TableName

SYSTEM_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
"""Never captured, whatever a pattern says."""

_HELPER: Final = re.compile(
    r"_.+_(?:gho|ghc|ghk|del|new|old|chkpnt)"  # also with a moment or `rev` before `del`
    r"|_.+_old_\d{8}_\d{6}"
    r"|_spirit_(?:checkpoint|sentinel)",
    re.DOTALL,
)


def is_helper(table: TableName) -> bool:
    """Whether a table has the name of one that a tool for online schema changes makes beside
    the table it changes. The name alone decides, so a table is one at every place of the log.

    gh-ost 1.1.9 (go/base/context.go): `_t_gho`, `_t_ghc`, `_t_ghk`, `_t_del`,
    `_t_<moment>_del`, `_t_rev_del`. spirit 0.16 (pkg/utils/tablename.go,
    pkg/sentinel/sentinel.go): `_t_new`, `_t_old`, `_t_old_<moment>`, `_t_chkpnt`,
    `_spirit_checkpoint`, `_spirit_sentinel`. pt-online-schema-change 3.2
    (`create_new_table`, `swap_tables`): `_t_new` and `_t_old`, with up to ten `_` in front
    where the name is taken. It cuts names off behind 64 characters: a helper of a table
    whose name has 60 or more is not known by its name.
    """
    return _HELPER.fullmatch(table.name) is not None


@dataclass(frozen=True)
class TablePatterns:
    """Shell patterns (`*`, `?`, `[…]`) over `database.table`; the first dot divides.

    Names are compared as the server spells them, case and all. `mysql`,
    `information_schema`, `performance_schema` and `sys` never match. A helper table of an
    online schema change matches only a pattern whose table begins with `_`, written out: that
    asks for it (`shop._orders_old`, `shop._*`), `shop.*` does not.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    def matches(self, table: TableName) -> bool:
        return self.reason(table) is None

    def reason(self, table: TableName) -> str | None:
        """Why a table is not captured, in a few words; None when it is."""
        if table.database.lower() in SYSTEM_DATABASES:
            return "a system database"
        matching = [
            text
            for text, pattern in zip(self.include, self._included, strict=True)
            if pattern.fullmatch(str(table))
        ]
        if not matching:
            return "no pattern matches"
        if is_helper(table) and not any(map(_asks_for_helpers, matching)):
            return "a helper table of online schema changes; a pattern may name it"
        for text, pattern in zip(self.exclude, self._excluded, strict=True):
            if pattern.fullmatch(str(table)):
                return f"excluded by {text!r}"
        return None

    def idle(self, tables: Iterable[TableName]) -> list[str]:
        """Patterns of `include` that match none of `tables`, but for those of helper tables, which
        come and go."""
        known = [table for table in tables if table.database.lower() not in SYSTEM_DATABASES]
        return [
            text
            for text, pattern in zip(self.include, self._included, strict=True)
            if not (_asks_for_helpers(text) and set("*?") & set(text))
            and not any(
                pattern.fullmatch(str(table))
                for table in known
                if _asks_for_helpers(text) or not is_helper(table)
            )
        ]

    @cached_property
    def _included(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(text)) for text in self.include)

    @cached_property
    def _excluded(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(text)) for text in self.exclude)


@dataclass(frozen=True)
class NamePatterns:
    """Shell patterns over `database.table`, of any database; `%` stands for any characters too, as
    in a GRANT."""

    texts: tuple[str, ...] = ()

    def matches(self, table: TableName) -> bool:
        return any(pattern.fullmatch(str(table)) for pattern in self._compiled)

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(text.replace("%", "*"))) for text in self.texts)


def _asks_for_helpers(pattern: str) -> bool:
    return pattern.partition(".")[2].startswith("_")


@dataclass(frozen=True, slots=True)
class CaptureScope:
    """The patterns that a live batch was captured with, and those behind it up to the next
    scope; `begins` is the batch's start in the log."""

    batch: int
    begins: str
    patterns: TablePatterns


@dataclass(frozen=True, slots=True)
class PastRange:
    """Batches up to `last` that were read with these patterns; `end` is the place in the
    log where the next range begins."""

    last: int
    end: str
    patterns: TablePatterns


def past_ranges(scopes: Sequence[CaptureScope], batch: int, place: str) -> list[PastRange]:
    """Ranges read before `batch`, which begins at `place`; both oldest first."""
    before = [scope for scope in scopes if scope.batch < batch]
    ends = [*((scope.batch, scope.begins) for scope in before[1:]), (batch, place)]
    return [
        PastRange(following - 1, begins, scope.patterns)
        for scope, (following, begins) in zip(before, ends, strict=bool(before))
    ]


def hole(table: TableName, first_batch: int | None, past: Sequence[PastRange]) -> str | None:
    """The end of the last earlier range in which the table's changes were not read;
    None where there is none. Ranges that ended before the batch in which the table was
    first seen count only if it was never seen: nobody knows whether it had rows."""
    missed = [
        one.end
        for one in past
        if not one.patterns.matches(table) and (first_batch is None or first_batch <= one.last)
    ]
    return missed[-1] if missed else None
