"""What must be true of a source before a run reads it, and what `check` tells of it.

Belongs here: rules from facts to findings, each with its cure. Does not: asking the
server, printing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.batch import TableCondition
from pipeline.changes.layout import mirror_path
from pipeline.errors import (
    KeylessTable,
    LockstepError,
    NothingMatches,
    ServerSettings,
    TableError,
)
from pipeline.ports import Ledger, ServerFacts, SourceServer, SourceTable
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName, TableStructure
from pipeline.tables import TablePatterns


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the preflight: "ok", "warning" or "refusal", about `subject`. A
    refusal's `error` is what a run would raise."""

    level: str
    subject: str
    sentence: str
    hint: str | None = None
    error: LockstepError | None = None


class _Checked(Protocol):
    """What the preflight reads of a workplace."""

    @property
    def server(self) -> SourceServer: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def source(self) -> _CheckedSource: ...


class _CheckedSource(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def patterns(self) -> TablePatterns: ...


_REQUIRED = (
    ("binlog_format", "ROW", "statements instead of rows would be logged"),
    ("binlog_row_image", "FULL", "rows would be logged in part"),
    ("binlog_row_metadata", "FULL", "rows would be logged without column names"),
    ("binlog_row_value_options", "", "JSON documents would be logged in part"),
)
"""Global settings this version needs; a session may still differ, and is then stopped."""

_DAY = 86_400
_RETENTION_WARNING = 2 * _DAY


def preflight(work: _Checked) -> tuple[Finding, ...]:
    """Every finding about the source, in the order a person would fix them."""
    captured = [s for s in work.server.structures() if work.source.patterns.matches(s.name)]
    return (*_findings(work), *type_findings(captured), *name_findings(captured))


def require_ready(work: _Checked) -> None:
    """Raise the first refusal, before anything is read or written."""
    for finding in _findings(work):
        if finding.error is not None:
            raise finding.error


def _findings(work: _Checked) -> Iterator[Finding]:
    yield from server_findings(work.server.facts())
    states = work.ledger.table_states(work.source.name)
    aside = {t for t, state in states.items() if state.condition is not TableCondition.ACTIVE}
    yield from table_findings(work.server.tables(), work.source.patterns, states, aside)


def server_findings(facts: ServerFacts) -> Iterator[Finding]:
    """Settings of the server."""
    if facts.flavour != "mysql":
        yield _refused(
            "server",
            f"the server is {facts.flavour} {facts.version}, which this version does not read",
            "use MySQL 8.0 or newer",
        )
    for name, wanted, otherwise in _REQUIRED:
        found = facts.settings.get(name, wanted)
        if found.upper() == wanted:
            yield Finding("ok", name, f"{name} = {wanted or repr(wanted)}")
        else:
            yield _refused(
                name,
                f"{name} is {found!r}: {otherwise}",
                f"set global {name} = '{wanted}'; (new sessions follow it; and put it into the "
                "server's configuration)",
            )
    seconds = int(facts.settings.get("binlog_expire_logs_seconds", "0") or 0)
    if 0 < seconds < _RETENTION_WARNING:
        yield Finding(
            "warning",
            "binlog_expire_logs_seconds",
            f"logs are kept for {seconds / _DAY:.1f} days: a longer pause loses the position",
            f"set persist binlog_expire_logs_seconds = {7 * _DAY};",
        )
    else:
        yield Finding(
            "ok", "binlog_expire_logs_seconds", f"logs are kept for {seconds // _DAY} days"
        )
    if facts.gtid_mode != "ON":
        yield Finding(
            "warning",
            "gtid_mode",
            f"gtid_mode is {facts.gtid_mode}: positions are tied to this one server",
            "switch GTIDs on, so that a failover can be followed one day",
        )


def table_findings(
    tables: Sequence[SourceTable],
    patterns: TablePatterns,
    known: Collection[TableName],
    aside: Collection[TableName],
) -> Iterator[Finding]:
    """The captured tables: something matches, and each has a PRIMARY KEY."""
    names = [table.name for table in tables]
    for pattern in patterns.idle([*names, *known]):
        sentence = f"the pattern {pattern!r} matches no table that the account can see"
        hint = f"correct the pattern, or grant SELECT on the tables it means ({pattern})"
        yield Finding("refusal", pattern, sentence, hint, NothingMatches(sentence, hint=hint))
    captured = [table for table in tables if patterns.matches(table.name)]
    keyless = [t.name for t in captured if not t.primary_key and t.name not in aside]
    if keyless:
        listed = ", ".join(str(name) for name in keyless)
        sentence = f"no PRIMARY KEY: {listed}"
        hint = "add a PRIMARY KEY to each, or list them under exclude in lockstep.toml"
        yield Finding("refusal", "tables", sentence, hint, KeylessTable(sentence, hint=hint))
    for name in sorted(aside):
        yield Finding("warning", str(name), "is set aside", "`lockstep status` says why")
    if captured:
        yield Finding("ok", "tables", f"{len(captured)} of {len(tables)} tables are captured")


def type_findings(structures: Sequence[TableStructure]) -> Iterator[Finding]:
    """Tables that would be set aside at their first row, each with its first reason."""
    for structure in structures:
        try:
            arrow_schema(structure)
        except TableError as error:
            sentence = f"would be set aside: {error.reason}"
            yield Finding("warning", str(structure.name), sentence, error.hint)


def name_findings(structures: Sequence[TableStructure]) -> Iterator[Finding]:
    """Tables whose folders are one on a store that folds case. Refused by `check` alone:
    a lake that stands on a store that does not may hold them."""
    folded = defaultdict(list)
    for structure in structures:
        folded[mirror_path("", structure.name).lower()].append(str(structure.name))
    for names in folded.values():
        if len(names) > 1:
            yield Finding(
                "refusal",
                ", ".join(names),
                "differ in case only, and would share a folder on a store that folds case",
                "rename one of them, or exclude it; a lake on a case-sensitive store runs on",
            )


def _refused(subject: str, sentence: str, hint: str) -> Finding:
    return Finding("refusal", subject, sentence, hint, ServerSettings(sentence, hint=hint))
