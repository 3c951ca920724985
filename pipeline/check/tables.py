"""Rules about captured tables: patterns that choose them, settings for them, their
keys, engines, kinds, partitions and foreign keys.

Tests on MySQL 9.7 and MariaDB 10.11 showed: rows that a cascade changes in child tables
are logged only if MySQL enforces foreign keys itself instead of InnoDB
(`innodb_native_foreign_keys` is OFF).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    RunEvidence,
    SourceEvidence,
    Verdict,
    about,
)
from lockstep.pipeline.source_plan import given_to, settings_in_words
from lockstep.pipeline.values.engines import engine_of
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.policies import ForeignKeys
from lockstep.pipeline.values.survey import SurveyedForeignKey, grant_statement, place
from lockstep.pipeline.values.table import TableName

_ORDINARY: Final = "BASE TABLE"
_REREAD: Final = (
    'foreign_keys = "resnapshot" under [[sources]] or [[sources.table]] has runs read these tables '
    "again"
)
_ACTIONS: Final = ("CASCADE", "SET NULL", "SET DEFAULT")


def _engines(evidence: SourceEvidence) -> Iterator[Verdict]:
    fine: Counter[str] = Counter()
    for table in evidence.tables:
        if table.kind != _ORDINARY:
            continue
        engine = engine_of(table.engine)
        if engine.level == "ok":
            fine[table.engine] += 1
        elif engine.level == "warning":
            yield Fault(f"{engine.name}: {engine.why}", str(table.name), level="warning")
        else:
            yield Fault(f"{engine.name}: {engine.why}", str(table.name))
    if fine:
        yield Fine(", ".join(f"{name}: {count}" for name, count in sorted(fine.items())))


def _versioned(evidence: SourceEvidence) -> Iterator[Verdict]:
    for table in evidence.tables:
        if table.kind == "SYSTEM VERSIONED":
            yield Fault(
                "system-versioned: old rows stay in the log under the key of the present one",
                str(table.name),
            )


def _sequences(evidence: SourceEvidence) -> Iterator[Verdict]:
    for table in evidence.tables:
        if table.kind == "SEQUENCE":
            yield Fault("a sequence: it is logged as a table without a key", str(table.name))


def _partitions(evidence: SourceEvidence) -> Iterator[Verdict]:
    for table in evidence.tables:
        if table.partitioned:
            yield Fault(
                "partitioned: dropping, truncating or exchanging a partition changes rows with "
                "no row events",
                str(table.name),
            )


def _logs_cascades(evidence: SourceEvidence) -> bool:
    """Return whether the log has the rows that a foreign key's action changes."""
    return evidence.setting("innodb_native_foreign_keys") == "OFF"


def _cascades(evidence: SourceEvidence) -> Iterator[Verdict]:
    captured = {table.name for table in evidence.tables}
    keys = [key for key in evidence.survey.foreign_keys if key.child in captured]
    acting = [key for key in keys if _may_act(key)]
    if acting and not _logs_cascades(evidence):
        reread = {
            key.child
            for key in acting
            if evidence.policies_of(key.child).foreign_keys is ForeignKeys.RESNAPSHOT
        }
        if reread:
            yield Fine("changes by foreign keys are not logged: runs read those tables again")
        for key in (key for key in acting if key.child not in reread or _unseen(key)):
            yield Fault(_cascade(key), f"{key.child} ({key.name})", _cascade_cure(evidence, key))
        yield from _unseen_parents(evidence, captured)
    elif keys:
        yield Fine("changes by foreign keys are logged, or foreign keys change nothing")


