"""The start rules as functions. Each takes the question, which has all facts, and returns a
start, an error, or None if the rule does not apply.

The table in `rules` has their order, and says whether a rule needs a source with a cursor or
without one. Not here: finding a place on the server (`pipeline.run.find_place`).
"""

from __future__ import annotations

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.snapshot.log_room import one_week
from lockstep.pipeline.start.question import (
    AnchorReading,
    Answer,
    Question,
    ReachedPlace,
    SetReading,
    Since,
    Start,
    StartRule,
)
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    HistoryRewritten,
    HistoryUnproven,
    LockstepError,
    NoRuleApplies,
    PositionPurged,
    SourceChanged,
    SourceDiverged,
    StartBehindCursor,
    StartNotChosen,
    StartUnreachable,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    Snapshot,
    moment_text,
    start_at,
)
from lockstep.pipeline.values.policies import OnPositionLost, OnSourceChanged
from lockstep.pipeline.values.position import Coordinates, LogFile

# -- a place that an operator chose -----------------------------------------------------------


def choice_unreachable(asked: Question) -> Answer:
    choice, error = asked.override, asked.reached
    if choice is None or isinstance(error, ReachedPlace):
        return None
    reason = f": {error.message}" if error else ""
    return StartUnreachable(
        f"{choice.place}, which {choice.author} chose, is not on the server{reason}",
        hint=(f"{error.hint}; or " if error else "")
        + f"choose another place: {start_at('PLACE', asked.source)}",
    )


def choice_before_cursor(asked: Question) -> Answer:
    choice, reached, cursor = asked.override, asked.reached, asked.cursor
    if choice is None or cursor is None or not isinstance(reached, ReachedPlace):
        return None
    if _between(asked, cursor, reached) is not None:
        return None
    position = cursor.position
    place = position if _same_log(asked) else AfterGtids(position.gtid_set)
    return StartBehindCursor(
        f"{choice.place}, which {choice.author} chose, lies before {position}, up to which "
        "everything was read",
        hint="what was read cannot be read again yet; to continue from where the source is: "
        f"{start_at(place, asked.source)}",
    )


def chosen(asked: Question) -> Answer:
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
    """Return whether a chosen place continues at the cursor or leaves a gap after it; None if the
    place is before the cursor. If it is not proven that the place continues there, a gap is
    assumed: in a history that was rewritten, the same GTIDs may name other transactions."""
    place, at = reached.where, cursor.position.at
    if _same_log(asked) and isinstance(place, Coordinates) and place.file.base == at.file.base:
        if place < at:
            return None
        return Continuity.CONTIGUOUS if place == at else Continuity.GAP
    if asked.same_server and _rewritten(asked, cursor):
        return Continuity.GAP
    if asked.set_reading is SetReading.DIFFERENT:
        return Continuity.GAP
    before_place, read = reached.gtid_set, cursor.position.gtid_set
    if not asked.by_gtid or not asked.executed.contains(read):
        return Continuity.GAP
    if before_place == read:
        return Continuity.CONTIGUOUS
    if isinstance(place, GtidSet):
        # The dump sends every transaction that is not in the set, even if it was read before.
        return Continuity.GAP if before_place.contains(read) else None
    return None if read.contains(before_place) else Continuity.GAP


def _same_log(asked: Question) -> bool:
    """Return whether it is proven that the server's log is the log that was read."""
    return asked.same_server and asked.anchor is AnchorReading.SAME


# -- a source with a cursor -------------------------------------------------------------------


def history_rewritten(asked: Question) -> Answer:
    cursor = asked.known_cursor
    why = _rewritten(asked, cursor)
    if why is None:
        return None
    return HistoryRewritten(
        f"the log at the cursor {cursor.position} is not the log that was read: {why}",
        hint="the server was reset, restored or cloned, and its data is not a continuation of "
        "the lake's. Begin again with a new source name and lake folder, or accept "
        f"what may be missing: {start_at('earliest', asked.source)}",
    )


