"""Where the past of a table begins that is followed late: as early as the log can tell its rows.

The log has no structures, so rows are decoded by the structure that a CREATE TABLE in the log says,
or by the one that the server has today. The latter is the structure of then only as long as nothing
in between may have changed it:

| what the log has of the table | the past begins |
|---|---|
| nothing but rows | where the log begins |
| its CREATE TABLE | there, with the structure that it says; ALTERs after it are followed |
| a statement that leaves rows or structure unknown; a change that is not logged | after it |

Of several the last counts. A past that begins with the CREATE TABLE is whole: all rows are in the
log. Any other begins with some rows, which MySQL alone has. Later is always safe, earlier never.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeline.position import Coordinates
from pipeline.schema.consequences import Action, Consequence
from pipeline.schema.logged import LoggedStatement

_FOLLOWED: Final = (Action.NOTHING, Action.FOLLOW, Action.EMPTY)
"""What leaves a table's rows and structure known."""


@dataclass(frozen=True, slots=True)
class Past:
    """What the log has of a table: every change after `begins`. `whole`: the table was empty
    there. `why`: why it does not begin earlier. `reads_from`: from where the log is read: before
    `begins` if XA transactions are open there, whose rows count where they are committed."""

    begins: Coordinates
    why: str
    whole: bool
    reads_from: Coordinates

    @classmethod
    def after(cls, place: Coordinates, why: str) -> Past:
        """One of a table that had rows at this place already."""
        return cls(place, why, whole=False, reads_from=place)


def after_statement(past: Past, consequence: Consequence, logged: LoggedStatement) -> Past:
    """Return the past as of the end of a statement that meant this for the table."""
    if consequence.action is Action.CREATE:
        why = "its CREATE TABLE is logged there"
        return Past(logged.begin, why, whole=True, reads_from=logged.begin)
    if consequence.action in _FOLLOWED:
        return past
    why = f"what it was before the statement that ends there is not known: {consequence.reason}"
    return Past.after(logged.end, why)
