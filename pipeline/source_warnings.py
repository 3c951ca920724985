"""What the source warns of while rows are read from it: known, and harmless or not.

Belongs here: the table of warnings. Does not: asking for them (`resources.mysql.warnings`).

A value may be changed on its way to the reader by a limit of the session or by a conversion,
with a warning and no error. A warning that is in neither table stands for one of those. The
harmless ones come from an expression of the table itself, a generated column's mostly: what it
gives is what the source shows to everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.errors import TableError
from pipeline.server_errors import told
from pipeline.table import TableName

KEPT: Final = 65_535
"""So many warnings a session keeps at most (MySQL manual, "max_error_count"), and so many the
protocol counts: of more nobody knows what they are."""

HARMLESS: Final = {
    1003: "a note, of a statement",
    1264: "a generated column's value lies outside its type: the source shows the nearest",
    1265: "a generated column's value was cut to its type: the source shows it so",
    1287: "something deprecated is used",
    1292: "a generated column's expression converts a text that is no such value",
    1365: "a generated column's expression divides by zero: the source shows NULL",
    1366: "a generated column's expression converts a text that is no such value",
    1411: "a generated column's expression reads a text that is no such date",
    1441: "a generated column's date lies outside what there is: the source shows NULL",
    1681: "something deprecated is used",
    1690: "a generated column's value lies outside its type: the source shows the nearest",
    1916: "a generated column's expression converts a text that is no such value (MariaDB)",
    1918: "a generated column's expression converts a text that is no such value (MariaDB)",
    3719: "utf8 is an old name of utf8mb3",
    3778: "the collation is deprecated",
}

LIMITS: Final = {
    1260: "raise group_concat_max_len",
    1301: "raise max_allowed_packet",
    4164: "raise max_allowed_packet",
}
"""Values that a server's limit made empty, short or NULL, and what helps."""


@dataclass(frozen=True, slots=True)
class SourceWarning:
    """A warning as a server shows it; `level`: Note, Warning or Error."""

    level: str
    number: int
    text: str


def harmless(warning: SourceWarning) -> bool:
    return warning.level.lower() == "note" or warning.number in HARMLESS


def require_harmless(
    table: TableName,
    count: int,
    shown: Sequence[SourceWarning],
    names: Collection[str] = (),
) -> None:
    """TableError where some of a reading's `count` warnings may stand for values that are not
    the table's. `shown`: those that the server kept; `names`: what a message may quote."""
    for warning in shown:
        if not harmless(warning):
            raise TableError(
                f"the source warned while it was read: {told(warning.number, warning.text, names)}",
                hint=_cure(table, warning.number),
            )
    if count > len(shown) or count >= KEPT:
        raise TableError(
            f"the source warned {count} times while it was read, and showed {len(shown)} of them",
            hint=f"raise max_error_count to {KEPT} at the server, then "
            f"`lockstep reload {table} --reason …` reads it again and sees more of them",
        )


def _cure(table: TableName, number: int) -> str:
    again = f"then `lockstep reload {table} --reason …` reads it again"
    if number in LIMITS:
        return f"{LIMITS[number]} at the server, {again}"
    return f"fix what it warns of at the source, {again}"
