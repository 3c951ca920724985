"""Decides where the past of a table begins if the table is captured late: as early as
its rows in the log can be decoded. The past is the part of its history that the log
has.

Row events do not name columns, so rows are decoded by the structure in a logged CREATE
TABLE, or by the structure that the server has today. Today's structure is valid only
after the last statement that may have changed it:

| the log has, of the table | the past begins |
|---|---|
| nothing but rows | where the log begins |
| its CREATE TABLE | at that statement, with its structure; later ALTERs are followed |
| a statement that leaves rows or structure unknown; a change that is not logged | after it |

If several apply, the last one counts. A past that begins with the CREATE TABLE is
whole: the log has all rows. Otherwise the table has older rows, which only MySQL has.
Beginning later than possible is always safe, beginning earlier never.
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
    """The part of a table's history that the log has: every change after `begins`.
    `reason`: why the past does not begin earlier. `is_whole`: the table was empty at
    `begins`. `read_from`: the place from which the log is read. It lies before `begins`
    if XA transactions are open at `begins`, because their rows become visible with
    their commit."""

    begins: Coordinates
    reason: str
    is_whole: bool
    read_from: Coordinates

    @classmethod
    def after(cls, place: Coordinates, why: str) -> Past:
        """Return the past of a table that already had rows at this place."""
        return cls(place, why, is_whole=False, read_from=place)


def after_statement(past: Past, consequence: Consequence, logged: LoggedStatement) -> Past:
    """Return the past after one more statement, which had this consequence for the
    table."""
    if consequence.action is Action.CREATE:
        why = "its CREATE TABLE is logged there"
        return Past(logged.begin, why, is_whole=True, read_from=logged.begin)
    if consequence.action in _FOLLOWED:
        return past
    why = f"its rows before the statement that ends there cannot be decoded: {consequence.reason}"
    return Past.after(logged.end, why)
