"""The table of all rules, in the order a person would fix them. A run asks only what it knows
anyway; `check` may take a survey.
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
from pipeline.preflight.evidence import Known, SourceEvidence
from pipeline.preflight.findings import CheckRule, Finding, judged

RUN_RULES: Final[tuple[CheckRule[Known], ...]] = (*log.RUN_RULES, *tables.RUN_RULES)
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


def run_findings(known: Known) -> tuple[Finding, ...]:
    """What a run finds before it reads."""
    return tuple(judged(RUN_RULES, known))


def check_findings(known: Known, looked: SourceEvidence) -> tuple[Finding, ...]:
    """Every rule's findings: refusals, then warnings, then what is fine."""
    findings = [*judged(RUN_RULES, known), *judged(CHECK_RULES, looked)]
    return tuple(sorted(findings, key=lambda finding: _GRAVEST[finding.level]))
