"""Where a run starts: `decide_start`, from facts to a named decision with its reason.

Belongs here: the rules in their order, first match wins, and what an operator is told
when none of them lets a run begin. Does not: gathering facts, reading witnesses.

The rules of this version cover a cursor on the same server, and a configured file and
offset, `earliest` or `latest`. Whatever fits none of them is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pipeline.batch import Cursor, Decision
from pipeline.binlog.framing import FIRST_OFFSET
from pipeline.errors import (
    HistoryRewritten,
    LockstepError,
    NoRuleApplies,
    PositionPurged,
    SourceChanged,
    StartNotChosen,
    StartUnreachable,
)
from pipeline.ports import BinlogSize, ServerFacts
from pipeline.position import Coordinates, LogFile, Witness
from pipeline.tables import TablePatterns


@dataclass(frozen=True, slots=True)
class StartChoice:
    """`start` of a source, as configured: "earliest", "latest", or "coordinates" with
    the file and offset in `at`."""

    kind: str
    at: Coordinates | None = None

    def __str__(self) -> str:
        return str(self.at) if self.at else self.kind


class WitnessReading(StrEnum):
    """What the log showed where the cursor's witness should stand."""

    NOT_READ = "not read"
    SAME = "the same"
    DIFFERENT = "different"


class Rule(StrEnum):
    """The start rules by name, in the order of the decision table."""

    HISTORY_REWRITTEN = "history-rewritten"
    RESUME_SAME_SERVER = "resume-same-server"
    POSITION_PURGED = "position-purged"
    SOURCE_CHANGED = "source-changed"
    CONFIGURED_COORDINATES = "configured-coordinates"
    CONFIGURED_EARLIEST = "configured-earliest"
    CONFIGURED_LATEST = "configured-latest"
    START_UNREACHABLE = "start-unreachable"
    START_NOT_CHOSEN = "start-not-chosen"
    NO_RULE_APPLIES = "no-rule-applies"


@dataclass(frozen=True, slots=True)
class Start:
    """Begin at `at`. `predecessor` is the batch whose end that is, None for a chosen
    start, which must still be proven to lie between two transactions."""

    rule: Rule
    reason: str
    at: Coordinates
    predecessor: int | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Do not begin; `error` says why, whose move it is, and what to type."""

    rule: Rule
    error: LockstepError

    @property
    def reason(self) -> str:
        return self.error.message


def decide_start(
    cursor: Cursor | None,
    configured: StartChoice | None,
    facts: ServerFacts,
    witness: WitnessReading,
) -> Start | Refusal:
    """The decision for these facts; total, and pure.

    `cursor` is the captured cursor if its segments are intact, else the acknowledged
    one; a cursor always comes before what is configured.
    """
    if cursor is not None:
        return _from_cursor(cursor, facts, witness)
    if configured is None:
        return _not_chosen()
    if configured.kind == "earliest" and facts.binlogs:
        at = Coordinates(facts.binlogs[0].file, FIRST_OFFSET)
        reason = f"start = 'earliest': the oldest log file is {at.file}"
        return Start(Rule.CONFIGURED_EARLIEST, reason, at, None)
    if configured.kind == "latest":
        reason = f"start = 'latest': the log ends at {facts.head}"
        return Start(Rule.CONFIGURED_LATEST, reason, facts.head, None)
    if configured.kind == "coordinates" and configured.at is not None:
        return _from_coordinates(configured.at, facts)
    return Refusal(
        Rule.NO_RULE_APPLIES,
        NoRuleApplies(
            f"no start rule fits start = {str(configured)!r} and the server's facts",
            hint="report this: `lockstep status --json` holds the facts",
        ),
    )


def _from_cursor(cursor: Cursor, facts: ServerFacts, witness: WitnessReading) -> Start | Refusal:
    position = cursor.position
    if facts.server_uuid != position.server_uuid:
        return Refusal(
            Rule.SOURCE_CHANGED,
            SourceChanged(
                f"the cursor {position} belongs to server {position.server_uuid}, but "
                f"{facts.server_uuid} answers at the source's address",
                hint="point the source at the server that was read so far; following a switch "
                "of servers is not built yet",
            ),
        )
    rewritten = _rewritten(position.at, facts, witness)
    if rewritten is not None:
        return Refusal(
            Rule.HISTORY_REWRITTEN,
            HistoryRewritten(
                f"the log at the cursor {position} is not the log that was read: {rewritten}",
                hint="the server was reset, restored or cloned; what it holds now does not follow "
                "from what the lake holds. Begin again with a new source name and lake folder",
            ),
        )
    if _size_of(position.at.file, facts.binlogs) is None:
        oldest = facts.binlogs[0].file if facts.binlogs else "none"
        return Refusal(
            Rule.POSITION_PURGED,
            PositionPurged(
                f"the log file {position.at.file} is no longer on the server "
                f"(oldest now: {oldest})",
                hint="restore that file to the server, or begin again with a new source name; "
                "and keep logs longer: binlog_expire_logs_seconds",
            ),
        )
    if witness is WitnessReading.SAME:
        reason = f"batch {cursor.batch} ended at {position}, and the log there is unchanged"
        return Start(Rule.RESUME_SAME_SERVER, reason, position.at, cursor.batch)
    return Refusal(
        Rule.NO_RULE_APPLIES,
        NoRuleApplies(
            f"the witness of the cursor {position} was {witness.value}",
            hint="report this: `lockstep status --json` holds the facts",
        ),
    )


def _rewritten(at: Coordinates, facts: ServerFacts, witness: WitnessReading) -> str | None:
    """In a few words why the server's log cannot be the one that was read; None if it can."""
    if witness is WitnessReading.DIFFERENT:
        return "the event before the cursor is another one"
    if facts.head.file.base != at.file.base:
        return f"its files are called {facts.head.file.base}.* now"
    if facts.head.file.number < at.file.number:
        return f"its newest file is {facts.head.file}"
    size = _size_of(at.file, facts.binlogs)
    if size is not None and at.offset > size:
        return f"{at.file} ends at {size}"
    return None


