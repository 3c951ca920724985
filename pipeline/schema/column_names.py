"""Names of columns, as Delta and Spark take them: which two are one, which need another spelling.

Not here: a changelog's own columns (`pipeline.changes.layout`), when a mirror gets
column mapping (`pipeline.changes.evolution`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pipeline.errors import TableError

REFUSED: Final = " ,;{}()\n\t="
"""Characters that no column's name may have in a Delta table without column mapping (Delta's
`SchemaUtils.checkFieldNames`)."""

READERS: Final = frozenset({"_tmp_metadata_row_index", "__delta_internal_is_row_deleted"})
"""Columns that Spark and Delta add to what they read from a file, and know by these names, under
column mapping too (`DeltaColumnMapping.DELTA_INTERNAL_COLUMNS`): no table of Delta's can have a
column of its own that is called so."""

MERGES: Final = frozenset(
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
"""Columns, `folded`, that Delta's MERGE adds to those of the table and of its source, and asks for
by name (`MergeIntoCommandBase`, `DeletionVectorBitmapGenerator`): a table with one of these is
written by other means."""

_REFUSED: Final = frozenset(REFUSED)
_CODES: Final = "|".join(f"{ord(character):02X}" for character in f"{REFUSED}%_")
_ESCAPED: Final = re.compile(f"[{REFUSED}]|%(?={_CODES})", re.IGNORECASE)
_HIDDEN: Final = re.compile("%(?:25)*5F(.*)", re.IGNORECASE | re.DOTALL)
_UNESCAPED: Final = re.compile(f"%({_CODES})")


def folded(name: str) -> str:
    """Equal for two names that are one column to Spark or to Delta.

    Spark's resolver compares with Java's `equalsIgnoreCase`: each character's upper case, and of
    that the lower case, so that both small sigmas of Greek are one, the long s and s, the dotless
    i and i, the micro sign and the letter mu. Delta compares by `toLowerCase(Locale.ROOT)`, to
    which ß and its capital are one. MySQL tells all of these apart.
    """
    if name.isascii():
        return name.lower()
    each = "".join(map(_each, name.lower()))
    # A capital I with a dot is, in lower case, an i and a dot of its own to Delta, an i to Spark.
    return each.replace("i\u0307", "i")


def _each(character: str) -> str:
    upper = character.upper()
    lower = (upper if len(upper) == 1 else character).lower()
    return lower if len(lower) == 1 else character


def is_refused(name: str) -> bool:
    """Whether it has one of `REFUSED`: a table holds it by column mapping, or `escaped`."""
    return not _REFUSED.isdisjoint(name)


def hidden(name: str) -> str:
    """The name, escaped if it is one of `READERS` or looks like one that was: what a mirror calls
    the column."""
    return f"%25{name[1:]}" if _is_hidden(name) else _unread(name)


def shown(name: str) -> str:
    return chr(int(name[1:3], 16)) + name[3:] if _is_hidden(name) else name


def _unread(name: str) -> str:
    return f"%5F{name[1:]}" if folded(name) in READERS else name


def _is_hidden(name: str) -> bool:
    found = _HIDDEN.match(name)
    return found is not None and folded(f"_{found[1]}") in READERS


def merges(names: Iterable[str]) -> bool:
    """Whether Delta's MERGE can tell these columns from its own."""
    return not any(folded(name) in MERGES for name in names)


def escaped(name: str) -> str:
    """What a changelog, and a mirror for every reader, calls the column: `%XX` for each of
    `REFUSED`, for a `%` that would be read as one of those, and for the first character of a name
    of `READERS`. Different names stay different, also when they are `folded`."""
    return _unread(_ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name))


def unescaped(name: str) -> str:
    return _UNESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def refuse_twins(names: Iterable[str]) -> None:
    """`TableError` for two columns that are one to the lake."""
    there: dict[str, str] = {}
    for name in names:
        other = there.setdefault(folded(name), name)
        if other is not name:
            raise TableError(
                f"columns {other!r} and {name!r} have one name to Delta and Spark, which do not "
                "tell upper from lower case",
                hint="rename one of them at the source, or exclude the table",
            )
