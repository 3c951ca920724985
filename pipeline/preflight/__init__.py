"""Checks of a source: what a run requires before it reads, and what `lockstep check` reports.

A rule is a pure function from evidence to findings, each with its cure. `require_ready` and
`preflight` gather the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from pipeline.ports.ledger import Ledger
from pipeline.ports.source import SourceServer
from pipeline.preflight.evidence import KeptMirror, RunEvidence, SourceEvidence
from pipeline.preflight.findings import Finding, Level
from pipeline.preflight.retention import pause_from_now
from pipeline.preflight.rules import check_findings, run_findings
from pipeline.table import TableName
from pipeline.table_state import TableState
from pipeline.tables import TablePatterns

__all__ = [
    "Finding",
    "KeptMirror",
    "Level",
    "SourceEvidence",
    "pause_from_now",
    "preflight",
    "require_ready",
]


class _Workplace(Protocol):
    """The parts of a run's workplace that its preflight needs."""

    @property
    def server(self) -> SourceServer: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def source(self) -> _Source: ...


class _Source(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def patterns(self) -> TablePatterns: ...


def require_ready(work: _Workplace) -> None:
    """Raise the first refusal, before anything is read or written."""
    states = work.ledger.table_states(work.source.name)
    server = work.server
    evidence = RunEvidence.of(server.facts(), server.tables(), work.source.patterns, states)
    for finding in run_findings(evidence):
        if finding.error is not None:
            raise finding.error


def preflight(
    server: SourceServer, evidence: SourceEvidence, states: Mapping[TableName, TableState]
) -> tuple[Finding, ...]:
    """Return every finding about a source, gravest first. `evidence`: everything but the
    structures, which are read from the server here; `states`: of the tables in the ledger."""
    of_run = RunEvidence.of(evidence.survey, server.tables(), evidence.patterns, states)
    shaped = [table.name for table in evidence.tables if evidence.shaping.rules_of(table.name)]
    schemas = server.current_schemas(shaped).tables if shaped else {}
    evidence = replace(
        evidence,
        all_structures=server.structures(),
        schemas=[schemas[name] for name in sorted(schemas)],
    )
    return check_findings(of_run, evidence)
