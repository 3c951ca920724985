"""The start rules: each is a function, and the table of all of them, which
`docs/how-it-works.md` shows, has their order. The first rule that applies decides.

A function takes the question, which has all facts, and returns a start, an error, or
None if the rule does not apply. A row of the table describes the rule in words, and
says which cursor it needs (the cursor is the place up to which the source was read). A
batch is what one run read of the log, and its segments are files with the changes of
one table each. Not here: finding a place on the server (`pipeline.run.find_place`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.snapshot.log_retention import week_setting
from lockstep.pipeline.start.question import (
    AnchorReading,
    Answer,
    ChosenPlace,
    Question,
    Refusal,
    SetReading,
    Since,
    Start,
    StartRule,
)
from lockstep.pipeline.values.decisions import START_KIND, AttemptOutcome, Continuity, Decision
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
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, SetAnchor
from lockstep.pipeline.values.table import TablePatterns

# -- a place that an operator chose ----------------------------------------------------


def _choice_unreachable(question: Question) -> Answer:
    choice, error = question.override, question.chosen_place
    if choice is None or not isinstance(error, LockstepError):
        return None
    return StartUnreachable(
        f"{choice.place}, which {choice.author} chose, is not on the server: {error.message}",
        hint=f"{error.hint}; or choose another place: {start_at('PLACE', question.source)}",
    )


def _choice_before_cursor(question: Question) -> Answer:
    choice, chosen_place, cursor = question.override, question.chosen_place, question.cursor
    if choice is None or cursor is None or not isinstance(chosen_place, ChosenPlace):
        return None
    if _continuity(question, cursor, chosen_place) is not None:
        return None
    position = cursor.position
    skipped_gtids = _read_here(question, cursor)
    if skipped_gtids.flavour in (None, chosen_place.gtid_set.flavour):
        skipped_gtids = skipped_gtids.union(chosen_place.gtid_set)
    place = position if _is_same_log(question) else AfterGtids(skipped_gtids)
    return StartBehindCursor(
        f"{choice.place}, which {choice.author} chose, lies before {position}, up to which "
        "everything was read",
        hint="choose a place after the cursor; to leave out what was read: "
        f"{start_at(place, question.source)}",
    )


def _chosen(question: Question) -> Answer:
    choice, chosen_place, cursor = question.override, question.chosen_place, question.cursor
    if choice is None or not isinstance(chosen_place, ChosenPlace):
        return None
    return Start(
        StartRule.CHOSEN_START,
        f"{choice.author} chose {choice.place}: {choice.reason}",
        chosen_place.where,
        previous_batch=None if cursor is None else cursor.batch,
        continuity=None if cursor is None else _continuity(question, cursor, chosen_place),
        override=choice.id,
    )


def _continuity(question: Question, cursor: Cursor, chosen_place: ChosenPlace) -> Continuity | None:
    """Return what lies between the cursor and a chosen place: nothing (CONTIGUOUS) or a
    GAP; None if transactions after the place were read before. Without proof a gap is
    assumed, because in a rewritten history the same GTIDs may name other
    transactions."""
    place, at = chosen_place.where, cursor.position.at
    if (
        _is_same_log(question)
        and isinstance(place, Coordinates)
        and place.file.base == at.file.base
    ):
        if place == at:
            return Continuity.CONTIGUOUS
        return None if place < at else Continuity.GAP
    if question.is_same_server and _rewrite_reason(question, cursor):
        return Continuity.GAP
    if question.set_reading is SetReading.DIFFERENT:
        return Continuity.GAP
    if not question.can_resume_by_gtid:
        return Continuity.GAP
    if chosen_place.gtid_set == cursor.position.gtid_set:
        return Continuity.CONTIGUOUS
    return Continuity.GAP if chosen_place.gtid_set.contains(_read_here(question, cursor)) else None


def _read_here(question: Question, cursor: Cursor) -> GtidSet:
    """Return those of the transactions up to the cursor which this server executed."""
    read = cursor.position.gtid_set
    return read.difference(read.difference(question.executed_gtids))


def _is_same_log(question: Question) -> bool:
    """Return whether it is proven that the server's log is the log that was read."""
    return question.is_same_server and question.anchor_reading is AnchorReading.SAME


# -- a source with a cursor ------------------------------------------------------------