def _from_coordinates(at: Coordinates, facts: ServerFacts) -> Start | Refusal:
    size = _size_of(at.file, facts.binlogs)
    if size is None or not FIRST_OFFSET <= at.offset <= size:
        listed = f"{facts.binlogs[0].file} to {facts.binlogs[-1].file}" if facts.binlogs else "none"
        there = f"{at.file} ends at {size}" if size is not None else f"files listed: {listed}"
        return Refusal(
            Rule.START_UNREACHABLE,
            StartUnreachable(
                f"start = '{at}' is not on the server ({there})",
                hint="choose a place that SHOW BINARY LOGS lists",
            ),
        )
    reason = f"start = '{at}' is configured and on the server"
    return Start(Rule.CONFIGURED_COORDINATES, reason, at, None)


def _not_chosen() -> Refusal:
    return Refusal(
        Rule.START_NOT_CHOSEN,
        StartNotChosen(
            "the source has no cursor and no start is configured",
            hint="write start = 'earliest' (all logs the server has), start = 'latest' (from now "
            "on, what came before is not read), or start = 'binlog.000012:4567' into lockstep.toml",
        ),
    )


def _size_of(file: LogFile, binlogs: tuple[BinlogSize, ...]) -> int | None:
    return next((log.size for log in binlogs if log.file == file), None)


def compare_witness(expected: Witness, found: Witness | None) -> WitnessReading:
    """What was recorded beside what the log shows now; None if it shows no event there.

    The GTID is not compared: it stands in another event of the same transaction.
    """
    if found is not None and replace(found, gtid=expected.gtid) == expected:
        return WitnessReading.SAME
    return WitnessReading.DIFFERENT


def recorded(decision: Start | Refusal, facts: ServerFacts, patterns: TablePatterns) -> Decision:
    """A decision as the ledger keeps it, with the facts it was drawn from."""
    start = {"at": str(decision.at)} if isinstance(decision, Start) else {}
    tables = {"include": list(patterns.include), "exclude": list(patterns.exclude)}
    return Decision(
        kind="start" if isinstance(decision, Start) else "refusal",
        rule=decision.rule.value,
        reason=decision.reason,
        facts={**facts_json(facts), **start, "tables": tables},
    )


def facts_json(facts: ServerFacts) -> dict[str, Any]:
    return {
        "server_uuid": facts.server_uuid,
        "server_id": facts.server_id,
        "version": facts.version,
        "gtid_mode": facts.gtid_mode,
        "gtid_executed": facts.gtid_executed,
        "gtid_purged": facts.gtid_purged,
        "binlogs": [{"file": str(log.file), "size": log.size} for log in facts.binlogs],
        "head": str(facts.head),
        "read_at": facts.read_at.isoformat(),
    }
