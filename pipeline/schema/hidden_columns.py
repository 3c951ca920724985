"""The hidden columns of MySQL's functional indexes, and their places in a table.

MySQL stores each expression of an index in a hidden column. MySQL 8.0.15 has these columns in its
table maps and row images: a new one comes after all columns that the table has then, and keeps its
place among them. MySQL 9.7 leaves them out. Versions in between were not tested: the number of
columns in a table map tells whether hidden ones are among them, but not where.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from lockstep.pipeline.schema.model import HiddenColumn, KeySchema, TableSchema

FIRST, LAST_PLACED, FIRST_WITHOUT = 80013, 80015, 90704
"""The first version with functional indexes, the last version in which the places of their columns
are known, and the first version known to leave these columns out of the log."""

_NAMES: Final = re.compile(r"[0-9a-f]{32}|!hidden!.*", re.DOTALL)

Column = TypeVar("Column")


def places_known(version: int, *, mariadb: bool) -> bool:
    """Return whether a server of that version logs hidden columns at known places."""
    return not mariadb and FIRST <= version <= LAST_PLACED


def may_be_hidden(name: str) -> bool:
    """Return whether a hidden column may have that name, whatever its index is called."""
    return _NAMES.fullmatch(name) is not None


def is_hidden(name: str, keys: Iterable[KeySchema]) -> bool:
    """Return whether a name in a table map is that of a hidden column of these keys. MySQL 8.0.15
    names it by the MD5 of the index's name and the part's number, later versions by a prefix."""
    return name.startswith("!hidden!") or name in {
        hashlib.md5(f"{key}{part}".encode(), usedforsecurity=False).hexdigest()
        for key, part in expressions(keys)
    }


def expressions(keys: Iterable[KeySchema]) -> list[tuple[str, int]]:
    """Return the parts of keys that have a hidden column: the key's name, and the part's number
    from 0."""
    return [
        (key.name, number)
        for key in keys
        for number, part in enumerate(key.parts)
        if part.column is None
    ]


def hidden_places(table: TableSchema) -> tuple[int, ...] | None:
    """Return the places of the table's hidden columns among all columns, from 0; None if they are
    unknown."""
    known = len(table.hidden) == len(expressions(table.keys))
    return tuple(sorted(column.place for column in table.hidden)) if known else None


def with_hidden(
    columns: Iterable[Column], hidden: Iterable[HiddenColumn]
) -> list[Column | HiddenColumn]:
    """Return all columns in their order, hidden ones among them."""
    merged: list[Column | HiddenColumn] = list(columns)
    for column in sorted(hidden, key=lambda column: column.place):
        merged.insert(column.place, column)
    return merged


def numbered(columns: Iterable[object]) -> tuple[HiddenColumn, ...]:
    """Return the hidden columns among these, each with its place here."""
    return tuple(
        replace(column, place=place)
        for place, column in enumerate(columns)
        if isinstance(column, HiddenColumn)
    )


def with_new(
    hidden: tuple[HiddenColumn, ...], visible: int, keys: Iterable[KeySchema]
) -> tuple[HiddenColumn, ...]:
    """Return the hidden columns after these keys are added to a table with `visible` columns that
    are not hidden."""
    end = visible + len(hidden)
    new = (HiddenColumn(end + at, key) for at, (key, _) in enumerate(expressions(keys)))
    return *hidden, *new


def stay_hidden(
    table: TableSchema, dropped: Collection[str], renamed: Mapping[str, str]
) -> tuple[HiddenColumn, ...] | None:
    """Return the hidden columns that stay when keys are dropped and renamed (given by names in
    lower case), in their old places and under the keys' new names; None if this is unknown."""
    if hidden_places(table) is None:
        return None
    dropped_parts = expressions(key for key in table.keys if key.name.lower() in dropped)
    candidates = [
        column for column in table.hidden if column.key is None or column.key.lower() not in dropped
    ]
    # Columns that may belong to several keys: as many of them go as named ones do not account for.
    nameless = [column for column in candidates if column.key is None]
    missing = len(dropped_parts) - (len(table.hidden) - len(candidates))
    if 0 < missing < len(nameless) and not _side_by_side(table, nameless):
        return None
    return tuple(
        replace(column, key=column.key and renamed.get(column.key.lower(), column.key))
        for column in candidates
        if column not in nameless[:missing]
    )


def _side_by_side(table: TableSchema, columns: Sequence[HiddenColumn]) -> bool:
    """Return whether no visible column is between these. Then it does not matter which of them is
    dropped."""
    places = [column.place for column in columns]
    hidden = {column.place for column in table.hidden}
    return hidden.issuperset(range(min(places), max(places) + 1))


def shown_places(
    ordinals: Collection[int], keys: Collection[KeySchema]
) -> tuple[HiddenColumn, ...]:
    """Return the hidden columns of a table whose visible columns have these ordinal positions, from
    1: `information_schema` skips the positions of hidden ones. Empty if they do not fit the keys.
    """
    parts = expressions(keys)
    last = max(ordinals, default=0)
    places = [place - 1 for place in range(1, last + 1) if place not in ordinals]
    if len(places) > len(parts):
        return ()
    places += range(last, last + len(parts) - len(places))
    names = {key for key, _ in parts}
    name = names.pop() if len(names) == 1 else None
    return tuple(HiddenColumn(place, name) for place in places)
