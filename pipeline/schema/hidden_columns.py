"""The columns that MySQL hides behind functional indexes, and where they stand in a table.

Not here: finding them in a table map (`pipeline.runs.capturing.image_decoder`).

MySQL computes each expression of an index in a hidden column. MySQL 8.0.15 has these columns in
its table maps and row images: a new one stands behind all columns that the table has then, and
keeps its place among them. MySQL 9.7 leaves them out. What the versions in between do was not
tried: the number of columns of a table map tells whether they are there, and where is not known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from pipeline.schema.model import HiddenColumn, KeySchema, TableSchema

FIRST, LAST_PLACED, FIRST_WITHOUT = 80013, 80015, 90704
"""The first version with functional indexes, the last one whose places are known, and the first
one that is known to leave their columns out of the log."""

_NAMES: Final = re.compile(r"[0-9a-f]{32}|!hidden!.*", re.DOTALL)

Column = TypeVar("Column")


def places_known(version: int, *, mariadb: bool) -> bool:
    """Return whether a server of that version places hidden columns as this module says."""
    return not mariadb and FIRST <= version <= LAST_PLACED


def may_be_hidden(name: str) -> bool:
    """Return whether a hidden column may have that name, whatever its index is called."""
    return _NAMES.fullmatch(name) is not None


def is_hidden(name: str, keys: Iterable[KeySchema]) -> bool:
    """Return whether the name in a table map is that of a hidden column of these keys: MySQL
    8.0.15 takes the MD5 of the index's name and the part's number, later versions a prefix."""
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
    """Return where the table's hidden columns stand among all, from 0; None if that is not
    known."""
    known = len(table.hidden) == len(expressions(table.keys))
    return tuple(sorted(column.place for column in table.hidden)) if known else None


def with_hidden(
    columns: Iterable[Column], hidden: Iterable[HiddenColumn]
) -> list[Column | HiddenColumn]:
    found: list[Column | HiddenColumn] = list(columns)
    for column in sorted(hidden, key=lambda column: column.place):
        found.insert(column.place, column)
    return found


def numbered(columns: Iterable[object]) -> tuple[HiddenColumn, ...]:
    return tuple(
        replace(column, place=place)
        for place, column in enumerate(columns)
        if isinstance(column, HiddenColumn)
    )


def appended(
    hidden: tuple[HiddenColumn, ...], visible: int, keys: Iterable[KeySchema]
) -> tuple[HiddenColumn, ...]:
    """Return the hidden columns of a table with so many visible ones after these keys are added."""
    end = visible + len(hidden)
    new = (HiddenColumn(end + at, key) for at, (key, _) in enumerate(expressions(keys)))
    return *hidden, *new


def kept(
    table: TableSchema, dropped: Collection[str], renamed: Mapping[str, str]
) -> tuple[HiddenColumn, ...] | None:
    """Return the hidden columns that stay when keys are dropped and renamed (by names in lower
    case), under their keys' new names and in their places of before; None if that is not known."""
    if hidden_places(table) is None:
        return None
    gone = expressions(key for key in table.keys if key.name.lower() in dropped)
    stay = [one for one in table.hidden if one.key is None or one.key.lower() not in dropped]
    nameless = [one for one in stay if one.key is None]
    missing = len(gone) - (len(table.hidden) - len(stay))
    if 0 < missing < len(nameless) and not _side_by_side(table, nameless):
        return None
    left = [one for one in stay if one not in nameless[:missing]]
    return tuple(
        one if one.key is None else replace(one, key=renamed.get(one.key.lower(), one.key))
        for one in left
    )


def _side_by_side(table: TableSchema, columns: Sequence[HiddenColumn]) -> bool:
    """Return whether no visible column stands between these: then it does not matter which of
    them goes."""
    places = [column.place for column in columns]
    hidden = {column.place for column in table.hidden}
    return hidden.issuperset(range(min(places), max(places) + 1))


def shown_places(
    ordinals: Collection[int], keys: Collection[KeySchema]
) -> tuple[HiddenColumn, ...]:
    """Return the hidden columns of a table whose visible ones stand at these places, counted from
    1: `information_schema` leaves out the places of hidden ones. None if they do not fit the keys.
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