def _rewritten(asked: Question, cursor: Cursor) -> str | None:
    """Return why the server's log cannot be the log that was read; None if it can be."""
    at, facts = cursor.position.at, asked.facts
    if asked.anchor is AnchorReading.DIFFERENT:
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
    if asked.set_reading is not SetReading.DIFFERENT:
        return None
    return HistoryRewritten(
        f"server {asked.facts.server_uuid} has another transaction under the GTID "
        f"{asked.reused_gtid} than the one that was read from "
        f"{asked.known_cursor.position.server_uuid}: its GTIDs were assigned a second time",
        hint="the server, or the one it was copied from, was reset or restored and written to "
        "since, and its data is not a continuation of the lake's. Point the source at a "
        "server with the history that was read; or begin again with a new source name and lake "
        f"folder; or accept what may be missing: {start_at('earliest', asked.source)}",
    )


def set_unproven(asked: Question) -> Answer:
    read = asked.known_cursor.position.gtid_set
    by_set = asked.other_server or asked.file_is_gone
    if asked.set_reading is not SetReading.PURGED or not by_set:
        return None
    if not read.contains(asked.purged) or not asked.executed.contains(read):
        return None
    return HistoryUnproven(
        f"server {asked.facts.server_uuid} has purged the last transactions that were read: "
        "nothing shows that those it executed under the same GTIDs are the same",
        hint=f"if it has the history that was read (a replica, never reset), say so: "
        f"{start_at(AfterGtids(read), asked.source)}, then `lockstep verify`; "
        f"otherwise accept what may be missing: {start_at('earliest', asked.source)}",
    )


def resume_same_server(asked: Question) -> Answer:
    cursor = asked.known_cursor
    if asked.anchor is not AnchorReading.SAME or asked.file_is_gone:
        return None
    reason = f"batch {cursor.batch} ended at {cursor.position}, and the log there is unchanged"
    return Start(StartRule.RESUME_SAME_SERVER, reason, cursor.position.at, predecessor=cursor.batch)


def resume_after_purge(asked: Question) -> Answer:
    cursor = asked.known_cursor
    if not asked.file_is_gone or not cursor.position.gtid_set.contains(asked.purged):
        return None
    reason = (
        f"{cursor.position.at.file} is gone, but the server purged nothing that batch "
        f"{cursor.batch} and those before it had not read{_shown_by(asked)}"
    )
    return _after_set(StartRule.RESUME_AFTER_PURGE, reason, cursor)


def tables_read_again(asked: Question) -> Answer:
    """Return a start at the end of the log, with every table read from the source, if the
    position was lost and the policy says so."""
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
    """Return whether another server executed everything that was read, but also purged
    transactions that were not read."""
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
    """Return why the cursor's set does not say where to continue on this server."""
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
        f"{start_at('earliest', asked.source)}; "
        f"and keep logs longer: {one_week(asked.facts.settings)[0]}",
    )


def resume_other_server(asked: Question) -> Answer:
    cursor = asked.known_cursor
    read = cursor.position.gtid_set
    if not asked.executed.contains(read) or not read.contains(asked.purged):
        return None
    reason = (
        f"server {asked.facts.server_uuid} executed everything that was read from "
        f"{cursor.position.server_uuid}, and purged nothing else{_shown_by(asked)}"
    )
    return _after_set(StartRule.RESUME_OTHER_SERVER, reason, cursor)


def source_diverged(asked: Question) -> Answer:
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


def search_by_time(asked: Question) -> Answer:
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
        + f"or choose a place: {start_at('PLACE', asked.source)}",
    )


def _why_no_set(asked: Question) -> str:
    if not asked.gtids_on:
        return f"its gtid_mode is {asked.facts.gtid_mode}: no GTID says where to continue"
    if not asked.known_cursor.position.gtid_set:
        return "nothing that was read had a GTID"
    return "transactions without a GTID were read or possible since GTIDs were first seen"


def _shown_by(asked: Question) -> str:
    if asked.set_reading is SetReading.SAME:
        return "; the last transactions read are the same in its log"
    return (
        "; by their GTIDs alone, because nothing else was recorded of the transactions read: "
        "`lockstep verify` compares the rows"
    )


def _after_set(rule: StartRule, reason: str, cursor: Cursor) -> Start:
    read = cursor.position.gtid_set
    contiguous = Continuity.CONTIGUOUS
    return Start(rule, reason, read, follows=cursor.batch, continuity=contiguous)


# -- a source without a cursor: the start in lockstep.toml ------------------------------------


