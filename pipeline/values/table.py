"""The name of a source table, its structure as the log describes it, and the
`database.table` patterns that choose tables.

The ledger keeps the patterns with which each batch (the part of the log that one run
captures) was captured. If no pattern matched a table for a time, the table has a hole:
its changes of that time were not read. So its rows must be read again when a pattern
matches the table again.

Not here: a column's Arrow type (`pipeline.schema.types`), reading a TABLE_MAP event
(`pipeline.binlog.rows.table_map`).
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from fnmatch import translate
from functools import cached_property
from typing import Final

from lockstep.pipeline.values.shown import printable


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A source table's full name, exactly as the server spells it."""

    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    def __format__(self, spec: str) -> str:
        """In an f-string, escape control characters; `str` returns the name itself."""
        return format(printable(str(self)), spec)

    @property
    def word(self) -> str:
        """The name as one word of a command, quoted if a shell would misread it."""
        name = f"{self}"
        return name if re.fullmatch(r"[\w.]+", name) else shlex.quote(name)


def quoted(name: str) -> str:
    """Return an identifier as MySQL's statements take it, in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted_table(table: TableName) -> str:
    return f"{quoted(table.database)}.{quoted(table.name)}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column as the log describes it.

    `type` is a name of `schema.types.FAMILIES` ("int", "varchar", "datetime", …).
    `length` depends on the type: the largest number of bytes (CHAR, VARCHAR, BINARY,
    VARBINARY), bits (BIT), fractional digits (temporal types), the bytes of a value
    (ENUM, SET), or the bytes of the length that precedes a value (TEXT, BLOB, JSON,
    GEOMETRY, VECTOR). `charset` is MySQL's character set name, "binary" for byte
    strings, None elsewhere.
    """

    name: str
    type: str
    nullable: bool = True
    unsigned: bool = False
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    charset: str | None = None
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableStructure:
    """A table's columns in the order of its row images, and the column names of its
    primary key."""

    name: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with any part of the structure except its name."""
        text = json.dumps(
            [[asdict(column) for column in self.columns], self.primary_key],
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


# -- the patterns that choose tables ---------------------------------------------------

SYSTEM_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
"""Databases that are never captured, whatever the patterns are."""

_HELPER: Final = re.compile(
    r"_.+_(?:gho|ghc|ghk|del|new|old|chkpnt)"
    r"|_.+_old_\d{8}_\d{6}"
    r"|_spirit_(?:checkpoint|sentinel)",
    re.DOTALL,
)


def is_helper(table: TableName) -> bool:
    """Return whether the table's name is one that a tool for online schema changes
    gives to its helper tables. Only the name decides, so the answer is the same at
    every position of the log.

    gh-ost 1.1.9 (go/base/context.go): `_t_gho`, `_t_ghc`, `_t_ghk`, `_t_del`,
    `_t_<moment>_del`, `_t_rev_del`. spirit 0.16 (pkg/utils/tablename.go,
    pkg/sentinel/sentinel.go): `_t_new`, `_t_old`, `_t_old_<moment>`, `_t_chkpnt`,
    `_spirit_checkpoint`, `_spirit_sentinel`. pt-online-schema-change 3.2
    (`create_new_table`, `swap_tables`): `_t_new` and `_t_old`, with up to ten more `_`
    at the beginning if the name is taken. It cuts names off after 64 characters, so the
    helper of a table whose name has 60 or more is not recognised.
    """
    return _HELPER.fullmatch(table.name) is not None


@dataclass(frozen=True)
class TablePatterns:
    """Shell patterns (`*`, `?`, `[…]`) over `database.table`; the first dot divides.

    Names are compared as the server spells them, including case. `mysql`,
    `information_schema`, `performance_schema` and `sys` never match. A helper table of
    an online schema change is only matched by a pattern whose table part begins with
    `_`: `shop._orders_old` and `shop._*` match it, `shop.*` does not.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    def matches(self, table: TableName) -> bool:
        return self.exclusion_reason(table) is None

    def exclusion_reason(self, table: TableName) -> str | None:
        """Return why a table is not captured, or None if it is."""
        if table.database.lower() in SYSTEM_DATABASES:
            return "a system database"
        matching = [
            pattern
            for pattern, regex in zip(self.include, self._included, strict=True)
            if regex.fullmatch(str(table))
        ]
        if not matching:
            return "no pattern matches"
        if is_helper(table) and not any(map(_asks_for_helpers, matching)):
            return "a helper table of online schema changes; only a pattern such as *._* matches it"
        for pattern, regex in zip(self.exclude, self._excluded, strict=True):
            if regex.fullmatch(str(table)):
                return f"excluded by {pattern!r}"
        return None

    def unmatched_patterns(self, tables: Collection[TableName]) -> list[str]:
        """Return the patterns of `include` that match none of `tables`. Patterns for
        helper tables are left out if they have a wildcard, because those tables come
        and go."""
        return [
            pattern
            for pattern in self.include
            if not (_asks_for_helpers(pattern) and has_wildcard(pattern))
            and not any(map(TablePatterns((pattern,)).matches, tables))
        ]

    def unmatched_exclusions(self, tables: Collection[TableName]) -> list[str]:
        """Return the names in `exclude` that none of `tables` has. Patterns with a
        wildcard and names of helper tables are left out, because they may match a later
        table."""
        return [
            pattern
            for pattern, regex in zip(self.exclude, self._excluded, strict=True)
            if not (_asks_for_helpers(pattern) or has_wildcard(pattern))
            and not any(regex.fullmatch(str(table)) for table in tables)
        ]

    @cached_property
    def _included(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(pattern)) for pattern in self.include)

    @cached_property
    def _excluded(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(pattern)) for pattern in self.exclude)