def _history_rewritten(question: Question) -> Answer:
    cursor = question.required_cursor
    reason = _rewrite_reason(question, cursor)
    if reason is None:
        return None
    accept = f"accept what may be missing: {start_at('earliest', question.source)}"
    if question.anchor_reading is AnchorReading.SAME:
        # MySQL logs a transaction before it adds the GTID to its set.
        return HistoryRewritten(
            f"the log at the cursor {cursor.position} is the log that was read, but {reason}",
            hint="if a commit hangs at the server (`show processlist`), for instance without a "
            "semi-synchronous replica that answers, run again once it has ended; if none does, the "
            f"server's data was restored: {accept}",
        )
    return HistoryRewritten(
        f"the log at the cursor {cursor.position} is not the log that was read: {reason}",
        hint=f"the server's log was reset, or its data was restored or cloned: {accept}; or, if it "
        "is another server, begin again with a new source name and lake folder",
    )


def _rewrite_reason(question: Question, cursor: Cursor) -> str | None:
    """Return what contradicts that the server's log is the log that was read; None if
    nothing does."""
    at, facts = cursor.position.at, question.facts
    if question.anchor_reading is AnchorReading.DIFFERENT:
        return "the event before the cursor is a different one"
    if facts.head.file.base != at.file.base:
        return f"its files are called {facts.head.file.base}.* now"
    if facts.head.file.number < at.file.number:
        return f"its newest file is {facts.head.file}"
    size = facts.size_of(at.file)
    if size is not None and at.offset > size:
        return f"{at.file} ends at {size}"
    missing = cursor.position.gtid_set.difference(question.executed_gtids)
    if missing:
        names = missing.shortened_text()
        return f"the server's GTID set lacks {names}, which was read"
    return None


def _set_reused(question: Question) -> Answer:
    if question.set_reading is not SetReading.DIFFERENT:
        return None
    return HistoryRewritten(
        f"server {question.facts.server_uuid} has another transaction under the GTID "
        f"{question.reused_gtid} than the one that was read from "
        f"{question.required_cursor.position.server_uuid}: its GTIDs were assigned a second time",
        hint="the server, or the one it was copied from, was reset or restored and written to "
        "since, and its data is not a continuation of the lake's. Point the source at a "
        "server with the history that was read; or begin again with a new source name and lake "
        f"folder; or accept what may be missing: {start_at('earliest', question.source)}",
    )


def _set_unproven(question: Question) -> Answer:
    read = question.required_cursor.position.gtid_set
    if question.set_reading is not SetReading.PURGED:
        return None
    if not read.contains(question.purged_gtids) or not question.executed_gtids.contains(read):
        return None
    return HistoryUnproven(
        f"server {question.facts.server_uuid} has purged the last transactions that were read, so "
        "nothing proves that it executed the same ones under their GTIDs",
        hint=f"if it has the history that was read (a replica, never reset), say so: "
        f"{start_at(AfterGtids(read), question.source)}, then `lockstep verify`; "
        f"otherwise accept what may be missing: {start_at('earliest', question.source)}",
    )


def _resume_same_server(question: Question) -> Answer:
    cursor = question.required_cursor
    if question.anchor_reading is not AnchorReading.SAME or question.file_is_gone:
        return None
    reason = f"batch {cursor.batch} ended at {cursor.position}, and the log there is unchanged"
    return Start(
        StartRule.RESUME_SAME_SERVER, reason, cursor.position.at, continued_batch=cursor.batch
    )


def _resume_after_purge(question: Question) -> Answer:
    cursor = question.required_cursor
    if not question.file_is_gone or not cursor.position.gtid_set.contains(question.purged_gtids):
        return None
    reason = (
        f"{cursor.position.at.file} is gone, but everything that the server purged was read, up to "
        f"batch {cursor.batch}{_proof_clause(question)}"
    )
    return _start_after_set(StartRule.RESUME_AFTER_PURGE, reason, cursor)


def _tables_read_again(question: Question) -> Answer:
    """Return a start at the log's head, with every table read from the source, if the
    server no longer has the log after the cursor and the policy asks for this."""
    cursor = question.required_cursor
    if question.policies.on_position_lost is not OnPositionLost.RESNAPSHOT:
        return None
    if not question.file_is_gone and not _is_purged_elsewhere(question):
        return None
    return Start(
        StartRule.TABLES_READ_AGAIN,
        f"the log after {cursor.position} is no longer on the server; by on_position_lost = "
        "'resnapshot' every table is read from the source, and the log from "
        f"{question.facts.head} on",
        question.facts.head,
        previous_batch=cursor.batch,
        continuity=Continuity.GAP,
    )