def _unseen_parents(evidence: SourceEvidence, captured: Collection[TableName]) -> Iterator[Verdict]:
    """Report ancestors of captured tables whose own foreign keys the account may not
    see."""
    visible = {table.name for table in evidence.survey.tables}
    acting = [key for key in evidence.survey.foreign_keys if _may_act(key)]
    ancestors: set[TableName] = set()
    generation = set(captured)
    while generation:
        ancestors |= generation
        generation = {key.parent for key in acting if key.child in generation} - ancestors
    for parent in sorted(ancestors - visible):
        yield Fault(
            "captured tables refer to it, and the account may not see its own foreign keys: rows "
            "that a cascade through it changes go unnoticed",
            str(parent),
            f"{grant_statement('SELECT', place(parent), evidence.survey.account)};",
        )


def _may_act(key: SurveyedForeignKey) -> bool:
    return _unseen(key) or any(action in _ACTIONS for action in (key.on_update, key.on_delete))


def _unseen(key: SurveyedForeignKey) -> bool:
    return None in (key.on_update, key.on_delete)


def _cascade(key: SurveyedForeignKey) -> str:
    if _unseen(key):
        return "the account may not see whether the foreign key changes rows"
    return "a foreign key's CASCADE, SET NULL or SET DEFAULT changes rows with no row events"


def _cascade_cure(evidence: SourceEvidence, key: SurveyedForeignKey) -> str | None:
    if _unseen(key):
        return f"{grant_statement('REFERENCES', place(key.child), evidence.survey.account)};"
    return None if evidence.setting("innodb_native_foreign_keys") else _REREAD


def _spelling(evidence: SourceEvidence) -> Iterator[Verdict]:
    value = evidence.setting("lower_case_table_names")
    if value == "2":
        yield Fault("lower_case_table_names is 2: the log may spell a table in two ways")
    elif value == "1":
        yield Fine("names are in lower case, so patterns must be")


def _partial(evidence: SourceEvidence) -> Iterator[Verdict]:
    for extent in evidence.partial:
        if evidence.patterns.matches(extent.table):
            yield Fault(extent.sentence, str(extent.table), extent.hint)


def _patterns(evidence: RunEvidence) -> Iterator[Verdict]:
    names = [table.name for table in evidence.tables]
    for pattern in evidence.patterns.idle([*names, *evidence.recorded]):
        yield Fault(
            f"the pattern {pattern!r} matches no table that the account can see",
            pattern,
            f"correct the pattern, or {_grant(pattern, evidence.account)}",
        )


def _grant(pattern: str, account: str | None) -> str:
    """Return the GRANT for the tables of a pattern, or words for it if the pattern has
    a wildcard in its database."""
    database, _, table = pattern.partition(".")
    if account is None or not table or set("*?") & set(database):
        return f"grant SELECT on the tables it means ({pattern})"
    literal = not set("*?") & set(table)
    where = place(TableName(database, table)) if literal else f"`{database.replace('`', '``')}`.*"
    return f"{grant_statement('SELECT', where, account)};"


def _keys(evidence: RunEvidence) -> Iterator[Verdict]:
    captured = [table for table in evidence.tables if evidence.patterns.matches(table.name)]
    keyless = [t.name for t in captured if not t.primary_key and t.name not in evidence.stopped]
    if keyless:
        yield Fault(f"no PRIMARY KEY: {', '.join(map(str, keyless))}", "tables")
    elif captured:
        of_all = f"{len(captured)} of {len(evidence.tables)}"
        yield Fine(f"{of_all} tables are captured, each with a key")


def _stopped(evidence: RunEvidence) -> Iterator[Verdict]:
    for name in sorted(evidence.stopped):
        yield Fault("does not follow the source", str(name))


def _settings(evidence: SourceEvidence) -> Iterator[Verdict]:
    """Report blocks of settings with a pattern or a key that applies to no table."""
    names = {*(table.name for table in evidence.tables), *evidence.known}
    captured = [name for name in names if evidence.patterns.matches(name)]
    for number, block in enumerate(evidence.settings):
        label = f"[[sources.table]] match = {json.dumps(block.match.include)}"
        idle = block.match.idle(captured)
        for pattern in idle:
            yield Fault(f"its pattern {pattern!r} matches no captured table", label)
        if len(idle) == len(block.match.include):
            continue
        matched = [name for name in captured if block.match.matches(name)]
        later = [given_to(name, evidence.settings[number + 1 :]) for name in matched]
        for key in block.policies:
            if matched and all(key in settings for settings in later):
                why = f"its {key!r} applies to no table: later blocks override it for all of them"
                yield Fault(why, label)
    for table, words in settings_in_words(captured, evidence.settings).items():
        yield Fine(words, str(table))


