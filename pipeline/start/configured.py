"""The start rules of a source without a cursor: what lockstep.toml says.

Belongs here: which configured place can be begun at. Does not: finding it
(`pipeline.runs.find_place`).
"""

from __future__ import annotations

from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.gtid import GtidSet
from pipeline.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    Snapshot,
)
from pipeline.position import Coordinates
from pipeline.start import refusals
from pipeline.start.question import (
    Answer,
    Question,
    Since,
    Start,
    StartRule,
)


def _first_set(asked: Question) -> GtidSet | None:
    """The configured set, where a source has no cursor yet."""
    place = asked.configured
    return place.gtids if asked.cursor is None and isinstance(place, AfterGtids) else None


def set_purged(asked: Question) -> Answer:
    chosen = _first_set(asked)
    if chosen is None or chosen.contains(asked.purged):
        return None
    return refusals.set_purged(asked, chosen)


def set_diverged(asked: Question) -> Answer:
    chosen = _first_set(asked)
    if chosen is None or asked.executed.contains(chosen):
        return None
    return refusals.set_diverged(asked, chosen)


def after_set(asked: Question) -> Answer:
    chosen = _first_set(asked)
    if chosen is None:
        return None
    reason = "the configured start is a GTID set: everything after it is read"
    return Start(StartRule.CONFIGURED_SET, reason, chosen)


def unreachable(asked: Question) -> Answer:
    if asked.cursor is not None:
        return None
    match asked.configured:
        case AtCoordinates(at):
            size = asked.facts.size_of(at.file)
            if size is None or not FIRST_OFFSET <= at.offset <= size:
                return refusals.unreachable(asked, at.file, f"'{at}'")
        case InFile(file, _) as place:
            if not asked.facts.lists(file):
                return refusals.unreachable(asked, file, f"'{place}'")
        case Earliest() if not asked.facts.binlogs:
            return refusals.no_files()
        case _:
            pass
    return None


def coordinates(asked: Question) -> Answer:
    if asked.cursor is not None or not isinstance(asked.configured, AtCoordinates):
        return None
    reason = f"start = '{asked.configured}' is configured and on the server"
    return Start(StartRule.CONFIGURED_COORDINATES, reason, asked.configured.at)


def moment_in_file(asked: Question) -> Answer:
    place = asked.configured
    if asked.cursor is not None or not isinstance(place, InFile):
        return None
    reason = f"start = '{place}': the first transaction of that file at or after the moment"
    return Start(StartRule.CONFIGURED_MOMENT_IN_FILE, reason, Since(place.moment, place.file))


def moment(asked: Question) -> Answer:
    place = asked.configured
    if asked.cursor is not None or not isinstance(place, AtMoment):
        return None
    reason = f"start = '{place}': the first transaction committed at or after it"
    return Start(StartRule.CONFIGURED_MOMENT, reason, Since(place.moment))


def snapshot(asked: Question) -> Answer:
    if asked.cursor is not None or not isinstance(asked.configured, Snapshot):
        return None
    where, what = asked.facts.head, "its end"
    low = asked.loading
    if low is not None and low.offset <= (asked.facts.size_of(low.file) or 0):
        where, what = low, "where the first rows were read, by a run that did not end:"
    reason = f"start = 'snapshot': tables are read from the source, and the log from {what} {where}"
    return Start(StartRule.CONFIGURED_SNAPSHOT, f"{reason} on", where)


def earliest(asked: Question) -> Answer:
    if asked.cursor is not None or not isinstance(asked.configured, Earliest):
        return None
    at = Coordinates(asked.facts.binlogs[0].file, FIRST_OFFSET)
    reason = f"start = 'earliest': the oldest log file is {at.file}"
    return Start(StartRule.CONFIGURED_EARLIEST, reason, at)


def latest(asked: Question) -> Answer:
    if asked.cursor is not None or not isinstance(asked.configured, Latest):
        return None
    reason = f"start = 'latest': the log ends at {asked.facts.head}"
    return Start(StartRule.CONFIGURED_LATEST, reason, asked.facts.head)


def not_chosen(asked: Question) -> Answer:
    if asked.cursor is not None or asked.configured is not None:
        return None
    return refusals.not_chosen()


def no_rule(asked: Question) -> Answer:
    return refusals.no_rule(asked)
