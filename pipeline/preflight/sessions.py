"""Rules about variables that any session may set for itself, whatever the global values.

No check can see future sessions. The current ones are in `performance_schema.variables_by_thread`
(MySQL), if the account may read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.preflight.evidence import SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about

_SURPRISES: Final = {
    "sql_log_bin": (
        ("OFF", "0"),
        "its changes are not in the log at all; `lockstep verify` finds them",
    ),
    "binlog_format": (
        ("STATEMENT", "MIXED"),
        "its changes are logged as statements: captured tables that one reaches are quarantined, "
        "and one that may change any table stops a run",
    ),
    "binlog_row_image": (
        ("MINIMAL", "NOBLOB"),
        "its rows are logged in part: merges look up what is left out, changelogs have NULL there",
    ),
    "binlog_row_value_options": (
        ("PARTIAL_JSON",),
        "its JSON updates are logged in part; tables it changes are quarantined",
    ),
    "skip_replication": (
        ("ON", "1"),
        "its events carry a mark for replicas; they are read all the same",
    ),
    "binlog_transaction_compression": (
        ("ON",),
        "its transactions are compressed, which costs some time and has no other effect",
    ),
}
"""Variable → (values that surprise, their effect)."""

_CURE: Final = (
    "find it (performance_schema.variables_by_thread joined with threads) and end it; take "
    "SESSION_VARIABLES_ADMIN and SUPER from accounts that do not need them"
)
_UNSEEN: Final = "the account may not see the variables of other sessions"
_HARMLESS: Final = frozenset({"skip_replication", "binlog_transaction_compression"})


def _rule(variable: str) -> CheckRule[SourceEvidence]:
    values, cost = _SURPRISES[variable]

    def judge(evidence: SourceEvidence) -> Iterator[Verdict]:
        if variable not in evidence.survey.settings and variable != "sql_log_bin":
            return
        odd = [
            session
            for session in evidence.survey.odd_sessions
            if session.variable == variable and session.value.upper() in values
        ]
        for session in odd:
            sessions = "one session" if session.sessions == 1 else f"{session.sessions} sessions"
            sentence = f"{variable} = {session.value} in {sessions}: {cost}"
            yield Fine(sentence) if variable in _HARMLESS else Fault(sentence)
        if not odd:
            unseen = "odd_sessions" in evidence.survey.unanswered
            yield Fine(_UNSEEN if unseen else "no session differs now")

    return CheckRule(
        f"session {variable}",
        f"sessions with {variable} = {' or '.join(values)}",
        "ok" if variable in _HARMLESS else "warning",
        cost,
        "nothing to do" if variable in _HARMLESS else _CURE,
        judge,
    )


def _gtid_next(evidence: SourceEvidence) -> Iterator[Verdict]:
    if evidence.setting("gtid_mode") not in (None, "OFF"):
        yield Fine("a session may choose its own GTIDs (gtid_next); they are read as they are")


CHECK_RULES: Final = about(
    "sessions",
    *map(_rule, _SURPRISES),
    CheckRule(
        "session gtid_next",
        "gtid_mode",
        "ok",
        "nothing: GTIDs of another server or with a tag are read as they are",
        "nothing to do",
        _gtid_next,
    ),
)
