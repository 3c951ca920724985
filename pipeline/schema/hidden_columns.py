"""The hidden columns of MySQL's functional indexes, and their places among a table's
columns.

MySQL stores each expression of an index in a hidden column. MySQL 8.0.15 logs these
columns in TABLE_MAP events and row images: a new hidden column comes after all columns
that the table has at that time, and later keeps this place. MySQL 9.7 does not log
them. Versions in between were not tested: the number of columns in a TABLE_MAP tells
how many are hidden, but not where they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from lockstep.pipeline.schema.model import ExpressionColumn, KeySchema, TableSchema

FIRST_WITH_HIDDEN: Final = 80013
LAST_WITH_PLACES: Final = 80015
FIRST_WITHOUT_HIDDEN: Final = 90704
"""Versions of MySQL: the first with functional indexes, the last in which the places of
their hidden columns are known, and the first that is known not to log these columns."""

_HIDDEN_NAME: Final = re.compile(r"[0-9a-f]{32}|!hidden!.*", re.DOTALL)

VisibleColumn = TypeVar("VisibleColumn")


def knows_hidden_places(version: int, *, mariadb: bool) -> bool:
    """Return whether a server of this version logs hidden columns at known places."""
    return not mariadb and FIRST_WITH_HIDDEN <= version <= LAST_WITH_PLACES


def may_be_hidden(name: str) -> bool:
    """Return whether a hidden column of some index may have this name."""
    return _HIDDEN_NAME.fullmatch(name) is not None


def is_hidden(name: str, keys: Iterable[KeySchema]) -> bool:
    """Return whether a name in a TABLE_MAP belongs to a hidden column of these keys.
    Its name is the MD5 of the index's name and the part's number in MySQL 8.0.15, and
    begins with !hidden! in later versions."""
    return name.startswith("!hidden!") or name in {
        hashlib.md5(f"{key}{part}".encode(), usedforsecurity=False).hexdigest()
        for key, part in expression_parts(keys)
    }


def expression_parts(keys: Iterable[KeySchema]) -> list[tuple[str, int]]:
    """Return the key parts that are expressions, and so have a hidden column: the key's
    name, and the part's number from 0."""
    return [
        (key.name, number)
        for key in keys
        for number, part in enumerate(key.parts)
        if part.column is None
    ]


def hidden_places(table: TableSchema) -> tuple[int, ...] | None:
    """Return the places of the table's hidden columns among all columns, from 0; None
    if they are unknown."""
    is_known = len(table.expression_columns) == len(expression_parts(table.keys))
    return tuple(sorted(column.place for column in table.expression_columns)) if is_known else None


def with_hidden_columns(
    columns: Iterable[VisibleColumn], hidden: Iterable[ExpressionColumn]
) -> list[VisibleColumn | ExpressionColumn]:
    """Return the visible and the hidden columns, in their order in the table."""
    merged: list[VisibleColumn | ExpressionColumn] = list(columns)
    for column in sorted(hidden, key=lambda column: column.place):
        merged.insert(column.place, column)
    return merged


def renumber_hidden(columns: Iterable[object]) -> tuple[ExpressionColumn, ...]:
    """Return the hidden columns among all columns of a table, each with its new
    place."""
    return tuple(
        replace(column, place=place)
        for place, column in enumerate(columns)
        if isinstance(column, ExpressionColumn)
    )


def add_hidden_columns(
    hidden: tuple[ExpressionColumn, ...], visible_count: int, keys: Iterable[KeySchema]
) -> tuple[ExpressionColumn, ...]:
    """Return the hidden columns after these keys are added to a table. `visible_count`:
    the number of its columns that are not hidden."""
    parts = enumerate(expression_parts(keys), visible_count + len(hidden))
    return *hidden, *(ExpressionColumn(place, key) for place, (key, _) in parts)


def remaining_hidden_columns(
    table: TableSchema, dropped_keys: Collection[str], new_key_names: Mapping[str, str]
) -> tuple[ExpressionColumn, ...] | None:
    """Return the hidden columns that stay when keys are dropped and renamed; None if
    they are unknown. They keep their places, and get the keys' new names.
    `dropped_keys`, `new_key_names`: names in lower case; `new_key_names` has new names
    by old ones."""
    if hidden_places(table) is None:
        return None
    dropped_parts = expression_parts(key for key in table.keys if key.name.lower() in dropped_keys)
    candidates = [
        column
        for column in table.expression_columns
        if column.key is None or column.key.lower() not in dropped_keys
    ]
    # The hidden columns that name a dropped key are no candidates. For each other part
    # of a dropped key, one of the columns that name no key is dropped; the log does not
    # say which one.
    nameless = [column for column in candidates if column.key is None]
    dropped_nameless_count = len(dropped_parts) - (len(table.expression_columns) - len(candidates))
    if 0 < dropped_nameless_count < len(nameless) and not _are_adjacent(table, nameless):
        return None
    return tuple(
        replace(column, key=column.key and new_key_names.get(column.key.lower(), column.key))
        for column in candidates
        if column not in nameless[:dropped_nameless_count]
    )


def _are_adjacent(table: TableSchema, columns: Sequence[ExpressionColumn]) -> bool:
    """Return whether no visible column is between these hidden columns. Then the
    visible columns keep their places whichever hidden one is dropped."""
    places = [column.place for column in columns]
    hidden = {column.place for column in table.expression_columns}
    return hidden.issuperset(range(min(places), max(places) + 1))


def hidden_from_ordinals(
    ordinals: Collection[int], keys: Collection[KeySchema]
) -> tuple[ExpressionColumn, ...]:
    """Return the hidden columns of a table; an empty tuple if their number does not fit
    the keys. `ordinals`: the ordinal positions, from 1, of the visible columns in
    `information_schema`, which skips the positions of hidden columns."""
    parts = expression_parts(keys)
    last = max(ordinals, default=0)
    places = [place - 1 for place in range(1, last + 1) if place not in ordinals]
    if len(places) > len(parts):
        return ()
    # Hidden columns after the last visible one leave no gap in the positions.
    places += range(last, last + len(parts) - len(places))
    names = {key for key, _ in parts}
    name = names.pop() if len(names) == 1 else None
    return tuple(ExpressionColumn(place, name) for place in places)
