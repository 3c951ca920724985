"""The start rules of a source that has a cursor: going on, here or on another server. Which
cursor a rule needs is in its row (`rules`)."""

from __future__ import annotations

from pipeline.batch import Cursor
from pipeline.decisions import Continuity
from pipeline.errors import (
    HistoryRewritten,
    HistoryUnproven,
    PositionPurged,
    SourceChanged,
    SourceDiverged,
)
from pipeline.places import AfterGtids, moment_text
from pipeline.policies import OnPositionLost, OnSourceChanged
from pipeline.snapshot.log_room import one_week
from pipeline.start.question import (
    Answer,
    Question,
    SetReading,
    Since,
    Start,
    StartRule,
    WitnessReading,
)

_ANEW = "`lockstep start-at earliest --reason …`"


def history_rewritten(asked: Question) -> Answer:
    cursor = asked.known_cursor
    why = rewritten(asked, cursor)
    if why is None:
        return None
    return HistoryRewritten(
        f"the log at the cursor {cursor.position} is not the log that was read: {why}",
        hint="the server was reset, restored or cloned; what it holds now does not follow "
        "on from the lake. Begin again with a new source name and lake folder, or accept "
        f"what may be missing: {_ANEW}",
    )


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
    if asked.known is not SetReading.DIFFERENT:
        return None
    return HistoryRewritten(
        f"server {asked.facts.server_uuid} has another transaction under the GTID "
        f"{asked.reused} than the one that was read from "
        f"{asked.known_cursor.position.server_uuid}: its GTIDs were assigned a second time",
        hint="the server, or the one it was copied from, was reset or restored and written to "
        "since; what it holds now does not follow on from the lake. Point the source at a "
        "server with the history that was read; or begin again with a new source name and lake "
        f"folder; or accept what may be missing: {_ANEW}",
    )


def set_unproven(asked: Question) -> Answer:
    read = asked.known_cursor.position.gtid_set
    by_set = asked.other_server or asked.file_is_gone
    if asked.known is not SetReading.PURGED or not by_set:
        return None
    if not read.contains(asked.purged) or not asked.executed.contains(read):
        return None
    return HistoryUnproven(
        f"server {asked.facts.server_uuid} has purged the last transactions that were read: "
        "nothing shows that those it executed under the same GTIDs are the same",
        hint=f"if it has the history that was read (a replica, never reset), say so: "
        f"`lockstep start-at {AfterGtids(read)} --reason …`, then `lockstep verify`; "
        "otherwise accept what may be missing: " + _ANEW,
    )


def same_server(asked: Question) -> Answer:
    cursor = asked.known_cursor
    if asked.witness is not WitnessReading.SAME or asked.file_is_gone:
        return None
    reason = f"batch {cursor.batch} ended at {cursor.position}, and the log there is unchanged"
    return Start(StartRule.RESUME_SAME_SERVER, reason, cursor.position.at, predecessor=cursor.batch)


def after_purge(asked: Question) -> Answer:
    cursor = asked.known_cursor
    if not asked.file_is_gone or not cursor.position.gtid_set.contains(asked.purged):
        return None
    reason = (
        f"{cursor.position.at.file} is gone, but the server purged nothing that batch "
        f"{cursor.batch} and those before it had not read{_shown_by(asked)}"
    )
    return _after_set(StartRule.RESUME_AFTER_PURGE, reason, cursor)


def tables_read_again(asked: Question) -> Answer:
    """Behind what is purged the log goes on at its end, and every table is read from the source."""
    cursor = asked.known_cursor
    if asked.policies.on_position_lost is not OnPositionLost.RESNAPSHOT:
        return None
    if not asked.file_is_gone and not _purged_elsewhere(asked):
        return None
    return Start(
        StartRule.TABLES_READ_AGAIN,
        f"the log after {cursor.position} is no longer on the server; by on_position_lost = "
        f"'resnapshot' every table is read from the source, and the log from {asked.facts.head} on",
        asked.facts.head,
        follows=cursor.batch,
        continuity=Continuity.GAP,
    )


def _purged_elsewhere(asked: Question) -> bool:
    """Whether another server has the history that was read, but purged more of it."""
    if not asked.other_server or not asked.by_gtid:
        return False
    read = asked.known_cursor.position.gtid_set
    return asked.executed.contains(read) and not read.contains(asked.purged)