def _is_purged_elsewhere(question: Question) -> bool:
    """Return whether another server executed everything that was read, but also purged
    transactions that were not read."""
    if not question.is_other_server or not question.can_resume_by_gtid:
        return False
    read = question.required_cursor.position.gtid_set
    return question.executed_gtids.contains(read) and not read.contains(question.purged_gtids)


def _position_purged(question: Question) -> Answer:
    if not question.file_is_gone:
        return None
    file = question.required_cursor.position.at.file
    oldest = question.facts.binlogs[0].file if question.facts.binlogs else "none"
    reason = _reason_without_set(question)
    if question.can_resume_by_gtid:
        missing = question.purged_gtids.difference(question.required_cursor.position.gtid_set)
        reason = f"{missing.shortened_text()} was never read"
    return _purged_error(
        question,
        f"the log file {file} is no longer on the server (oldest now: {oldest}), and {reason}",
    )


def _purged_error(question: Question, message: str) -> PositionPurged:
    return PositionPurged(
        message,
        hint="restore the missing log files to the server; or accept what is missing: "
        f"{start_at('earliest', question.source)}; "
        f"and keep logs longer: {week_setting(question.facts.settings)[0]}",
    )


def _resume_other_server(question: Question) -> Answer:
    cursor = question.required_cursor
    read = cursor.position.gtid_set
    if not question.executed_gtids.contains(read) or not read.contains(question.purged_gtids):
        return None
    reason = (
        f"server {question.facts.server_uuid} executed everything that was read from "
        f"{cursor.position.server_uuid}, and has purged nothing else{_proof_clause(question)}"
    )
    return _start_after_set(StartRule.RESUME_OTHER_SERVER, reason, cursor)


def _source_diverged(question: Question) -> Answer:
    position = question.required_cursor.position
    missing = position.gtid_set.difference(question.executed_gtids)
    if not missing:
        return None
    return SourceDiverged(
        f"server {question.facts.server_uuid} never executed {missing.shortened_text()}, which "
        f"{position.server_uuid} had executed at the place where reading ended",
        hint="let the new server catch up with those transactions, or point the source at "
        "one that has them; if they are lost for good, " + _cure_of_lost_transactions(question),
    )


def _cure_of_lost_transactions(question: Question) -> str:
    """Return what to do if the server will never have transactions that were read: undo
    the runs that read them, if the server has the whole log after the batch before
    them."""
    run = _first_run_with_lost_transactions(question)
    if run is None:
        return "begin again with a new source name and lake folder"
    return (
        f"`lockstep undo {run} --source {question.source}` shows what takes them out of the lake: "
        "that run and all later ones are undone, and the next one reads what this server has"
    )


def _first_run_with_lost_transactions(question: Question) -> str | None:
    """Return the first run that read a transaction which the server lacks; None if that
    run cannot be undone."""
    batches, executed = question.unpruned_batches, question.executed_gtids
    lost_batches = (
        batch for batch in batches if not executed.contains(batch.captured_end.gtid_set)
    )
    if (first_lost := next(lost_batches, None)) is None:
        return None
    earlier = list(takewhile(lambda batch: batch.run_id != first_lost.run_id, batches))
    if not earlier or not earlier[-1].by_gtid:
        return None
    has_later_log = earlier[-1].captured_end.gtid_set.contains(question.purged_gtids)
    return first_lost.run_id if has_later_log else None


def _purged_on_other_server(question: Question) -> Answer:
    missing = question.purged_gtids.difference(question.required_cursor.position.gtid_set)
    return _purged_error(
        question,
        f"server {question.facts.server_uuid} has purged transactions that were never read: "
        f"{missing.shortened_text()}",
    )


def _search_by_time(question: Question) -> Answer:
    cursor, policies = question.required_cursor, question.policies
    last = cursor.position.committed_at
    if last is None or policies.on_source_changed is not OnSourceChanged.TIMESTAMP:
        return None
    moment = last - policies.fallback_interval
    return Start(
        StartRule.SEARCH_BY_TIME,
        f"server {question.facts.server_uuid} answers instead of {cursor.position.server_uuid}; "
        f"by on_source_changed = 'timestamp' the log is read again from {moment_text(moment)}, "
        f"{policies.fallback_interval.total_seconds():g} s before the last commit read",
        Since(moment, read_until=last),
        previous_batch=cursor.batch,
        continuity=Continuity.OVERLAP,
    )


