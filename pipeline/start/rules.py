"""The start rules in their order, as a table that `docs/how-it-works.md` shows, and the
decision.

Each row says which cursor its rule needs (the cursor is the place up to which the
source was read). `answers` has the rule's other conditions and its messages. A batch is
what one run read of the log, and its segments are files with the changes of one table
each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.start import answers
from lockstep.pipeline.start.question import (
    AnchorReading,
    Answer,
    Question,
    Refusal,
    SetReading,
    Start,
    StartRule,
)
from lockstep.pipeline.values.decisions import START_KIND, AttemptOutcome, Decision
from lockstep.pipeline.values.position import Anchor, Coordinates, SetAnchor
from lockstep.pipeline.values.table import TablePatterns

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
        answers.choice_unreachable,
    ),
    Row(
        StartRule.CHOSEN_START_BEHIND,
        "any; a place was chosen",
        "transactions after the place were read before",
        "refuse `StartBehindCursor`: nothing is read twice",
        answers.choice_before_cursor,
    ),
    Row(
        StartRule.CHOSEN_START,
        "not required; a place was chosen",
        "the place is on this server",
        "start there; a jump forward writes a gap record that names the tables",
        answers.chosen,
    ),
    Row(
        StartRule.HISTORY_REWRITTEN,
        "of this server",
        "the anchor differs; or the newest file is older than the cursor's, or has another "
        "name; or the file is shorter; or the server's set does not contain the cursor's "
        "(asked again for up to 30 s)",
        "refuse `HistoryRewritten`",
        answers.history_rewritten,
    ),
    Row(
        StartRule.SET_REUSED,
        _CURSOR_BY_GTID,
        "this server's log has another transaction under a GTID of the cursor's set",
        "refuse `HistoryRewritten`, with its GTID",
        answers.set_reused,
    ),
    Row(
        StartRule.RESUME_SAME_SERVER,
        "of this server",
        "the file is listed, and the anchor is the same",
        "resume at file and offset, whatever `gtid_mode`",
        answers.resume_same_server,
    ),
    Row(
        StartRule.SET_UNPROVEN,
        _CURSOR_WITHIN_GTIDS,
        "the last transaction that was read is purged; the server is another one, or was restarted "
        "or reset since: nothing shows that its history is the one that was read",
        "refuse `HistoryUnproven`; somebody may confirm that it is: "
        "`lockstep start-at gtid:<set> --reason …`",
        answers.set_unproven,
    ),
    Row(
        StartRule.RESUME_AFTER_PURGE,
        "of this server, may be resumed by GTID",
        "the file is gone, `gtid_mode` is ON, the purged set lies within the cursor's",
        "resume after the cursor's set",
        answers.resume_after_purge,
    ),
    Row(
        StartRule.TABLES_READ_AGAIN,
        "any",
        '`on_position_lost = "resnapshot"`; either the file is gone, or another server executed '
        "the cursor's set and purged transactions that are not in it",
        "start at the log's head, after a gap; every table is read from the source",
        answers.tables_read_again,
    ),
    Row(
        StartRule.POSITION_PURGED,
        "of this server",
        "the file is gone",
        "refuse `PositionPurged`",
        answers.position_purged,
    ),
    Row(
        StartRule.RESUME_OTHER_SERVER,
        "of another server, may be resumed by GTID",
        "`gtid_mode` is ON, the cursor's set lies within the executed one, the purged one "
        "within the cursor's",
        "resume after the cursor's set; this server is added to the source's servers",
        answers.resume_other_server,
    ),
    Row(
        StartRule.SOURCE_DIVERGED,
        "of another server, may be resumed by GTID",
        "`gtid_mode` is ON, the executed set lacks part of the cursor's",
        "refuse `SourceDiverged`, with the GTIDs that are missing",
        answers.source_diverged,
    ),
    Row(
        StartRule.PURGED_ON_OTHER_SERVER,
        "of another server, may be resumed by GTID",
        "`gtid_mode` is ON, the purged set holds more than the cursor's",
        "refuse `PositionPurged`",
        answers.purged_on_other_server,
    ),
    Row(
        StartRule.SEARCH_BY_TIME,
        "of another server, with a commit time; may not be resumed by GTID",
        '`on_source_changed = "timestamp"`',
        "search for the cursor's commit time less `fallback_interval`; if the log begins after "
        "that moment, but before the commit time, start at its beginning; the overlap is recorded",
        answers.search_by_time,
    ),
    Row(
        StartRule.SOURCE_CHANGED,
        "of another server; may not be resumed by GTID",
        "",
        "refuse `SourceChanged`",
        answers.source_changed,
    ),
    Row(
        StartRule.CONFIGURED_SET_PURGED,
        "none",
        "`start` is a GTID set, and the purged set holds more",
        "refuse `PositionPurged`",
        answers.configured_set_purged,
    ),
    Row(
        StartRule.CONFIGURED_SET_DIVERGED,
        "none",
        "`start` is a GTID set, and the executed set lacks part of it",
        "refuse `SourceDiverged`",
        answers.configured_set_diverged,
    ),
    Row(
        StartRule.START_UNREACHABLE,
        "none",
        "`start` names a file that is not listed, or an offset beyond it",
        "refuse `StartUnreachable`",
        answers.configured_unreachable,
    ),
    Row(
        StartRule.CONFIGURED_SET,
        "none",
        "`start` is a GTID set between the purged and the executed one",
        "start after it",
        answers.configured,
    ),
    Row(
        StartRule.CONFIGURED_COORDINATES,
        "none",
        "`start` is `file:offset`",
        "start there, or at the beginning of the transaction around it; if the offset is inside an "
        "event, refuse `NotAnEventBoundary`",
        answers.configured,
    ),
    Row(
        StartRule.CONFIGURED_MOMENT_IN_FILE,
        "none",
        "`start` is `file@moment`",
        "start at the file's first transaction at or after the moment, else at its beginning",
        answers.configured,
    ),
    Row(
        StartRule.CONFIGURED_MOMENT,
        "none",
        "`start` is a moment",
        "start at the first transaction at or after it; if it lies before the log's beginning, or "
        "in the future, refuse `MomentOutOfRange`",
        answers.configured,
    ),
    Row(
        StartRule.CONFIGURED_SNAPSHOT,
        "none",
        '`start = "snapshot"`',
        "start at the log's head; tables that have rows are read from the source",
        answers.configured,
    ),
    Row(
        StartRule.CONFIGURED_EARLIEST,
        "none",
        '`start = "earliest"`',
        "start at the first transaction of the oldest file",
        answers.configured,
    ),
    Row(
        StartRule.CONFIGURED_LATEST,
        "none",
        '`start = "latest"`',
        "start at the log's head",
        answers.configured,
    ),
    Row(
        StartRule.START_NOT_CHOSEN,
        "none",
        "nothing is configured",
        "refuse `StartNotChosen`",
        answers.not_configured,
    ),
    Row(
        StartRule.NO_RULE_APPLIES,
        "any other",
        "",
        "refuse `NoRuleApplies`, with the facts",
        answers.no_rule,
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
