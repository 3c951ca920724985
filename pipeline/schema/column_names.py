"""Column names in Delta and Spark: which two names are one column, and how names that are refused
or reserved are spelled instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lockstep.pipeline.values.errors import TableError

_REFUSED: Final = " ,;{}()\n\t="
"""Characters that column names in a Delta table without column mapping may not have (Delta's
`SchemaUtils.checkFieldNames`)."""

READER_COLUMNS: Final = frozenset({"_tmp_metadata_row_index", "__delta_internal_is_row_deleted"})
"""Columns that Spark and Delta add to the rows of a file, under column mapping too
(`DeltaColumnMapping.DELTA_INTERNAL_COLUMNS`). No Delta table can have a column with such a
name."""

MERGE_COLUMNS: Final = frozenset(
    {
        "_row_id_",
        "_file_name_",
        "_source_row_present_",
        "_target_row_present_",
        "_row_dropped_",
        "_metadata",
        "deletionvectorid",
        "filepath",
        "rowindexcol",
    }
)
"""Columns, `folded`, that Delta's MERGE adds to the table's and the source's and looks up by name
(`MergeIntoCommandBase`, `DeletionVectorBitmapGenerator`): a table with one of these is written
without MERGE."""

_CODES: Final = "|".join(f"{ord(character):02X}" for character in f"{_REFUSED}%_")
_ESCAPED: Final = re.compile(f"[{_REFUSED}]|%(?={_CODES})", re.IGNORECASE)
_HIDDEN: Final = re.compile("%(?:25)*5F(.*)", re.IGNORECASE | re.DOTALL)
_UNESCAPED: Final = re.compile(f"%({_CODES})")


def folded(name: str) -> str:
    """Return a text that is equal for two names that are one column to Spark or to Delta.

    Spark's resolver compares with Java's `equalsIgnoreCase`, the lower case of each character's
    upper case. So these are equal: both small sigmas of Greek, the long s and s, the dotless i and
    i, the micro sign and the letter mu. Delta compares with `toLowerCase(Locale.ROOT)`, for which ß
    and its capital are equal. MySQL distinguishes all of these.
    """
    if name.isascii():
        return name.lower()
    lower = "".join(map(_folded_character, name.lower()))
    # The lower case of a capital I with a dot is an i and a combining dot to Delta, an i to Spark.
    return lower.replace("i\u0307", "i")


def _folded_character(character: str) -> str:
    upper = character.upper()
    lower = (upper if len(upper) == 1 else character).lower()
    return lower if len(lower) == 1 else character


def is_refused(name: str) -> bool:
    """Return whether Delta refuses the name without column mapping, so that it has to be
    `escaped`."""
    return not set(_REFUSED).isdisjoint(name)


def mirror_name(name: str) -> str:
    """Return the name of the column in a mirror: escaped if it is one of `READER_COLUMNS`, or looks
    like one that was escaped."""
    return f"%25{name[1:]}" if _is_hidden(name) else _unread(name)


def source_name(name: str) -> str:
    """Return the source's name of a mirror's column: the inverse of `mirror_name`."""
    return chr(int(name[1:3], 16)) + name[3:] if _is_hidden(name) else name


def _unread(name: str) -> str:
    return f"%5F{name[1:]}" if folded(name) in READER_COLUMNS else name


def _is_hidden(name: str) -> bool:
    match = _HIDDEN.match(name)
    return match is not None and folded(f"_{match[1]}") in READER_COLUMNS


def is_mergeable(names: Iterable[str]) -> bool:
    """Return whether Delta's MERGE can distinguish these columns from its own."""
    return not any(folded(name) in MERGE_COLUMNS for name in names)


def escaped(name: str) -> str:
    """Return the name of the column in a changelog, and in a mirror without column mapping: `%XX`
    stands for each refused character, for a `%` that would be read as an escape, and for the first
    character of a name in `READER_COLUMNS`. Different names stay different, also when `folded`."""
    return _unread(_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", name))


def unescaped(name: str) -> str:
    """Return the name that was `escaped`."""
    return _UNESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def refuse_twins(names: Iterable[str]) -> None:
    """Raise `TableError` if Delta or Spark take two of the columns for one."""
    by_folded: dict[str, str] = {}
    for name in names:
        other = by_folded.setdefault(folded(name), name)
        if other is not name:
            raise TableError(
                f"columns {other!r} and {name!r} have one name to Delta and Spark, which ignore "
                "case",
                hint="rename one of them at the source, or exclude the table",
            )
