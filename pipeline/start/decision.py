"""Taking the decision, and writing it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.decisions import AttemptOutcome, Decision
from pipeline.json_values import to_json
from pipeline.position import Coordinates, SetWitness, Witness
from pipeline.start.question import Question, Refusal, SetReading, Start, WitnessReading
from pipeline.start.rules import TABLE
from pipeline.tables import TablePatterns


def decide_start(asked: Question) -> Start | Refusal:
    """The first rule of the table that applies; total, and pure."""
    for row in TABLE:
        answer = row.answer(asked)
        if answer is not None:
            return answer if isinstance(answer, Start) else Refusal(row.rule, answer)
    raise AssertionError("the last rule always applies")


def compare_witness(expected: Witness, witness: Witness | None) -> WitnessReading:
    """What was recorded beside what the log shows now; None if it shows no event there.

    The GTID is not compared: it stands in another event of the same transaction.
    """
    if witness is not None and replace(witness, gtid=expected.gtid) == expected:
        return WitnessReading.SAME
    return WitnessReading.DIFFERENT


def compare_set(
    kept: Sequence[SetWitness], witnesses: Mapping[str, SetWitness]
) -> tuple[SetReading, str]:
    """What was kept of the transactions read, the last one first, beside those that the log
    shows under the same GTIDs; the GTID of one that is another.

    The last one that was read must be there, and stands for what was read before it: the
    log of a server that lives on has no more of that. Of every other source the last one
    must be the same where the log still has it.
    """
    if not kept:
        return SetReading.NOT_KEPT, ""
    other = next(
        (witness.gtid for witness in kept if witnesses.get(witness.gtid, witness) != witness), None
    )
    if other is not None:
        return SetReading.DIFFERENT, other
    return (SetReading.SAME if kept[0].gtid in witnesses else SetReading.PURGED), ""


def recorded(
    decision: Start | Refusal,
    asked: Question,
    patterns: TablePatterns,
    *,
    at: Coordinates | None = None,
    tables: Sequence[str] = (),
) -> Decision:
    """A decision as the ledger keeps it, with the facts it was drawn from. `at`: where the
    start was found to lie; `tables`: those that a gap may have touched."""
    rows: dict[str, Any] = {
        "tables": {"include": list(patterns.include), "exclude": list(patterns.exclude)},
        "witness": asked.witness.value,
        "set": asked.known.value,
        "cursor": str(asked.cursor.position) if asked.cursor else None,
        "after": asked.cursor.batch if asked.cursor else 0,
    }
    if at is not None:
        rows["at"] = str(at)
    if isinstance(decision, Refusal):
        error = {"error": type(decision.error).__name__, "hint": decision.error.hint}
        return Decision(
            kind=AttemptOutcome.REFUSED.value,
            rule=decision.rule.value,
            reason=decision.reason,
            facts={**to_json(asked.facts), **rows, **error},
            recovery=decision.error.recovery,
            hint=decision.error.hint,
        )
    return Decision(
        kind="start",
        rule=decision.rule.value,
        reason=decision.reason,
        facts={**to_json(asked.facts), **rows},
        author=asked.override.author if asked.override else "lockstep",
        follows=decision.follows,
        continuity=decision.continuity,
        gap_tables=tuple(tables),
        override=decision.override,
    )