def position_purged(asked: Question) -> Answer:
    if not asked.file_is_gone:
        return None
    file = asked.known_cursor.position.at.file
    oldest = asked.facts.binlogs[0].file if asked.facts.binlogs else "none"
    return _purged(
        asked,
        f"the log file {file} is no longer on the server (oldest now: {oldest}), and "
        + _why_not_by_set(asked),
    )


def _why_not_by_set(asked: Question) -> str:
    if not asked.gtids_on:
        return f"gtid_mode is {asked.facts.gtid_mode}"
    if not asked.by_gtid:
        return "transactions without a GTID were read or possible meanwhile"
    missing = asked.purged.difference(asked.known_cursor.position.gtid_set)
    return f"{missing.shortened()} was never read"


def _purged(asked: Question, message: str) -> PositionPurged:
    return PositionPurged(
        message,
        hint="restore the missing log files to the server; or accept what is missing: "
        f"{_ANEW}; and keep logs longer: {one_week(asked.facts.settings)[0]}",
    )


def other_server(asked: Question) -> Answer:
    cursor = asked.known_cursor
    read = cursor.position.gtid_set
    if not asked.executed.contains(read) or not read.contains(asked.purged):
        return None
    reason = (
        f"server {asked.facts.server_uuid} executed everything that was read from "
        f"{cursor.position.server_uuid}, and purged nothing else{_shown_by(asked)}"
    )
    return _after_set(StartRule.RESUME_OTHER_SERVER, reason, cursor)


def diverged(asked: Question) -> Answer:
    position = asked.known_cursor.position
    missing = position.gtid_set.difference(asked.executed)
    if not missing:
        return None
    return SourceDiverged(
        f"server {asked.facts.server_uuid} never executed {missing.shortened()}, which "
        f"{position.server_uuid} had executed at the place that was read up to",
        hint="let the new server catch up with those transactions, or point the source at "
        "one that has them; if they are lost for good, begin again with a new source name "
        "and lake folder",
    )


def purged_on_other_server(asked: Question) -> Answer:
    missing = asked.purged.difference(asked.known_cursor.position.gtid_set)
    return _purged(
        asked,
        f"server {asked.facts.server_uuid} has purged transactions that were never read: "
        f"{missing.shortened()}",
    )


def by_time(asked: Question) -> Answer:
    cursor, policies = asked.known_cursor, asked.policies
    last = cursor.position.committed_at
    if last is None or policies.on_source_changed is not OnSourceChanged.TIMESTAMP:
        return None
    moment = last - policies.fallback_interval
    return Start(
        StartRule.SEARCH_BY_TIME,
        f"server {asked.facts.server_uuid} answers instead of {cursor.position.server_uuid}; "
        f"by on_source_changed = 'timestamp' the log is read again from {moment_text(moment)}, "
        f"{policies.fallback_interval.total_seconds():g} s before the last commit read",
        Since(moment, known=last),
        follows=cursor.batch,
        continuity=Continuity.OVERLAP,
    )


def source_changed(asked: Question) -> Answer:
    position = asked.known_cursor.position
    by_time = (
        "or let the log be searched by time, reading a little twice: "
        "on_source_changed = 'timestamp' in lockstep.toml; "
    )
    no_moment = asked.policies.on_source_changed is OnSourceChanged.TIMESTAMP
    return SourceChanged(
        f"the cursor {position} belongs to server {position.server_uuid}, but "
        f"{asked.facts.server_uuid} answers at the source's address, and "
        + _why_no_set(asked)
        + (", and no commit time was read to search from" if no_moment else ""),
        hint="point the source at the server that was read so far; "
        + ("" if no_moment else by_time)
        + "or choose a place: `lockstep start-at PLACE --reason …`",
    )


def _why_no_set(asked: Question) -> str:
    if not asked.gtids_on:
        return f"its gtid_mode is {asked.facts.gtid_mode}: no GTID says where to go on"
    if not asked.known_cursor.position.gtid_set:
        return "nothing that was read had a GTID"
    return "transactions without a GTID were read or possible since GTIDs were first seen"


def _shown_by(asked: Question) -> str:
    if asked.known is SetReading.SAME:
        return "; the last transactions read are the same in its log"
    return (
        "; by their GTIDs alone, because nothing else was recorded of the transactions read: "
        "`lockstep verify` compares the rows"
    )


def _after_set(rule: StartRule, reason: str, cursor: Cursor) -> Start:
    read = cursor.position.gtid_set
    contiguous = Continuity.CONTIGUOUS
    return Start(rule, reason, read, follows=cursor.batch, continuity=contiguous)
