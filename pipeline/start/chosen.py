"""The start rules of an operator's choice: `lockstep start-at`.

Belongs here: whether a chosen place can be begun at, and what lies between it and the
cursor. Does not: finding the place (`pipeline.runs.find_place`).
"""

from __future__ import annotations

from pipeline.batch import Cursor
from pipeline.decisions import Continuity
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates
from pipeline.start import refusals
from pipeline.start.question import (
    Answer,
    Question,
    ReachedPlace,
    SetReading,
    Start,
    StartRule,
    WitnessReading,
)
from pipeline.start.resumed import rewritten


def unreachable(asked: Question) -> Answer:
    if asked.override is None or isinstance(asked.reached, ReachedPlace):
        return None
    return refusals.chosen_unreachable(asked.override, asked.reached)


def behind(asked: Question) -> Answer:
    if asked.override is None or not isinstance(asked.reached, ReachedPlace):
        return None
    if asked.cursor is None or _between(asked, asked.cursor, asked.reached) is not None:
        return None
    return refusals.chosen_behind(asked, asked.override, asked.cursor)


def choose(asked: Question) -> Answer:
    choice, reached = asked.override, asked.reached
    if choice is None or not isinstance(reached, ReachedPlace):
        return None
    reason = f"{choice.author} chose {choice.place}: {choice.reason}"
    cursor = asked.cursor
    if cursor is None:
        return Start(StartRule.CHOSEN_START, reason, reached.where, override=choice.id)
    return Start(
        StartRule.CHOSEN_START,
        reason,
        reached.where,
        follows=cursor.batch,
        continuity=_between(asked, cursor, reached),
        override=choice.id,
    )


def _between(asked: Question, cursor: Cursor, reached: ReachedPlace) -> Continuity | None:
    """What lies between a cursor and a chosen place; None if the place is behind it. What
    cannot be shown to be contiguous is a gap: in a history that was rewritten the same
    GTIDs may name other transactions."""
    place, at = reached.where, cursor.position.at
    known = asked.same_server and asked.witness is WitnessReading.SAME
    if known and isinstance(place, Coordinates) and place.file.base == at.file.base:
        if place < at:
            return None
        return Continuity.CONTIGUOUS if place == at else Continuity.GAP
    if asked.same_server and rewritten(asked, cursor):
        return Continuity.GAP
    if asked.known is SetReading.DIFFERENT:
        return Continuity.GAP
    there, read = reached.gtid_set, cursor.position.gtid_set
    if not asked.by_gtid or not asked.executed.contains(read):
        return Continuity.GAP
    if there == read:
        return Continuity.CONTIGUOUS
    # Whatever a chosen set lacks is read again.
    behind = not there.contains(read) if isinstance(place, GtidSet) else read.contains(there)
    return None if behind else Continuity.GAP
