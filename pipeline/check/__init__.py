"""Checks of a source: what a run requires before it reads, and the report of `lockstep
check`.

A rule is a pure function from evidence (facts about the source) to findings, each with
its cure. The table of all rules is here, in the order in which a person would fix the
faults. A run applies only rules whose facts it has anyway; `lockstep check` asks the
server for the facts of all rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from lockstep.pipeline.check import account, connection, log, mirrors, tables
from lockstep.pipeline.check.findings import (
    CheckRule,
    Finding,
    MirrorEvidence,
    RunEvidence,
    SourceEvidence,
    findings_of,
)
from lockstep.pipeline.check.log import longest_pause_from_now
from lockstep.pipeline.model.table_state import StoppedTable, TableCondition, TableState
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.table import TableName, TablePatterns

__all__ = [
    "CHECK_RULES",
    "RUN_RULES",
    "Finding",
    "MirrorEvidence",
    "SourceEvidence",
    "check_findings",
    "invisible_tables",
    "longest_pause_from_now",
    "preflight",
    "recorded_columns",
    "require_ready",
    "run_findings",
]

RUN_RULES: Final[tuple[CheckRule[RunEvidence], ...]] = (*log.RUN_RULES, *tables.RUN_RULES)
CHECK_RULES: Final[tuple[CheckRule[SourceEvidence], ...]] = (
    *connection.CONNECTION_RULES,
    *account.CHECK_RULES,
    *log.CHECK_RULES,
    *log.RETENTION_RULES,
    *connection.REPLICATION_RULES,
    *tables.CHECK_RULES,
    *mirrors.COLUMN_RULES,
    *mirrors.SHAPE_RULES,
    *connection.SESSION_RULES,
    *mirrors.MIRROR_RULES,
)

_INVISIBLE_REASON: Final = (
    "the account cannot see it: its changes come from the log, and nobody can compare it with "
    "MySQL or re-read it"
)

ColumnNames = Mapping[TableName, Collection[str]]

_LEVEL_ORDER: Final = {"refusal": 0, "warning": 1, "ok": 2}
"""The order in which findings are listed, by level."""


def run_findings(evidence: RunEvidence) -> tuple[Finding, ...]:
    """Return the findings of a run before it reads."""
    return tuple(findings_of(RUN_RULES, evidence))


def check_findings(run_evidence: RunEvidence, evidence: SourceEvidence) -> tuple[Finding, ...]:
    """Return the findings of all rules: refusals, then warnings, then what is fine."""
    findings = [*findings_of(RUN_RULES, run_evidence), *findings_of(CHECK_RULES, evidence)]
    return tuple(sorted(findings, key=lambda finding: _LEVEL_ORDER[finding.level]))


def require_ready(
    server: SourceServer, ledger: Ledger, source: SourcePlan
) -> tuple[StoppedTable, ...]:
    """Raise the first refusal, before anything is read or written. Return the captured
    tables that the account cannot see."""
    states = ledger.table_states(source.name)
    evidence = RunEvidence.of(server.facts(), server.tables(), source.patterns, states)
    for finding in run_findings(evidence):
        if finding.error is not None:
            raise finding.error
    visible_tables = {table.name for table in evidence.tables}
    _require_known_names(server, ledger, source, visible_tables)
    return invisible_tables(server, source.patterns, states, visible_tables)


def invisible_tables(
    server: SourceServer,
    patterns: TablePatterns,
    states: Mapping[TableName, TableState],
    visible_tables: Collection[TableName],
) -> tuple[StoppedTable, ...]:
    """Return the captured tables that the account cannot see, each with the GRANT as
    its hint. A table that the server does not have is left out: a DROP of it waits in
    the log. The server is asked only about tables that are not in `visible_tables`."""
    doubtful_tables = [
        table
        for table, state in sorted(states.items())
        if state.condition is not TableCondition.DROPPED
        and table not in visible_tables
        and patterns.matches(table)
    ]
    grants = server.missing_grants(doubtful_tables) if doubtful_tables else {}
    return tuple(
        StoppedTable(table, _INVISIBLE_REASON, f"{grant};", "") for table, grant in grants.items()
    )


def _require_known_names(
    server: SourceServer, ledger: Ledger, source: SourcePlan, visible_tables: Collection[TableName]
) -> None:
    """Raise `ConfigurationError` if a block of settings hides a column by a name that
    no column of the block's tables has or had: the column that was meant would be
    shown. A block that matches no known table is passed over. The history is asked
    first, and the server only for names that the history does not have."""
    blocks = list(source.table_settings)

    def newest_columns() -> ColumnNames:
        # One version of each table suffices for most names; `shaped` leaves out the
        # tables without such settings.
        return _column_names(ledger.schemas_at(source.name, shaped=True))

    def server_columns() -> ColumnNames:
        captured = filter(source.patterns.matches, visible_tables)
        tables = [name for name in captured if any(block.match.matches(name) for block in blocks)]
        schemas = server.current_schemas(tables).tables if tables else {}
        return {name: {*map(str.lower, schema.names)} for name, schema in schemas.items()}

    names_by_table: dict[TableName, set[str]] = {}
    for read in (newest_columns, partial(recorded_columns, ledger, source), server_columns):
        blocks = [block for block in blocks if mirrors.unknown_names(block, names_by_table)]
        if not blocks:
            return
        for table, names in read().items():
            names_by_table.setdefault(table, set()).update(names)
    for block in blocks:
        if any(map(block.match.matches, names_by_table)):
            for setting, name in mirrors.unknown_names(block, names_by_table):
                raise ConfigurationError(
                    f"{block.label}: {mirrors.unknown_sentence(setting, name)}",
                    hint=mirrors.UNKNOWN_NAME_HINT,
                )


def recorded_columns(ledger: Ledger, source: SourcePlan) -> ColumnNames:
    """Return the names of all columns, in lower case, that the tables with settings
    have or had, by the versions that the ledger recorded."""
    states = ledger.table_states(source.name)
    tables = [name for name in states if source.shape_rules_of(name) is not None]
    return _column_names(ledger.schema_versions(source.name, *tables)) if tables else {}


def _column_names(versions: Iterable[SchemaVersion]) -> ColumnNames:
    """Return the names of the columns of each table's versions, in lower case."""
    names: dict[TableName, set[str]] = {}
    for version in versions:
        if version.schema is not None:
            names.setdefault(version.table, set()).update(map(str.lower, version.schema.names))
    return names


def preflight(
    server: SourceServer, evidence: SourceEvidence, states: Mapping[TableName, TableState]
) -> tuple[Finding, ...]:
    """Return every finding about a source, gravest first. `evidence`: all facts except
    `all_structures`, `schemas_to_shape` and `invisible_tables`, for which this function
    asks the server. `states`: the states of the tables in the ledger."""
    run_evidence = RunEvidence.of(evidence.survey, server.tables(), evidence.plan.patterns, states)
    visible_tables = {table.name for table in run_evidence.tables}
    names = [table.name for table in evidence.tables if evidence.shaping.rules_of(table.name)]
    schemas = server.current_schemas(names).tables if names else {}
    evidence = replace(
        evidence,
        all_structures=server.structures(),
        schemas_to_shape=[schemas[name] for name in sorted(schemas)],
        invisible_tables=invisible_tables(server, evidence.plan.patterns, states, visible_tables),
    )
    return check_findings(run_evidence, evidence)
