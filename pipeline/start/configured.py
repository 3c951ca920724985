"""The start rules of a source without a cursor: what lockstep.toml says. Finding the place is
`pipeline.runs.find_place`."""

from __future__ import annotations

from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import (
    LockstepError,
    NoRuleApplies,
    PositionPurged,
    SourceDiverged,
    StartNotChosen,
    StartUnreachable,
)
from pipeline.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    Snapshot,
)
from pipeline.position import Coordinates, LogFile
from pipeline.start.question import Answer, Question, Since, Start, StartRule


def set_purged(asked: Question) -> Answer:
    place = asked.configured
    if not isinstance(place, AfterGtids) or place.gtids.contains(asked.purged):
        return None
    missing = asked.purged.difference(place.gtids)
    return PositionPurged(
        f"the server has purged {missing.shortened()}, which the configured start does not hold",
        hint="start = 'earliest', or a set that contains what the server purged "
        "(select @@gtid_purged)",
    )


def set_diverged(asked: Question) -> Answer:
    place = asked.configured
    if not isinstance(place, AfterGtids) or asked.executed.contains(place.gtids):
        return None
    missing = place.gtids.difference(asked.executed)
    return SourceDiverged(
        f"the server never executed {missing.shortened()}, which the configured start holds",
        hint="correct start in lockstep.toml: a set that lies within @@gtid_executed",
    )


def unreachable(asked: Question) -> Answer:
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
    there = f"{file} ends at {size}" if size is not None else f"files listed: {listed}"
    return StartUnreachable(
        f"start = {place} is not on the server ({there})",
        hint="choose a place that SHOW BINARY LOGS lists",
    )


def place(asked: Question) -> Answer:
    """The place that is configured, once no rule above has refused it."""
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
    where, what = asked.facts.head, "its end"
    low = asked.loading
    if low is not None and low.offset <= (asked.facts.size_of(low.file) or 0):
        where, what = low, "where the first rows were read, by a run that did not end:"
    reason = f"start = 'snapshot': tables are read from the source, and the log from {what} {where}"
    return Start(StartRule.CONFIGURED_SNAPSHOT, f"{reason} on", where)


def not_chosen(asked: Question) -> Answer:
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
        f"no start rule fits {where} and the server's facts (witness: {asked.witness.value})",
        hint="report this: `lockstep status --json` holds the facts",
    )
