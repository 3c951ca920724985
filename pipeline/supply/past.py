"""The rule that decides where the past begins of a table that is captured late: as early as the log
can be decoded.

Row events do not name columns, so rows are decoded by the structure in a CREATE TABLE that is
logged, or by the structure that the server has today. The latter was the same at an earlier place
only if no statement after that place may have changed it:

| the log has, of the table | the past begins |
|---|---|
| nothing but rows | where the log begins |
| its CREATE TABLE | at that statement, with its structure; later ALTERs are followed |
| a statement that leaves rows or structure unknown; a change that is not logged | after it |

If several apply, the last one counts. A past that begins with the CREATE TABLE is whole: all rows
are in the log. In any other case the table has rows already, which only MySQL has. To begin later
is always safe, to begin earlier never.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.schema.consequences import Action, Consequence
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.values.position import Coordinates

_FOLLOWED: Final = (Action.NOTHING, Action.FOLLOW, Action.EMPTY)
"""Consequences of a statement after which a table's rows and structure are still known."""


@dataclass(frozen=True, slots=True)
class Past:
    """The part of a table's history that the log has: every change after `begins`. `whole`: the
    table was empty there. `why`: why it does not begin earlier. `reads_from`: the place from which
    the log is read, which is before `begins` if XA transactions are open there: their rows count
    from their commit."""

    begins: Coordinates
    why: str
    whole: bool
    reads_from: Coordinates

    @classmethod
    def after(cls, place: Coordinates, why: str) -> Past:
        """Return the past of a table that had rows at this place already."""
        return cls(place, why, whole=False, reads_from=place)


def after_statement(past: Past, consequence: Consequence, logged: LoggedStatement) -> Past:
    """Return the past after a statement that had this consequence for the table."""
    if consequence.action is Action.CREATE:
        why = "its CREATE TABLE is logged there"
        return Past(logged.begin, why, whole=True, reads_from=logged.begin)
    if consequence.action in _FOLLOWED:
        return past
    why = f"its rows before the statement that ends there cannot be decoded: {consequence.reason}"
    return Past.after(logged.end, why)