@dataclass(frozen=True)
class StatementPatterns:
    """Shell patterns over `database.table` for tables whose statements are passed over.
    They also match tables of system databases, and `%` matches any characters, as in a
    GRANT."""

    texts: tuple[str, ...] = ()

    def matches(self, table: TableName) -> bool:
        return any(regex.fullmatch(str(table)) for regex in self._regexes)

    @cached_property
    def _regexes(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(translate(text.replace("%", "*"))) for text in self.texts)


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern may match several names."""
    return not set("*?[").isdisjoint(pattern)


def _asks_for_helpers(pattern: str) -> bool:
    return pattern.partition(".")[2].startswith("_")


@dataclass(frozen=True, slots=True)
class CaptureScope:
    """The patterns with which a batch and the batches after it were captured, up to the
    next scope. `start` is the position from which the log is read with these patterns:
    the start of the batch, or its end if tables catch up in it."""

    batch: int
    start: str
    patterns: TablePatterns


def patterns_of(scopes: Sequence[CaptureScope], batch: int) -> TablePatterns | None:
    """Return the patterns with which a batch was captured; None if no scope begins at
    it or before it. Scopes ascend."""
    patterns = [scope.patterns for scope in scopes if scope.batch <= batch]
    return patterns[-1] if patterns else None


@dataclass(frozen=True, slots=True)
class CapturedRange:
    """A range of batches that were captured with the same patterns. `last_batch` is the
    id of its last batch, `end` the position at which the next range starts."""

    last_batch: int
    end: str
    patterns: TablePatterns


def ranges_before(scopes: Sequence[CaptureScope], batch: int, start: str) -> list[CapturedRange]:
    """Return the ranges before `batch`, which starts at `start`. Scopes and ranges
    ascend."""
    earlier_scopes = [scope for scope in scopes if scope.batch < batch]
    starts = [*((scope.batch, scope.start) for scope in earlier_scopes), (batch, start)]
    return [
        CapturedRange(next_batch - 1, next_start, scope.patterns)
        for scope, (next_batch, next_start) in zip(earlier_scopes, starts[1:], strict=True)
    ]


def end_of_hole(
    table: TableName, first_batch: int | None, ranges: Sequence[CapturedRange]
) -> str | None:
    """Return the end of the last range in which the table's changes were not read, or
    None. `first_batch`: the first batch that has the table; earlier ranges do not
    count. None if no batch has it: all ranges count, because the table may have had
    rows in any of them."""
    missed_ends = [
        captured.end
        for captured in ranges
        if not captured.patterns.matches(table)
        and (first_batch is None or first_batch <= captured.last_batch)
    ]
    return missed_ends[-1] if missed_ends else None
