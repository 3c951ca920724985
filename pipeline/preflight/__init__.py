"""What must be true of a source before a run reads it, and what `check` tells of it.

Belongs here: rules from values to findings, each with its cure (`rules` is the table of
them), and the two thin shells that gather the values. Does not: asking the server,
printing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from pipeline.ports.ledger import Ledger
from pipeline.ports.source import SourceServer
from pipeline.preflight.evidence import KeptMirror, Known, SourceEvidence
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
    """What a run's preflight reads of its workplace."""

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
    for finding in run_findings(
        Known.of(server.facts(), server.tables(), work.source.patterns, states)
    ):
        if finding.error is not None:
            raise finding.error


def preflight(
    server: SourceServer, looked: SourceEvidence, states: Mapping[TableName, TableState]
) -> tuple[Finding, ...]:
    """Every finding about a source, gravest first. `looked`: all but the structures, which the
    server is asked for here; `states` are the ledger's."""
    known = Known.of(looked.survey, server.tables(), looked.patterns, states)
    own = [table.name for table in looked.tables if looked.shaping.rules_of(table.name)]
    schemas = server.current_schemas(own).tables if own else {}
    structures = server.structures()
    looked = replace(
        looked, all_structures=structures, schemas=[schemas[name] for name in sorted(schemas)]
    )
    return check_findings(known, looked)
