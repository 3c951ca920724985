"""The start rules of a source that has a cursor: going on, here or on another server.

Belongs here: which facts let it go on, and from where. Does not: an operator's choice
(`chosen`), which comes first.
"""

from __future__ import annotations

from pipeline.batch import Cursor
from pipeline.decisions import Continuity
from pipeline.places import (
    moment_text,
)
from pipeline.policies import OnPositionLost, OnSourceChanged
from pipeline.start import refusals
from pipeline.start.question import (
    Answer,
    Question,
    SetReading,
    Since,
    Start,
    StartRule,
    WitnessReading,
)


def history_rewritten(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or not asked.same_server:
        return None
    why = rewritten(asked, cursor)
    return refusals.rewritten(cursor, why) if why else None


def rewritten(asked: Question, cursor: Cursor) -> str | None:
    """In a few words why the server's log cannot be the one that was read; None if it can."""
    at, facts = cursor.position.at, asked.facts
    if asked.witness is WitnessReading.DIFFERENT:
        return "the event before the cursor is a different one"
    if facts.head.file.base != at.file.base:
        return f"its files are called {facts.head.file.base}.* now"
    if facts.head.file.number < at.file.number:
        return f"its newest file is {facts.head.file}"
    size = facts.size_of(at.file)
    if size is not None and at.offset > size:
        return f"{at.file} ends at {size}"
    missing = cursor.position.gtid_set.difference(asked.executed)
    if missing:
        return f"it never executed {missing.shortened()}, which its set had where reading ended"
    return None


def set_reused(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or not asked.by_gtid or asked.known is not SetReading.DIFFERENT:
        return None
    return refusals.set_reused(asked, cursor)


def set_unproven(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or not asked.by_gtid or asked.known is not SetReading.PURGED:
        return None
    read = cursor.position.gtid_set
    by_set = not asked.same_server or _file_is_gone(asked)
    if not by_set or not read.contains(asked.purged) or not asked.executed.contains(read):
        return None
    return refusals.set_unproven(asked, cursor)


def same_server(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or not asked.same_server or asked.witness is not WitnessReading.SAME:
        return None
    if not asked.facts.lists(cursor.position.at.file):
        return None
    reason = f"batch {cursor.batch} ended at {cursor.position}, and the log there is unchanged"
    return Start(StartRule.RESUME_SAME_SERVER, reason, cursor.position.at, predecessor=cursor.batch)


def _file_is_gone(asked: Question) -> bool:
    return (
        asked.cursor is not None
        and asked.same_server
        and not asked.facts.lists(asked.cursor.position.at.file)
    )


def after_purge(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or not _file_is_gone(asked) or not asked.by_gtid:
        return None
    if not cursor.position.gtid_set.contains(asked.purged):
        return None
    reason = (
        f"{cursor.position.at.file} is gone, but the server purged nothing that batch "
        f"{cursor.batch} and those before it had not read{_shown_by(asked)}"
    )
    return _after_set(StartRule.RESUME_AFTER_PURGE, reason, cursor)


def tables_read_again(asked: Question) -> Answer:
    """Behind what is purged the log goes on at its end, and every table is read from the source."""
    cursor = asked.cursor
    if cursor is None or asked.policies.on_position_lost is not OnPositionLost.RESNAPSHOT:
        return None
    if not _file_is_gone(asked) and not _purged_elsewhere(asked):
        return None
    reason = (
        f"the log after {cursor.position} is no longer on the server; by on_position_lost = "
        f"'resnapshot' every table is read from the source, and the log from {asked.facts.head} on"
    )
    return Start(
        StartRule.TABLES_READ_AGAIN,
        reason,
        asked.facts.head,
        follows=cursor.batch,
        continuity=Continuity.GAP,
    )


def _purged_elsewhere(asked: Question) -> bool:
    """Whether another server has the history that was read, but purged more of it."""
    if asked.cursor is None or asked.same_server or not asked.by_gtid:
        return False
    read = asked.cursor.position.gtid_set
    return asked.executed.contains(read) and not read.contains(asked.purged)


def position_purged(asked: Question) -> Answer:
    if asked.cursor is None or not _file_is_gone(asked):
        return None
    return refusals.purged(StartRule.POSITION_PURGED, asked, asked.cursor)


def other_server(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or asked.same_server or not asked.by_gtid:
        return None
    read = cursor.position.gtid_set
    if not asked.executed.contains(read) or not read.contains(asked.purged):
        return None
    reason = (
        f"server {asked.facts.server_uuid} executed everything that was read from "
        f"{cursor.position.server_uuid}, and purged nothing else{_shown_by(asked)}"
    )
    return _after_set(StartRule.RESUME_OTHER_SERVER, reason, cursor)


def diverged(asked: Question) -> Answer:
    cursor = asked.cursor
    if cursor is None or asked.same_server or not asked.by_gtid:
        return None
    missing = cursor.position.gtid_set.difference(asked.executed)
    return refusals.diverged(asked, cursor, missing) if missing else None


def purged_on_other_server(asked: Question) -> Answer:
    if asked.cursor is None or asked.same_server or not asked.by_gtid:
        return None
    return refusals.purged(StartRule.PURGED_ON_OTHER_SERVER, asked, asked.cursor)


def by_time(asked: Question) -> Answer:
    cursor, policies = asked.cursor, asked.policies
    if (
        cursor is None
        or asked.same_server
        or policies.on_source_changed is not OnSourceChanged.TIMESTAMP
    ):
        return None
    last = cursor.position.committed_at
    if last is None:
        return None
    moment = last - policies.fallback_interval
    back = f"{policies.fallback_interval.total_seconds():g} s before the last commit read"
    reason = (
        f"server {asked.facts.server_uuid} answers instead of {cursor.position.server_uuid}; "
        f"by on_source_changed = 'timestamp' the log is read again from {moment_text(moment)}, "
        f"{back}"
    )
    return Start(
        StartRule.SEARCH_BY_TIME,
        reason,
        Since(moment, known=last),
        follows=cursor.batch,
        continuity=Continuity.OVERLAP,
    )


def source_changed(asked: Question) -> Answer:
    if asked.cursor is None or asked.same_server:
        return None
    return refusals.source_changed(asked, asked.cursor)


def _shown_by(asked: Question) -> str:
    if asked.known is SetReading.SAME:
        return "; the last transactions read are the same in its log"
    return (
        "; by their GTIDs alone, because nothing else was recorded of the transactions read: "
        "`lockstep verify` compares the rows"
    )


def _after_set(rule: StartRule, reason: str, cursor: Cursor) -> Start:
    return Start(
        rule,
        reason,
        cursor.position.gtid_set,
        follows=cursor.batch,
        continuity=Continuity.CONTIGUOUS,
    )
