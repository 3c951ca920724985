"""Rules about the captured tables as a whole: engine, kind, partitions, foreign keys.

Measured on MySQL 9.7 and MariaDB 10.11: rows that a cascade changes in the children are
logged only where MySQL itself keeps foreign keys (`innodb_native_foreign_keys` is OFF).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from pipeline.engines import engine_of
from pipeline.errors import NothingMatches
from pipeline.grants import grant_statement, place
from pipeline.policies import ForeignKeys
from pipeline.preflight.evidence import Known, SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about
from pipeline.source_plan import given_to, settings_in_words
from pipeline.survey import SurveyedForeignKey
from pipeline.table import TableName

_ORDINARY: Final = "BASE TABLE"
_REREAD: Final = (
    'foreign_keys = "resnapshot" under [[sources]] or [[sources.table]] has runs read these tables '
    "again"
)
_ACTIONS: Final = ("CASCADE", "SET NULL", "SET DEFAULT")


def _engines(looked: SourceEvidence) -> Iterator[Verdict]:
    fine: Counter[str] = Counter()
    for table in looked.tables:
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


def _versioned(looked: SourceEvidence) -> Iterator[Verdict]:
    for table in looked.tables:
        if table.kind == "SYSTEM VERSIONED":
            yield Fault(
                "system-versioned: old rows stay in the log under the key of the present one",
                str(table.name),
            )


def _sequences(looked: SourceEvidence) -> Iterator[Verdict]:
    for table in looked.tables:
        if table.kind == "SEQUENCE":
            yield Fault("a sequence: it is logged as a table without a key", str(table.name))


def _partitions(looked: SourceEvidence) -> Iterator[Verdict]:
    for table in looked.tables:
        if table.partitioned:
            yield Fault(
                "partitioned: dropping, truncating or exchanging a partition changes rows with "
                "no row events",
                str(table.name),
            )


def logs_cascades(looked: SourceEvidence) -> bool:
    """Whether rows that a foreign key's action changes are in the log."""
    return looked.setting("innodb_native_foreign_keys") == "OFF"


def _cascades(looked: SourceEvidence) -> Iterator[Verdict]:
    captured = {table.name for table in looked.tables}
    keys = [key for key in looked.survey.foreign_keys if key.child in captured]
    acting = [key for key in keys if _may_act(key)]
    if acting and not logs_cascades(looked):
        reread = {key.child for key in acting if _is_reread(looked, key.child)}
        if reread:
            yield Fine("what foreign keys change is not logged: runs read those tables again")
        for key in (key for key in acting if key.child not in reread or _unseen(key)):
            yield Fault(_cascade(key), f"{key.child} ({key.name})", _cascade_cure(looked, key))
        yield from _unseen_parents(looked, captured)
    elif keys:
        yield Fine("what foreign keys change is logged, or they change nothing")


def _is_reread(looked: SourceEvidence, child: TableName) -> bool:
    return looked.policies_of(child).foreign_keys is ForeignKeys.RESNAPSHOT


def _unseen_parents(looked: SourceEvidence, captured: Collection[TableName]) -> Iterator[Verdict]:
    """Tables above captured ones whose own foreign keys the account may not see."""
    seen = {table.name for table in looked.survey.tables}
    acting = [key for key in looked.survey.foreign_keys if _may_act(key)]
    above: set[TableName] = set()
    waiting = set(captured)
    while waiting:
        above |= waiting
        waiting = {key.parent for key in acting if key.child in waiting} - above
    for parent in sorted(above - seen):
        yield Fault(
            "captured tables refer to it, and the account may not see what it refers to itself: "
            "rows lost together with those of a table further above go unnoticed",
            str(parent),
            f"{grant_statement('SELECT', place(parent), looked.survey.account)};",
        )


def _may_act(key: SurveyedForeignKey) -> bool:
    return _unseen(key) or any(action in _ACTIONS for action in (key.on_update, key.on_delete))


def _unseen(key: SurveyedForeignKey) -> bool:
    return None in (key.on_update, key.on_delete)


def _cascade(key: SurveyedForeignKey) -> str:
    if _unseen(key):
        return "the account may not see whether the foreign key changes rows"
    return "a foreign key's CASCADE, SET NULL or SET DEFAULT changes rows with no row events"


def _cascade_cure(looked: SourceEvidence, key: SurveyedForeignKey) -> str | None:
    if _unseen(key):
        return f"{grant_statement('REFERENCES', place(key.child), looked.survey.account)};"
    return None if looked.setting("innodb_native_foreign_keys") else _REREAD


def _spelling(looked: SourceEvidence) -> Iterator[Verdict]:
    value = looked.setting("lower_case_table_names")
    if value == "2":
        yield Fault("lower_case_table_names is 2: the log may spell a table in two ways")
    elif value == "1":
        yield Fine("names are in lower case, so patterns must be")


def _partial(looked: SourceEvidence) -> Iterator[Verdict]:
    for extent in looked.partial:
        if looked.patterns.matches(extent.table):
            yield Fault(extent.sentence, str(extent.table), extent.hint)


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


def _settings(looked: SourceEvidence) -> Iterator[Verdict]:
    """Each block, pattern and key of a block holds for some table."""
    names = {*(table.name for table in looked.tables), *looked.known}
    captured = [name for name in names if looked.patterns.matches(name)]
    for number, block in enumerate(looked.settings):
        label = f"[[sources.table]] match = {json.dumps(block.match.include)}"
        idle = block.match.idle(captured)
        for pattern in idle:
            yield Fault(f"its pattern {pattern!r} matches no captured table", label)
        if len(idle) == len(block.match.include):
            continue
        own = [name for name in captured if block.match.matches(name)]
        later = [given_to(name, looked.settings[number + 1 :]) for name in own]
        for key in block.policies:
            if own and all(key in given for given in later):
                why = f"its {key!r} holds for no table: later blocks say otherwise of all of them"
                yield Fault(why, label)
    for table, words in settings_in_words(captured, looked.settings).items():
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
        "rows are told apart by all their columns: each merge compares whole rows, and counts "
        "equal ones",
        "add a PRIMARY KEY to each where merges are slow",
        _keys,
    ),
    CheckRule(
        "quarantined",
        "the ledger",
        "warning",
        "the table's mirror stands still",
        "`lockstep status` says why",
        _quarantined,
    ),
)
CHECK_RULES: Final = about(
    "the tables",
    CheckRule(
        "settings of tables",
        "each [[sources.table]] in lockstep.toml, against the captured tables",
        "refusal",
        "a block, a pattern or a key that holds for no table is a mistake: the table that was "
        "meant is followed as the source says",
        "correct or remove it",
        _settings,
        NothingMatches,
    ),
    CheckRule(
        "engine",
        "the ENGINE of each captured table",
        "refusal",
        "what a refused engine keeps is not what the log says: the table is quarantined",
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
        "tables that had rows before the place where we began to read their log",
        "warning",
        "the mirror has only part of the table: rows that were there before, and have not changed "
        "since, are missing",
        "`lockstep verify` shows whether any are missing; a table that it finds equal is complete",
        _partial,
    ),
)
