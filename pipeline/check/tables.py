"""Rules about captured tables: patterns that choose them, settings for them, their
keys, engines, kinds, partitions and foreign keys.

Tests on MySQL 9.7 and MariaDB 10.11 showed: rows that a cascade changes in child tables
are logged only if MySQL enforces foreign keys itself instead of InnoDB
(`innodb_native_foreign_keys` is OFF).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final

from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    RuleVerdict,
    RunEvidence,
    SourceEvidence,
    with_topic,
)
from lockstep.pipeline.schema.model import ROW_CHANGING_ACTIONS
from lockstep.pipeline.source_plan import policies_given_to, settings_in_words
from lockstep.pipeline.values.engines import engine_of
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.policies import ForeignKeys
from lockstep.pipeline.values.survey import SurveyedForeignKey, SurveyedTable, grant_statement
from lockstep.pipeline.values.table import TableName, has_wildcard, quoted, quoted_table

_BASE_TABLE: Final = "BASE TABLE"
_REREAD_CURE: Final = (
    'foreign_keys = "resnapshot" under [[sources]] or [[sources.table]] has runs read these tables '
    "again"
)


def _judge_engines(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    table_counts: Counter[str] = Counter()
    for table in evidence.tables:
        if table.kind != _BASE_TABLE:
            continue
        engine = engine_of(table.engine)
        if engine.level == "ok":
            table_counts[table.engine] += 1
        else:
            sentence = f"{engine.name}: {engine.reason}"
            yield Fault(sentence, str(table.name), level=engine.level)
    if table_counts:
        yield Fine(", ".join(f"{name}: {count}" for name, count in sorted(table_counts.items())))


def _judge_each(
    is_at_fault: Callable[[SurveyedTable], bool], sentence: str
) -> Callable[[SourceEvidence], Iterator[RuleVerdict]]:
    """Return a judge that reports each captured table for which `is_at_fault` is true."""

    def judge(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
        for table in evidence.tables:
            if is_at_fault(table):
                yield Fault(sentence, str(table.name))

    return judge


def _judge_foreign_keys(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    captured = {table.name for table in evidence.tables}
    keys = [key for key in evidence.survey.foreign_keys if key.child in captured]
    acting_keys = [key for key in keys if _may_change_rows(key)]
    are_logged = evidence.variable("innodb_native_foreign_keys") == "OFF"
    if acting_keys and not are_logged:
        reread_tables = {
            key.child
            for key in acting_keys
            if evidence.plan.policies_of(key.child).foreign_keys is ForeignKeys.RESNAPSHOT
        }
        if reread_tables:
            yield Fine("changes by foreign keys are not logged: runs read those tables again")
        for key in acting_keys:
            if key.child not in reread_tables or _has_hidden_actions(key):
                subject = f"{key.child} ({key.name})"
                yield Fault(_cascade_sentence(key), subject, _cascade_cure(evidence, key))
        yield from _judge_hidden_parents(evidence, captured)
    elif keys:
        yield Fine("changes by foreign keys are logged, or foreign keys change nothing")


def _judge_hidden_parents(
    evidence: SourceEvidence, captured: Collection[TableName]
) -> Iterator[RuleVerdict]:
    """Report ancestors of captured tables whose own foreign keys the account cannot
    see."""
    visible = {table.name for table in evidence.survey.tables}
    acting_keys = [key for key in evidence.survey.foreign_keys if _may_change_rows(key)]
    ancestors: set[TableName] = set()
    new_ancestors = set(captured)
    while new_ancestors:
        ancestors |= new_ancestors
        parents = {key.parent for key in acting_keys if key.child in new_ancestors}
        new_ancestors = parents - ancestors
    for parent in sorted(ancestors - visible):
        yield Fault(
            "captured tables refer to it, and the account cannot see its own foreign keys: rows "
            "that a cascade through it changes go unnoticed",
            str(parent),
            f"{grant_statement('SELECT', quoted_table(parent), evidence.survey.account)};",
        )


def _may_change_rows(key: SurveyedForeignKey) -> bool:
    actions = (key.on_update, key.on_delete)
    return _has_hidden_actions(key) or any(action in ROW_CHANGING_ACTIONS for action in actions)


def _has_hidden_actions(key: SurveyedForeignKey) -> bool:
    return None in (key.on_update, key.on_delete)


def _cascade_sentence(key: SurveyedForeignKey) -> str:
    if _has_hidden_actions(key):
        return "the account cannot see whether the foreign key changes rows"
    return "a foreign key's CASCADE, SET NULL or SET DEFAULT changes rows with no row events"


def _cascade_cure(evidence: SourceEvidence, key: SurveyedForeignKey) -> str | None:
    """Return the cure; None for the rule's own, if the server has the variable in it."""
    if _has_hidden_actions(key):
        table = quoted_table(key.child)
        return f"{grant_statement('REFERENCES', table, evidence.survey.account)};"
    return None if evidence.variable("innodb_native_foreign_keys") else _REREAD_CURE


