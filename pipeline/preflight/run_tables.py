"""Rules about the captured tables that a run looks at before it reads.

Belongs here: what is known without a survey. The rest is `tables` and `columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.errors import NothingMatches
from pipeline.grants import grant_statement, place
from pipeline.preflight.evidence import Known
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict
from pipeline.table import TableName

TOPIC: Final = "the tables"


def _patterns(known: Known) -> Iterator[Verdict]:
    names = [table.name for table in known.tables]
    for pattern in known.patterns.idle([*names, *known.known]):
        yield Fault(
            f"the pattern {pattern!r} matches no table that the account can see",
            pattern,
            f"correct the pattern, or {_grant(pattern, known.account)}",
        )


def _grant(pattern: str, account: str | None) -> str:
    """The GRANT for the tables that a pattern means, if it names one database."""
    database, _, table = pattern.partition(".")
    if account is None or not table or set("*?") & set(database):
        return f"grant SELECT on the tables it means ({pattern})"
    literal = not set("*?") & set(table)
    where = place(TableName(database, table)) if literal else f"`{database.replace('`', '``')}`.*"
    return f"{grant_statement('SELECT', where, account)};"


def _keys(known: Known) -> Iterator[Verdict]:
    captured = [table for table in known.tables if known.patterns.matches(table.name)]
    keyless = [t.name for t in captured if not t.primary_key and t.name not in known.quarantined]
    if keyless:
        yield Fault(f"no PRIMARY KEY: {', '.join(map(str, keyless))}", "tables")
    elif captured:
        yield Fine(f"{len(captured)} of {len(known.tables)} tables are captured, each with a key")


def _quarantined(known: Known) -> Iterator[Verdict]:
    for name in sorted(known.quarantined):
        yield Fault("is quarantined", str(name))


RUN_RULES: Final = (
    CheckRule(
        "patterns",
        TOPIC,
        "tables of the source in lockstep.toml, against the tables the account sees",
        "refusal",
        "a pattern that matches no table is a mistake, or a privilege is missing",
        "correct the pattern, or grant SELECT on the tables it means",
        _patterns,
        NothingMatches,
    ),
    CheckRule(
        "primary key",
        TOPIC,
        "the PRIMARY KEY of each captured table",
        "warning",
        "rows are told apart by all their columns: each merge compares whole rows, and counts "
        "equal ones",
        "add a PRIMARY KEY to each where merges are slow",
        _keys,
    ),
    CheckRule(
        "quarantined",
        TOPIC,
        "the ledger",
        "warning",
        "the table's mirror stands still",
        "`lockstep status` says why",
        _quarantined,
    ),
)