def _source_changed(question: Question) -> Answer:
    position = question.required_cursor.position
    reason = _reason_without_set(question)
    if question.policies.on_source_changed is OnSourceChanged.TIMESTAMP:
        reason = f"{reason}, and no commit time was read to search from"
        cure = ""
    else:
        cure = (
            "or set on_source_changed = 'timestamp' in lockstep.toml, which continues by commit "
            "time and reads some changes twice; "
        )
    return SourceChanged(
        f"the cursor {position} belongs to server {position.server_uuid}, but "
        f"{question.facts.server_uuid} answers at the source's address, and {reason}",
        hint=f"point the source at the server that was read so far; {cure}"
        f"or choose a place: {start_at('PLACE', question.source)}",
    )


def _reason_without_set(question: Question) -> str:
    """Return why the cursor's set does not say where to continue, if
    `can_resume_by_gtid` is False."""
    if not question.has_gtid_mode_on:
        return f"its gtid_mode is {question.facts.gtid_mode}: no GTID says where to continue"
    if not question.required_cursor.position.gtid_set:
        return "nothing that was read had a GTID"
    return "transactions without a GTID were read, or may have been, after the first GTID"


def _proof_clause(question: Question) -> str:
    """Return a clause on the proof that the server's transactions are those read
    before."""
    if question.set_reading is SetReading.SAME:
        return "; the last transactions read are the same in its log"
    return (
        "; only GTIDs were compared, because nothing else was recorded of those transactions: "
        "`lockstep verify` compares the rows"
    )


def _start_after_set(rule: StartRule, reason: str, cursor: Cursor) -> Start:
    read = cursor.position.gtid_set
    contiguous = Continuity.CONTIGUOUS
    return Start(rule, reason, read, previous_batch=cursor.batch, continuity=contiguous)


# -- a source without a cursor: the start in lockstep.toml -----------------------------


def _configured_set_purged(question: Question) -> Answer:
    place = question.configured_start
    if not isinstance(place, AfterGtids) or place.gtids.contains(question.purged_gtids):
        return None
    missing = question.purged_gtids.difference(place.gtids)
    return PositionPurged(
        f"the server has purged {missing.shortened_text()}, which the configured GTID set lacks",
        hint="set start = 'earliest' in lockstep.toml, or a GTID set that contains what the server "
        "purged (select @@gtid_purged)",
    )


def _configured_set_diverged(question: Question) -> Answer:
    place = question.configured_start
    if not isinstance(place, AfterGtids) or question.executed_gtids.contains(place.gtids):
        return None
    missing = place.gtids.difference(question.executed_gtids)
    return SourceDiverged(
        f"the server never executed {missing.shortened_text()}, which the configured GTID set has",
        hint="set start in lockstep.toml to a GTID set that lies within @@gtid_executed",
    )


def _configured_unreachable(question: Question) -> Answer:
    match question.configured_start:
        case AtCoordinates(at):
            size = question.facts.size_of(at.file)
            if size is None or not FIRST_OFFSET <= at.offset <= size:
                return _unreachable_error(question, at.file, f"'{at}'")
        case InFile(file, _) as place if not question.facts.lists(file):
            return _unreachable_error(question, file, f"'{place}'")
        case Earliest() if not question.facts.binlogs:
            return StartUnreachable(
                "start = 'earliest': the server lists no log file",
                hint="set log_bin in the server's configuration and restart it",
            )
    return None


def _unreachable_error(question: Question, file: LogFile, place: str) -> LockstepError:
    return StartUnreachable(
        f"start = {place} is not on the server ({question.facts.extent_of(file)})",
        hint="choose a place that SHOW BINARY LOGS lists",
    )


def _configured(question: Question) -> Answer:
    """Return the start at the configured place. If the server does not have the place,
    one of the rules before this one has refused it."""
    match question.configured_start:
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
            return _snapshot_start(question)
        case Earliest():
            at = Coordinates(question.facts.binlogs[0].file, FIRST_OFFSET)
            reason = f"start = 'earliest': the oldest log file is {at.file}"
            return Start(StartRule.CONFIGURED_EARLIEST, reason, at)
        case Latest():
            reason = f"start = 'latest': the log ends at {question.facts.head}"
            return Start(StartRule.CONFIGURED_LATEST, reason, question.facts.head)
    return None


