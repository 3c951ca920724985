"""What must be true of a source before a run reads it, and what `check` tells of it.

Belongs here: rules from values to findings, each with its cure (`rules` is the table of
them), and the two thin shells that gather the values. Does not: asking the server,
printing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from pipeline.keeping import KEEP
from pipeline.policies import ForeignKeys
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import SourceServer
from pipeline.preflight.evidence import KeptMirror, Known, SourceEvidence
from pipeline.preflight.findings import Finding, Level
from pipeline.preflight.retention import pause_from_now
from pipeline.preflight.rules import check_findings, run_findings
from pipeline.source_plan import SnapshotPlan
from pipeline.survey import Survey
from pipeline.table import TableName
from pipeline.table_state import Extent, TableState
from pipeline.tables import NamePatterns, TablePatterns

__all__ = ["Finding", "KeptMirror", "Level", "pause_from_now", "preflight", "require_ready"]


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
    server: SourceServer,
    survey: Survey,
    patterns: TablePatterns,
    states: Mapping[TableName, TableState],
    pause: timedelta | None,
    partial: Sequence[Extent] = (),
    mirrors: Sequence[KeptMirror] = (),
    keep: timedelta = KEEP,
    reading: SnapshotPlan | None = None,
    foreign_keys: ForeignKeys = ForeignKeys.QUARANTINE,
    passes: NamePatterns | None = None,
) -> tuple[Finding, ...]:
    """Every finding about a source, gravest first. `states` are the ledger's, `pause` the
    longest time between two scheduled runs, `partial` the ledger's partial tables, `mirrors`
    those there are, whose versions are promised for `keep`; `reading`: how tables are read;
    `foreign_keys`: what becomes of children whose changes are not logged; `passes`: tables whose
    statements are passed on a person's word."""
    return check_findings(
        Known.of(survey, server.tables(), patterns, states),
        SourceEvidence.of(
            survey,
            patterns,
            server.structures(),
            pause,
            partial,
            mirrors,
            keep,
            reading,
            foreign_keys,
            passes,
        ),
    )
