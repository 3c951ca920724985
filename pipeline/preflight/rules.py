"""The table of all rules, in the order in which a person would fix the faults. A run applies only
rules that need no further question to the server; `check` surveys it.
"""

from __future__ import annotations

from typing import Final

from pipeline.preflight import (
    account,
    column_rules,
    connection,
    keeping,
    log,
    retention,
    sessions,
    shapes,
    tables,
    topology,
)
from pipeline.preflight.evidence import RunEvidence, SourceEvidence
from pipeline.preflight.findings import CheckRule, Finding, judged

RUN_RULES: Final[tuple[CheckRule[RunEvidence], ...]] = (*log.RUN_RULES, *tables.RUN_RULES)
CHECK_RULES: Final[tuple[CheckRule[SourceEvidence], ...]] = (
    *connection.CHECK_RULES,
    *account.CHECK_RULES,
    *log.CHECK_RULES,
    *retention.CHECK_RULES,
    *topology.CHECK_RULES,
    *tables.CHECK_RULES,
    *column_rules.CHECK_RULES,
    *shapes.CHECK_RULES,
    *sessions.CHECK_RULES,
    *keeping.CHECK_RULES,
)

_GRAVEST: Final = {"refusal": 0, "warning": 1, "ok": 2}


def run_findings(evidence: RunEvidence) -> tuple[Finding, ...]:
    """Return the findings of a run before it reads."""
    return tuple(judged(RUN_RULES, evidence))


def check_findings(of_run: RunEvidence, evidence: SourceEvidence) -> tuple[Finding, ...]:
    """Return the findings of all rules: refusals, then warnings, then what is fine."""
    findings = [*judged(RUN_RULES, of_run), *judged(CHECK_RULES, evidence)]
    return tuple(sorted(findings, key=lambda finding: _GRAVEST[finding.level]))