def configured_set_purged(asked: Question) -> Answer:
    place = asked.configured
    if not isinstance(place, AfterGtids) or place.gtids.contains(asked.purged):
        return None
    missing = asked.purged.difference(place.gtids)
    return PositionPurged(
        f"the server has purged {missing.shortened()}, which the configured start does not hold",
        hint="start = 'earliest', or a set that contains what the server purged "
        "(select @@gtid_purged)",
    )


def configured_set_diverged(asked: Question) -> Answer:
    place = asked.configured
    if not isinstance(place, AfterGtids) or asked.executed.contains(place.gtids):
        return None
    missing = place.gtids.difference(asked.executed)
    return SourceDiverged(
        f"the server never executed {missing.shortened()}, which the configured start holds",
        hint="correct start in lockstep.toml: a set that lies within @@gtid_executed",
    )


def configured_unreachable(asked: Question) -> Answer:
    match asked.configured:
        case AtCoordinates(at):
            size = asked.facts.size_of(at.file)
            if size is None or not FIRST_OFFSET <= at.offset <= size:
                return _unreachable(asked, at.file, f"'{at}'")
        case InFile(file, _) as place if not asked.facts.lists(file):
            return _unreachable(asked, file, f"'{place}'")
        case Earliest() if not asked.facts.binlogs:
            return StartUnreachable(
                "start = 'earliest': the server lists no log file",
                hint="set log_bin in the server's configuration and restart it",
            )
    return None


def _unreachable(asked: Question, file: LogFile, place: str) -> LockstepError:
    logs, size = asked.facts.binlogs, asked.facts.size_of(file)
    listed = f"{logs[0].file} to {logs[-1].file}" if logs else "none"
    log = f"{file} ends at {size}" if size is not None else f"files listed: {listed}"
    return StartUnreachable(
        f"start = {place} is not on the server ({log})",
        hint="choose a place that SHOW BINARY LOGS lists",
    )


def configured(asked: Question) -> Answer:
    """Return the start at the configured place. The rules before this one refused it if the
    server does not have the place."""
    match asked.configured:
        case AfterGtids(gtids):
            reason = "the configured start is a GTID set: everything after it is read"
            return Start(StartRule.CONFIGURED_SET, reason, gtids)
        case AtCoordinates(at) as start:
            reason = f"start = '{start}' is configured and on the server"
            return Start(StartRule.CONFIGURED_COORDINATES, reason, at)
        case InFile(file, moment) as start:
            reason = f"start = '{start}': the first transaction of that file at or after the moment"
            return Start(StartRule.CONFIGURED_MOMENT_IN_FILE, reason, Since(moment, file))
        case AtMoment(moment) as start:
            reason = f"start = '{start}': the first transaction committed at or after it"
            return Start(StartRule.CONFIGURED_MOMENT, reason, Since(moment))
        case Snapshot():
            return _snapshot(asked)
        case Earliest():
            at = Coordinates(asked.facts.binlogs[0].file, FIRST_OFFSET)
            reason = f"start = 'earliest': the oldest log file is {at.file}"
            return Start(StartRule.CONFIGURED_EARLIEST, reason, at)
        case Latest():
            reason = f"start = 'latest': the log ends at {asked.facts.head}"
            return Start(StartRule.CONFIGURED_LATEST, reason, asked.facts.head)
    return None


def _snapshot(asked: Question) -> Start:
    where, name = asked.facts.head, "its end"
    low = asked.load_low
    if low is not None and low.offset <= (asked.facts.size_of(low.file) or 0):
        where, name = low, "where the first rows were read, by a run that did not end:"
    reason = f"start = 'snapshot': tables are read from the source, and the log from {name} {where}"
    return Start(StartRule.CONFIGURED_SNAPSHOT, f"{reason} on", where)


def not_configured(asked: Question) -> Answer:
    if asked.configured is not None:
        return None
    return StartNotChosen(
        "the source has no cursor and no start is configured",
        hint="write start = 'snapshot' (the tables as they are, and then the log) into "
        "lockstep.toml; or 'earliest' (only the logs that the server has), 'latest' (from now "
        "on, what came before is not read), or a place such as 'binlog.000012:4567'",
    )


def no_rule(asked: Question) -> Answer:
    where = f"the cursor {asked.cursor.position}" if asked.cursor else f"start = {asked.configured}"
    return NoRuleApplies(
        f"no start rule fits {where} and the server's facts (anchor: {asked.anchor.value})",
        hint="report this: `lockstep status --json` holds the facts",
    )
