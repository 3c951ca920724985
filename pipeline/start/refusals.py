"""Why a run does not begin, in words: one function a refusal of the start table.

Belongs here: what an operator is told, and what to type. Does not: when (`rules`).
"""

from __future__ import annotations

from pipeline.batch import Cursor
from pipeline.decisions import Override
from pipeline.errors import (
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
from pipeline.gtid import GtidSet
from pipeline.places import AfterGtids
from pipeline.policies import OnSourceChanged
from pipeline.position import LogFile
from pipeline.snapshot.log_room import one_week
from pipeline.start.question import Question, Refusal, StartRule, WitnessReading

_ANEW = "`lockstep start-at earliest --reason …`"


def chosen_unreachable(choice: Override, why: LockstepError | None) -> Refusal:
    because = f": {why.message}" if why else ""
    return Refusal(
        StartRule.CHOSEN_START_UNREACHABLE,
        StartUnreachable(
            f"{choice.place}, which {choice.author} chose, is not on the server{because}",
            hint=(f"{why.hint}; or " if why else "")
            + "choose another place: `lockstep start-at PLACE --reason …`",
        ),
    )


def chosen_behind(asked: Question, choice: Override, cursor: Cursor) -> Refusal:
    read_here = asked.same_server and asked.witness is WitnessReading.SAME
    behind = cursor.position if read_here else AfterGtids(cursor.position.gtid_set)
    return Refusal(
        StartRule.CHOSEN_START_BEHIND,
        StartBehindCursor(
            f"{choice.place}, which {choice.author} chose, lies before "
            f"{cursor.position}, up to which everything was read",
            hint="what was read cannot be read again yet; to go on from where the source is: "
            f"`lockstep start-at {behind} --reason …`",
        ),
    )


def rewritten(cursor: Cursor, why: str) -> Refusal:
    return Refusal(
        StartRule.HISTORY_REWRITTEN,
        HistoryRewritten(
            f"the log at the cursor {cursor.position} is not the log that was read: {why}",
            hint="the server was reset, restored or cloned; what it holds now does not follow "
            "on from the lake. Begin again with a new source name and lake folder, or accept "
            f"what may be missing: {_ANEW}",
        ),
    )


def set_reused(asked: Question, cursor: Cursor) -> Refusal:
    return Refusal(
        StartRule.SET_REUSED,
        HistoryRewritten(
            f"server {asked.facts.server_uuid} has another transaction under the GTID "
            f"{asked.reused} than the one that was read from {cursor.position.server_uuid}: its "
            "GTIDs were assigned a second time",
            hint="the server, or the one it was copied from, was reset or restored and written to "
            "since; what it holds now does not follow on from the lake. Point the source at a "
            "server with the history that was read; or begin again with a new source name and lake "
            f"folder; or accept what may be missing: {_ANEW}",
        ),
    )


def set_unproven(asked: Question, cursor: Cursor) -> Refusal:
    read = AfterGtids(cursor.position.gtid_set)
    return Refusal(
        StartRule.SET_UNPROVEN,
        HistoryUnproven(
            f"server {asked.facts.server_uuid} has purged the last transactions that were read: "
            "nothing shows that those it executed under the same GTIDs are the same",
            hint=f"if it has the history that was read (a replica, never reset), say so: "
            f"`lockstep start-at {read} --reason …`, then `lockstep verify`; "
            "otherwise accept what may be missing: " + _ANEW,
        ),
    )


def purged(rule: StartRule, asked: Question, cursor: Cursor) -> Refusal:
    oldest = asked.facts.binlogs[0].file if asked.facts.binlogs else "none"
    if asked.same_server:
        message = (
            f"the log file {cursor.position.at.file} is no longer on the server (oldest now: "
            f"{oldest}), {_why_not_by_set(asked, cursor)}"
        )
    else:
        missing = asked.purged.difference(cursor.position.gtid_set)
        message = (
            f"server {asked.facts.server_uuid} has purged transactions that were never read: "
            f"{missing.shortened()}"
        )
    return Refusal(
        rule,
        PositionPurged(
            message,
            hint="restore the missing log files to the server; or accept what is missing: "
            f"{_ANEW}; and keep logs longer: {one_week(asked.facts.settings)[0]}",
        ),
    )


def _why_not_by_set(asked: Question, cursor: Cursor) -> str:
    if not asked.gtids_on:
        return f"and gtid_mode is {asked.facts.gtid_mode}"
    if not asked.by_gtid:
        return "and transactions without a GTID were read or possible meanwhile"
    missing = asked.purged.difference(cursor.position.gtid_set)
    return f"and {missing.shortened()} was never read"


def diverged(asked: Question, cursor: Cursor, missing: GtidSet) -> Refusal:
    return Refusal(
        StartRule.SOURCE_DIVERGED,
        SourceDiverged(
            f"server {asked.facts.server_uuid} never executed {missing.shortened()}, which "
            f"{cursor.position.server_uuid} had executed at the place that was read up to",
            hint="let the new server catch up with those transactions, or point the source at "
            "one that has them; if they are lost for good, begin again with a new source name "
            "and lake folder",
        ),
    )


def source_changed(asked: Question, cursor: Cursor) -> Refusal:
    by_time = (
        "or let the log be searched by time, reading a little twice: "
        "on_source_changed = 'timestamp' in lockstep.toml; "
    )
    no_moment = asked.policies.on_source_changed is OnSourceChanged.TIMESTAMP
    return Refusal(
        StartRule.SOURCE_CHANGED,
        SourceChanged(
            f"the cursor {cursor.position} belongs to server {cursor.position.server_uuid}, but "
            f"{asked.facts.server_uuid} answers at the source's address, and "
            + _why_no_set(asked, cursor)
            + (", and no commit time was read to search from" if no_moment else ""),
            hint="point the source at the server that was read so far; "
            + ("" if no_moment else by_time)
            + "or choose a place: `lockstep start-at PLACE --reason …`",
        ),
    )


def _why_no_set(asked: Question, cursor: Cursor) -> str:
    if not asked.gtids_on:
        return f"its gtid_mode is {asked.facts.gtid_mode}: no GTID says where to go on"
    if not cursor.position.gtid_set:
        return "nothing that was read had a GTID"
    return "transactions without a GTID were read or possible since GTIDs were first seen"


def set_purged(asked: Question, chosen: GtidSet) -> Refusal:
    missing = asked.purged.difference(chosen)
    return Refusal(
        StartRule.CONFIGURED_SET_PURGED,
        PositionPurged(
            f"the server has purged {missing.shortened()}, which the configured start does not "
            "hold",
            hint="start = 'earliest', or a set that contains what the server purged "
            "(select @@gtid_purged)",
        ),
    )


def set_diverged(asked: Question, chosen: GtidSet) -> Refusal:
    missing = chosen.difference(asked.executed)
    return Refusal(
        StartRule.CONFIGURED_SET_DIVERGED,
        SourceDiverged(
            f"the server never executed {missing.shortened()}, which the configured start holds",
            hint="correct start in lockstep.toml: a set that lies within @@gtid_executed",
        ),
    )


def unreachable(asked: Question, file: LogFile, place: str) -> Refusal:
    logs = asked.facts.binlogs
    size = asked.facts.size_of(file)
    listed = f"{logs[0].file} to {logs[-1].file}" if logs else "none"
    there = f"{file} ends at {size}" if size is not None else f"files listed: {listed}"
    return Refusal(
        StartRule.START_UNREACHABLE,
        StartUnreachable(
            f"start = {place} is not on the server ({there})",
            hint="choose a place that SHOW BINARY LOGS lists",
        ),
    )


def no_files() -> Refusal:
    return Refusal(
        StartRule.START_UNREACHABLE,
        StartUnreachable(
            "start = 'earliest': the server lists no log file",
            hint="set log_bin in the server's configuration and restart it",
        ),
    )


def not_chosen() -> Refusal:
    return Refusal(
        StartRule.START_NOT_CHOSEN,
        StartNotChosen(
            "the source has no cursor and no start is configured",
            hint="write start = 'snapshot' (the tables as they are, and then the log) into "
            "lockstep.toml; or 'earliest' (only the logs that the server has), 'latest' (from now "
            "on, what came before is not read), or a place such as 'binlog.000012:4567'",
        ),
    )


def no_rule(asked: Question) -> Refusal:
    where = f"the cursor {asked.cursor.position}" if asked.cursor else f"start = {asked.configured}"
    return Refusal(
        StartRule.NO_RULE_APPLIES,
        NoRuleApplies(
            f"no start rule fits {where} and the server's facts (witness: {asked.witness.value})",
            hint="report this: `lockstep status --json` holds the facts",
        ),
    )