def _snapshot_start(question: Question) -> Start:
    """Start at the head; or, if an unfinished run has read some tables already, at the
    place where it began, because their rows need the log from there."""
    where, name = question.facts.head, "its end"
    watermark = question.load_watermark
    if watermark is not None and watermark.offset <= (question.facts.size_of(watermark.file) or 0):
        where, name = watermark, "the place where an unfinished run began to read them,"
    reason = f"start = 'snapshot': tables are read from the source, and the log from {name} {where}"
    return Start(StartRule.CONFIGURED_SNAPSHOT, f"{reason} on", where)


def _not_configured(question: Question) -> Answer:
    if question.configured_start is not None:
        return None
    return StartNotChosen(
        "the source has no cursor and no start is configured",
        hint="write start = 'snapshot' (the tables as they are, and then the log) into "
        "lockstep.toml; or 'earliest' (only the logs that the server has), 'latest' (from now "
        "on, what came before is not read), or a place such as 'binlog.000012:4567'",
    )


def _no_rule(question: Question) -> Answer:
    where = (
        f"the cursor {question.cursor.position}"
        if question.cursor
        else f"start = {question.configured_start}"
    )
    anchor = question.anchor_reading.value
    return NoRuleApplies(
        f"no start rule fits {where} and the server's facts (anchor: {anchor})",
        hint="report this: `lockstep status --json` holds the facts",
    )


_CURSOR_BY_GTID: Final = (
    "of another server, or of this one and its file is gone; may be resumed by GTID"
)
_CURSOR_WITHIN_GTIDS: Final = (
    f"{_CURSOR_BY_GTID}; its set contains the purged set and lies within the executed one"
)
_NEEDS: Final[Mapping[str, Callable[[Question], bool]]] = {
    "none": lambda question: question.cursor is None,
    "any": lambda question: question.cursor is not None,
    "any; a place was chosen": lambda question: question.override is not None,
    "not required; a place was chosen": lambda question: question.override is not None,
    "of this server": lambda question: question.is_same_server,
    "of this server, may be resumed by GTID": lambda question: (
        question.is_same_server and question.can_resume_by_gtid
    ),
    "of another server, may be resumed by GTID": lambda question: (
        question.is_other_server and question.can_resume_by_gtid
    ),
    "of another server, with a commit time; may not be resumed by GTID": (
        lambda question: question.is_other_server
    ),
    "of another server; may not be resumed by GTID": lambda question: question.is_other_server,
    _CURSOR_BY_GTID: lambda question: question.can_resume_by_gtid,
    _CURSOR_WITHIN_GTIDS: lambda question: question.can_resume_by_gtid,
    "any other": lambda _: True,
}
"""A row's text for its cursor → the check that a question has such a cursor. The rule's
function checks the commit time and the purged set. "May not be resumed by GTID" needs
no check: earlier rows decide for every cursor of another server that may be resumed by
GTID."""


@dataclass(frozen=True, slots=True)
class Row:
    """One rule in words: the cursor, the other facts, the decision. `decide` is the
    rule as code."""

    rule: StartRule
    cursor: str
    facts: str
    decision: str
    decide: Callable[[Question], Answer]

    def answer(self, question: Question) -> Answer:
        """Return the rule's answer; None if it does not apply."""
        return self.decide(question) if _NEEDS[self.cursor](question) else None