def _judge_name_case(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    value = evidence.variable("lower_case_table_names")
    if value == "2":
        yield Fault(
            "lower_case_table_names is 2: a table is quarantined if its name, or that of its "
            "database, has capital letters"
        )
    elif value == "1":
        yield Fine("names are in lower case, so patterns must be")


def _judge_extents(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for extent in evidence.extents:
        if evidence.plan.patterns.matches(extent.table):
            yield Fault(extent.sentence, str(extent.table), extent.hint)


def _judge_patterns(evidence: RunEvidence) -> Iterator[RuleVerdict]:
    names = [table.name for table in evidence.tables]
    for pattern in evidence.patterns.unmatched_patterns([*names, *evidence.ledger_tables]):
        yield Fault(
            f"the pattern {pattern!r} matches no table that the account can see",
            pattern,
            f"correct the pattern, or {_grant_cure(pattern, evidence.account)}",
        )


def _grant_cure(pattern: str, account: str | None) -> str:
    """Return the GRANT for the tables of a pattern, or words for it if the pattern has
    a wildcard in its database."""
    database, _, table = pattern.partition(".")
    if account is None or not table or has_wildcard(database):
        return f"grant SELECT on the tables it means ({pattern})"
    where = quoted_table(TableName(database, table))
    if has_wildcard(table):
        where = f"{quoted(database)}.*"
    return f"{grant_statement('SELECT', where, account)};"


def _judge_primary_keys(evidence: RunEvidence) -> Iterator[RuleVerdict]:
    following = [
        table
        for table in evidence.tables
        if evidence.patterns.matches(table.name) and table.name not in evidence.stopped_tables
    ]
    keyless = [table.name for table in following if not table.primary_key]
    if keyless:
        yield Fault(f"no PRIMARY KEY: {', '.join(map(str, keyless))}", "tables")
    elif following:
        yield Fine(
            f"{len(following)} of {len(evidence.tables)} tables are captured, each with a key"
        )


def _judge_stopped_tables(evidence: RunEvidence) -> Iterator[RuleVerdict]:
    for name in sorted(evidence.stopped_tables):
        yield Fault("does not follow the source", str(name))


def _judge_table_settings(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    """Report blocks of settings with a pattern or a key that applies to no table."""
    names = {*(table.name for table in evidence.tables), *evidence.ledger_tables}
    captured = [name for name in names if evidence.plan.patterns.matches(name)]
    for number, block in enumerate(evidence.plan.table_settings, 1):
        for pattern in block.match.unmatched_patterns(captured):
            yield Fault(f"its pattern {pattern!r} matches no captured table", block.label)
        matched = filter(block.match.matches, captured)
        later_blocks = evidence.plan.table_settings[number:]
        later_policies = [policies_given_to(name, later_blocks) for name in matched]
        for key in block.policies:
            if later_policies and all(key in policies for policies in later_policies):
                fault = f"its {key!r} applies to no table: later blocks override it for all of them"
                yield Fault(fault, block.label)
    for table, words in settings_in_words(captured, evidence.plan.table_settings).items():
        yield Fine(words, str(table))


def _judge_exclusions(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    names = {*(table.name for table in evidence.survey.tables), *evidence.ledger_tables}
    for name in evidence.plan.patterns.unmatched_exclusions(names):
        yield Fault(
            f"the name {name!r} in `exclude` matches no table that the account can see", name
        )


RUN_RULES: Final = with_topic(
    "the tables",
    CheckRule(
        "patterns",
        "`tables`, against the tables that the account sees",
        "refusal",
        "a pattern that matches no table is a mistake, or a privilege is missing; helper tables "
        "(`shop._*`) may come and go",
        "correct the pattern, or grant SELECT on the tables it means",
        _judge_patterns,
        NothingMatches,
    ),
    CheckRule(
        "primary key",
        "the PRIMARY KEY of each captured table",
        "warning",
        "each merge compares whole rows, and counts equal ones",
        "add a PRIMARY KEY to each where merges are slow",
        _judge_primary_keys,
    ),
    CheckRule(
        "stopped tables",
        "the ledger",
        "warning",
        "the table's mirror stands still",
        "`lockstep status` says why",
        _judge_stopped_tables,
    ),
)
CHECK_RULES: Final = with_topic(
    "the tables",
    CheckRule(
        "settings of tables",
        "each [[sources.table]] in lockstep.toml, against the captured tables",
        "refusal",
        "a block, a pattern or a key that applies to no table is a mistake: the table that was "
        "meant is followed by the source's settings",
        "correct or remove it",
        _judge_table_settings,
        NothingMatches,
    ),
    CheckRule(
        "exclude",
        "names without wildcards in `exclude`, against the tables that the account sees",
        "warning",
        "a name that no table has may be a mistake: the table that was meant is captured",
        "correct or remove it",
        _judge_exclusions,
    ),
    CheckRule(
        "engine",
        "the ENGINE of each captured table",
        "refusal",
        "the tables of a refused engine differ from what the log says: the table is quarantined",
        "exclude it, or change it: alter table … engine = InnoDB;",
        _judge_engines,
    ),
    CheckRule(
        "system versioning",
        "tables WITH SYSTEM VERSIONING (MariaDB)",
        "refusal",
        "an UPDATE is logged as an update and an insert of the same key",
        "exclude it; alter table … drop system versioning; drops its history for good",
        _judge_each(
            lambda table: table.kind == "SYSTEM VERSIONED",
            "system-versioned: old rows stay in the log under the key of the present one",
        ),
    ),
    CheckRule(
        "sequences",
        "sequences (MariaDB) that a pattern matches",
        "warning",
        "it would be quarantined at its first row",
        "exclude it",
        _judge_each(
            lambda table: table.kind == "SEQUENCE",
            "a sequence: it is logged as a table without a key",
        ),
    ),
    CheckRule(
        "partitions",
        "partitioned tables",
        "warning",
        "ALTER TABLE … DROP, TRUNCATE or EXCHANGE PARTITION changes rows with no row events",
        "delete rows with DELETE; after such a statement the table must be re-read from MySQL",
        _judge_each(
            lambda table: table.is_partitioned,
            "partitioned: dropping, truncating or exchanging a partition changes rows with no row "
            "events",
        ),
    ),
    CheckRule(
        "foreign keys",
        "foreign keys with CASCADE, SET NULL or SET DEFAULT, and innodb_native_foreign_keys",
        "warning",
        "where InnoDB carries them out (MariaDB, older MySQL, innodb_native_foreign_keys=ON), "
        "what they do to the child's rows is not logged: a run that meets such a change of a "
        "parent quarantines the child, or re-reads it",
        "set innodb_native_foreign_keys = OFF in the server's configuration and restart it; where "
        f"the server does not have it: {_REREAD_CURE}",
        _judge_foreign_keys,
    ),
    CheckRule(
        "lower_case_table_names",
        "global variable, wanted: 0 or 1",
        "warning",
        "2: rows are logged with the names of the table and its database in lower case; a table is "
        "quarantined, under both spellings, if one of these names has capital letters",
        "give tables names in lower case, and write patterns and statements so",
        _judge_name_case,
    ),
    CheckRule(
        "partial mirrors",
        "tables that had rows before the position where we began to read their log",
        "warning",
        "rows that existed before and have not changed since are missing",
        "`lockstep verify` shows whether any are missing; a table that it finds equal is complete",
        _judge_extents,
    ),
)