RUN_RULES: Final = about(
    "the tables",
    CheckRule(
        "patterns",
        "tables of the source in lockstep.toml, against the tables the account sees",
        "refusal",
        "a pattern that matches no table is a mistake, or a privilege is missing; one of helper "
        "tables (`shop._*`) is neither",
        "correct the pattern, or grant SELECT on the tables it means",
        _patterns,
        NothingMatches,
    ),
    CheckRule(
        "primary key",
        "the PRIMARY KEY of each captured table",
        "warning",
        "rows are identified by all their columns: each merge compares whole rows, and counts "
        "equal ones",
        "add a PRIMARY KEY to each where merges are slow",
        _keys,
    ),
    CheckRule(
        "stopped tables",
        "the ledger",
        "warning",
        "the table's mirror stands still",
        "`lockstep status` says why",
        _stopped,
    ),
)
CHECK_RULES: Final = about(
    "the tables",
    CheckRule(
        "settings of tables",
        "each [[sources.table]] in lockstep.toml, against the captured tables",
        "refusal",
        "a block, a pattern or a key that applies to no table is a mistake: the table that was "
        "meant is followed by the source's settings",
        "correct or remove it",
        _settings,
        NothingMatches,
    ),
    CheckRule(
        "engine",
        "the ENGINE of each captured table",
        "refusal",
        "the tables of a refused engine differ from what the log says: the table is quarantined",
        "exclude it, or change it: alter table … engine = InnoDB;",
        _engines,
    ),
    CheckRule(
        "system versioning",
        "tables WITH SYSTEM VERSIONING (MariaDB)",
        "refusal",
        "an UPDATE is logged as an update and an insert of the same key",
        "exclude it; alter table … drop system versioning; drops its history for good",
        _versioned,
    ),
    CheckRule(
        "sequences",
        "sequences (MariaDB) that a pattern matches",
        "warning",
        "it would be quarantined at its first row",
        "exclude it",
        _sequences,
    ),
    CheckRule(
        "partitions",
        "partitioned tables",
        "warning",
        "ALTER TABLE … DROP, TRUNCATE or EXCHANGE PARTITION changes rows with no row events",
        "delete rows with DELETE; after such a statement the table must be re-read from MySQL",
        _partitions,
    ),
    CheckRule(
        "foreign keys",
        "foreign keys with CASCADE, SET NULL or SET DEFAULT, and innodb_native_foreign_keys",
        "warning",
        "MariaDB, MySQL versions that leave foreign keys to InnoDB, and MySQL with "
        "innodb_native_foreign_keys=ON do not log what these do to the child's rows: a run that "
        "meets such a change of a parent quarantines the child, or re-reads it",
        "set innodb_native_foreign_keys = OFF in the server's configuration and restart it; where "
        f"the server does not have it: {_REREAD}",
        _cascades,
    ),
    CheckRule(
        "lower_case_table_names",
        "global variable, wanted: 0 or 1",
        "warning",
        "a table may be spelled as it was created or as it was typed",
        "write patterns and statements as SHOW TABLES spells the names",
        _spelling,
    ),
    CheckRule(
        "partial mirrors",
        "tables that had rows before the position where we began to read their log",
        "warning",
        "the mirror has only a part of the table: rows that existed before and have not changed "
        "since are missing",
        "`lockstep verify` shows whether any are missing; a table that it finds equal is complete",
        _partial,
    ),
)