TABLE: Final[tuple[Row, ...]] = (
    Row(
        StartRule.CHOSEN_START_UNREACHABLE,
        "any; a place was chosen",
        "the place is not on this server",
        "refuse `StartUnreachable`; the choice stays open",
        _choice_unreachable,
    ),
    Row(
        StartRule.CHOSEN_START_BEHIND,
        "any; a place was chosen",
        "transactions after the place were read before",
        "refuse `StartBehindCursor`: nothing is read twice",
        _choice_before_cursor,
    ),
    Row(
        StartRule.CHOSEN_START,
        "not required; a place was chosen",
        "the place is on this server",
        "start there; a jump forward writes a gap record that names the tables",
        _chosen,
    ),
    Row(
        StartRule.HISTORY_REWRITTEN,
        "of this server",
        "the anchor differs; or the newest file is older than the cursor's, or has another "
        "name; or the file is shorter; or the server's set does not contain the cursor's "
        "(asked again for up to 30 s)",
        "refuse `HistoryRewritten`",
        _history_rewritten,
    ),
    Row(
        StartRule.SET_REUSED,
        _CURSOR_BY_GTID,
        "this server's log has another transaction under a GTID of the cursor's set",
        "refuse `HistoryRewritten`, with its GTID",
        _set_reused,
    ),
    Row(
        StartRule.RESUME_SAME_SERVER,
        "of this server",
        "the file is listed, and the anchor is the same",
        "resume at file and offset, whatever `gtid_mode`",
        _resume_same_server,
    ),
    Row(
        StartRule.SET_UNPROVEN,
        _CURSOR_WITHIN_GTIDS,
        "the last transaction that was read is purged; the server is another one, or was restarted "
        "or reset since: nothing shows that its history is the one that was read",
        "refuse `HistoryUnproven`; somebody may confirm that it is: "
        "`lockstep start-at gtid:<set> --reason …`",
        _set_unproven,
    ),
    Row(
        StartRule.RESUME_AFTER_PURGE,
        "of this server, may be resumed by GTID",
        "the file is gone, `gtid_mode` is ON, the purged set lies within the cursor's",
        "resume after the cursor's set",
        _resume_after_purge,
    ),
    Row(
        StartRule.TABLES_READ_AGAIN,
        "any",
        '`on_position_lost = "resnapshot"`; either the file is gone, or another server executed '
        "the cursor's set and purged transactions that are not in it",
        "start at the log's head, after a gap; every table is read from the source",
        _tables_read_again,
    ),
    Row(
        StartRule.POSITION_PURGED,
        "of this server",
        "the file is gone",
        "refuse `PositionPurged`",
        _position_purged,
    ),
    Row(
        StartRule.RESUME_OTHER_SERVER,
        "of another server, may be resumed by GTID",
        "`gtid_mode` is ON, the cursor's set lies within the executed one, the purged one "
        "within the cursor's",
        "resume after the cursor's set; this server is added to the source's servers",
        _resume_other_server,
    ),
    Row(
        StartRule.SOURCE_DIVERGED,
        "of another server, may be resumed by GTID",
        "`gtid_mode` is ON, the executed set lacks part of the cursor's",
        "refuse `SourceDiverged`, with the GTIDs that are missing",
        _source_diverged,
    ),
    Row(
        StartRule.PURGED_ON_OTHER_SERVER,
        "of another server, may be resumed by GTID",
        "`gtid_mode` is ON, the purged set holds more than the cursor's",
        "refuse `PositionPurged`",
        _purged_on_other_server,
    ),
    Row(
        StartRule.SEARCH_BY_TIME,
        "of another server, with a commit time; may not be resumed by GTID",
        '`on_source_changed = "timestamp"`',
        "search for the cursor's commit time less `fallback_interval`; if the log begins after "
        "that moment, but before the commit time, start at its beginning; the overlap is recorded",
        _search_by_time,
    ),
    Row(
        StartRule.SOURCE_CHANGED,
        "of another server; may not be resumed by GTID",
        "",
        "refuse `SourceChanged`",
        _source_changed,
    ),
    Row(
        StartRule.CONFIGURED_SET_PURGED,
        "none",
        "`start` is a GTID set, and the purged set holds more",
        "refuse `PositionPurged`",
        _configured_set_purged,
    ),
    Row(
        StartRule.CONFIGURED_SET_DIVERGED,
        "none",
        "`start` is a GTID set, and the executed set lacks part of it",
        "refuse `SourceDiverged`",
        _configured_set_diverged,
    ),
    Row(
        StartRule.START_UNREACHABLE,
        "none",
        "`start` names a file that is not listed, or an offset beyond it",
        "refuse `StartUnreachable`",
        _configured_unreachable,
    ),
    Row(
        StartRule.CONFIGURED_SET,
        "none",
        "`start` is a GTID set between the purged and the executed one",
        "start after it",
        _configured,
    ),
    Row(
        StartRule.CONFIGURED_COORDINATES,
        "none",
        "`start` is `file:offset`",
        "start there, or at the beginning of the transaction around it; if the offset is inside an "
        "event, refuse `NotAnEventBoundary`",
        _configured,
    ),
    Row(
        StartRule.CONFIGURED_MOMENT_IN_FILE,
        "none",
        "`start` is `file@moment`",
        "start at the file's first transaction at or after the moment, else at its beginning",
        _configured,
    ),
    Row(
        StartRule.CONFIGURED_MOMENT,
        "none",
        "`start` is a moment",
        "start at the first transaction at or after it; if it lies before the log's beginning, or "
        "in the future, refuse `MomentOutOfRange`",
        _configured,
    ),
    Row(
        StartRule.CONFIGURED_SNAPSHOT,
        "none",
        '`start = "snapshot"`',
        "start at the log's head; tables that have rows are read from the source",
        _configured,
    ),
    Row(
        StartRule.CONFIGURED_EARLIEST,
        "none",
        '`start = "earliest"`',
        "start at the first transaction of the oldest file",
        _configured,
    ),
    Row(
        StartRule.CONFIGURED_LATEST,
        "none",
        '`start = "latest"`',
        "start at the log's head",
        _configured,
    ),
    Row(
        StartRule.START_NOT_CHOSEN,
        "none",
        "nothing is configured",
        "refuse `StartNotChosen`",
        _not_configured,
    ),
    Row(
        StartRule.NO_RULE_APPLIES,
        "any other",
        "",
        "refuse `NoRuleApplies`, with the facts",
        _no_rule,
    ),
)


