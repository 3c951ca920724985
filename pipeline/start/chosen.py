"""The start rules of an operator's choice: `lockstep start-at`. Finding the place is
`pipeline.runs.find_place`."""

from __future__ import annotations

from pipeline.batch import Cursor
from pipeline.decisions import Continuity
from pipeline.errors import StartBehindCursor, StartUnreachable
from pipeline.gtid import GtidSet
from pipeline.places import AfterGtids
from pipeline.position import Coordinates
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
    choice, why = asked.override, asked.reached
    if choice is None or isinstance(why, ReachedPlace):
        return None
    because = f": {why.message}" if why else ""
    return StartUnreachable(
        f"{choice.place}, which {choice.author} chose, is not on the server{because}",
        hint=(f"{why.hint}; or " if why else "")
        + "choose another place: `lockstep start-at PLACE --reason …`",
    )


def behind(asked: Question) -> Answer:
    choice, reached, cursor = asked.override, asked.reached, asked.cursor
    if choice is None or cursor is None or not isinstance(reached, ReachedPlace):
        return None
    if _between(asked, cursor, reached) is not None:
        return None
    position = cursor.position
    read_here = asked.same_server and asked.witness is WitnessReading.SAME
    place = position if read_here else AfterGtids(position.gtid_set)
    return StartBehindCursor(
        f"{choice.place}, which {choice.author} chose, lies before {position}, up to which "
        "everything was read",
        hint="what was read cannot be read again yet; to go on from where the source is: "
        f"`lockstep start-at {place} --reason …`",
    )


def choose(asked: Question) -> Answer:
    choice, reached, cursor = asked.override, asked.reached, asked.cursor
    if choice is None or not isinstance(reached, ReachedPlace):
        return None
    return Start(
        StartRule.CHOSEN_START,
        f"{choice.author} chose {choice.place}: {choice.reason}",
        reached.where,
        follows=None if cursor is None else cursor.batch,
        continuity=None if cursor is None else _between(asked, cursor, reached),
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