def decide_start(question: Question) -> Start | Refusal:
    """Return the decision of the first rule in `TABLE` that applies."""
    for row in TABLE:
        answer = row.answer(question)
        if answer is not None:
            return answer if isinstance(answer, Start) else Refusal(row.rule, answer)
    raise AssertionError("the last rule always applies")


def compare_anchor(expected: Anchor, anchor: Anchor | None) -> AnchorReading:
    """Compare the recorded anchor (`expected`) with that of the log's event before the
    cursor; `anchor` is None if the log has no event there.

    The GTID is not compared: only the first event of a transaction has it, but the
    event before the cursor is the last one.
    """
    if anchor is not None and replace(anchor, gtid=expected.gtid) == expected:
        return AnchorReading.SAME
    return AnchorReading.DIFFERENT


def compare_set(
    recorded: Sequence[SetAnchor], anchors: Mapping[str, SetAnchor]
) -> tuple[SetReading, str]:
    """Compare recorded transactions with the log's. `recorded`: the last transaction of
    each GTID source, the newest first. `anchors`: those transactions that the log has,
    by GTID. Return the result and, if a transaction differs, its GTID.

    The log must have the last transaction that was read: if that is the same, so is
    everything before it. The last transactions of other GTID sources may be purged, but
    must not differ.
    """
    if not recorded:
        return SetReading.NOT_COMPARED, ""
    reused_gtid = next(
        (anchor.gtid for anchor in recorded if anchors.get(anchor.gtid, anchor) != anchor), None
    )
    if reused_gtid is not None:
        return SetReading.DIFFERENT, reused_gtid
    return (SetReading.SAME if recorded[0].gtid in anchors else SetReading.PURGED), ""


def decision_record(
    decision: Start | Refusal,
    question: Question,
    patterns: TablePatterns,
    *,
    at: Coordinates | None = None,
    tables: Sequence[str] = (),
) -> Decision:
    """Return the decision for the ledger, with the facts that led to it. `at`: the
    coordinates of the start. `tables`: the tables that may lack changes because of a
    gap."""
    facts: dict[str, Any] = {
        "tables": {"include": list(patterns.include), "exclude": list(patterns.exclude)},
        "anchor": question.anchor_reading.value,
        "set": question.set_reading.value,
        "cursor": str(question.cursor.position) if question.cursor else None,
        "previous_batch": question.cursor.batch if question.cursor else None,
    }
    if at is not None:
        facts["place"] = str(at)
    if isinstance(decision, Refusal):
        error = {"error": type(decision.error).__name__, "hint": decision.error.hint}
        return Decision(
            kind=AttemptOutcome.REFUSED.value,
            rule=decision.rule.value,
            reason=decision.reason,
            facts={**to_json(question.facts), **facts, **error},
            recovery=decision.error.recovery,
            hint=decision.error.hint,
        )
    return Decision(
        kind=START_KIND,
        rule=decision.rule.value,
        reason=decision.reason,
        facts={**to_json(question.facts), **facts},
        author=question.override.author if question.override else "lockstep",
        previous_batch=decision.previous_batch,
        continuity=decision.continuity,
        gap_tables=tuple(tables),
        override=decision.override,
    )
