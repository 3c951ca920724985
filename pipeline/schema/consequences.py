"""The rules for tables whose structure or rows a statement changed, each with a run's
action.

The first rule that applies decides. The documentation's page on schema changes is
generated from `RULES`. In them, a mirror is the Delta table with the current rows of a
table, and a changelog the Delta table with every change. The rows of a changelog are
divided into generations by the types of their columns. A quarantined table is not
captured until a person resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lockstep.pipeline.schema.context import zone_of
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.fills import StatementMoment
from lockstep.pipeline.schema.table_effects import (
    ColumnUsesOf,
    EffectKind,
    TableEffect,
    reason_columns_changed,
    reason_engine_changed,
    reason_engine_refused,
    reason_key_changed,
    reason_shape_changed,
    reason_values_changed,
    reason_values_unknown,
    reason_versioned,
    table_effects,
)
from lockstep.pipeline.values.policies import LakePolicies, OnRewrite
from lockstep.pipeline.values.table import TableName


class Action(StrEnum):
    """An action of a run on a table's mirror; the most severe comes last.
    `pipeline.run.dump.table_changes` carries it out at the statement's place in the
    log."""

    NOTHING = "nothing"
    FOLLOW = "follow"
    """The mirror gets the columns that the table has now."""
    EMPTY = "empty"
    """The changelog gets a truncate row. The next write replaces the mirror by the rows
    after the statement."""
    CREATE = "create"
    DROP = "drop"
    COPY = "copy"
    """The mirror begins with the rows of another table's mirror."""
    REREAD = "re-read"
    """The table stops. A second capture of the same run reads its rows, or only its new
    columns, from MySQL. A run with `--until` leaves that to the next run."""
    QUARANTINE = "quarantined"
    """The table stops until a person resumes it."""


ROW_KEEPING_ACTIONS: Final = frozenset({Action.NOTHING, Action.FOLLOW})
"""Actions that keep the table's rows; FOLLOW puts them under another structure."""

ENGINE_REFUSED_RULE: Final = "engine-refused"
"""The rule for an engine whose tables can have other rows than the log says."""

VERSIONED_RULE: Final = "versioned"
"""The rule for MariaDB's system-versioned tables."""

NEW_COLUMN_RULE: Final = "per-row"
"""The rule for a new column whose values in existing rows only the source knows."""

NOT_FOLLOWED_RULE: Final = "not-followed"
"""The rule for a statement after which the table's structure is unknown."""

RENAMED_RULE: Final = "renamed"
"""The rule for the new name of a renamed table: the rows under it are now those of
another table."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """A run's action on a table, and the name of the rule that decided it. `reason`:
    what happened to the table, in a few words."""

    table: TableName
    action: Action
    rule_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConsequenceRule:
    """A rule for the effect of a statement. `find_reason`: returns why the rule
    applies, else None. `on_rewrite_decides`: the setting `on_rewrite` decides whether
    the table is quarantined or read again. For the documentation: `statements`, the
    statements to which the rule applies; `history`, `mirror`, `changelog`, what becomes
    of each."""

    name: str
    find_reason: Callable[[TableEffect], str | None]
    action: Action
    statements: str
    history: str
    mirror: str
    changelog: str
    on_rewrite_decides: bool = False


def _if_kind(kind: EffectKind) -> Callable[[TableEffect], str | None]:
    return lambda effect: (effect.reason or kind) if effect.kind == kind else None


def _if_changed(test: Callable[[TableEffect], str | None]) -> Callable[[TableEffect], str | None]:
    return lambda effect: test(effect) if effect.kind == "changed" else None


RULES: Final[tuple[ConsequenceRule, ...]] = (
    ConsequenceRule(
        ENGINE_REFUSED_RULE,
        reason_engine_refused,
        Action.QUARANTINE,
        statements=(
            "CREATE TABLE or ALTER TABLE with an engine that is not captured (MEMORY, BLACKHOLE, "
            "MERGE, FEDERATED, CSV …: reference.md lists them all)"
        ),
        history="new version",
        mirror="quarantined",
        changelog="ends there",
    ),
    ConsequenceRule(
        VERSIONED_RULE,
        reason_versioned,
        Action.QUARANTINE,
        statements=(
            "CREATE TABLE … WITH SYSTEM VERSIONING, also LIKE; ALTER TABLE … ADD SYSTEM VERSIONING "
            "(MariaDB)"
        ),
        history="new version",
        mirror="quarantined",
        changelog="ends there",
    ),
    ConsequenceRule(
        "created",
        _if_kind("created"),
        Action.CREATE,
        statements="CREATE TABLE, also LIKE, AS SELECT",
        history="new version",
        mirror="created empty at once",
        changelog="created at its first rows",
    ),
    ConsequenceRule(
        "dropped",
        _if_kind("dropped"),
        Action.DROP,
        statements="DROP TABLE, DROP DATABASE; the old name of a RENAME",
        history="the version ends",
        mirror="kept, marked dropped; removed with dropped_tables = drop",
        changelog="kept",
    ),
    ConsequenceRule(
        RENAMED_RULE,
        _if_kind("renamed"),
        Action.REREAD,
        statements=(
            "RENAME TABLE, also several, swapped, across databases; ALTER TABLE … RENAME; the "
            "cut-over of gh-ost, pt-online-schema-change, spirit"
        ),
        history="all names move at once",
        mirror=(
            "written into the folder of the new name, in one commit: copied from the mirror of the "
            "old name, or re-read if that is impossible"
        ),
        changelog="each name keeps its own; a resnapshot row",
    ),
    ConsequenceRule(
        "truncated",
        _if_kind("truncated"),
        Action.EMPTY,
        statements="TRUNCATE TABLE",
        history="no new version",
        mirror=(
            "emptied in order with the rows around it; left as it is with truncates = ignore or "
            "deletes = ignore"
        ),
        changelog="a truncate row, unless it is ignored",
    ),
    ConsequenceRule(
        NOT_FOLLOWED_RULE,
        _if_kind("not followed"),
        Action.QUARANTINE,
        statements="not understood, or does not fit the history",
        history="recorded verbatim; unknown from there on",
        mirror="quarantined at that place",
        changelog="ends there",
    ),
    ConsequenceRule(
        "rows-without-events",
        _if_kind("unlogged"),
        Action.QUARANTINE,
        statements=(
            "partition TRUNCATE, DROP, EXCHANGE, and REORGANIZE of VALUES IN; IMPORT and DISCARD "
            "TABLESPACE; MariaDB's ALTER IGNORE; REPAIR TABLE"
        ),
        history="no new version",
        mirror="quarantined; re-read with on_rewrite = resnapshot",
        changelog="a resnapshot row where it is re-read",
        on_rewrite_decides=True,
    ),
    ConsequenceRule(
        "engine",
        _if_changed(reason_engine_changed),
        Action.QUARANTINE,
        statements=(
            "ENGINE = …, from an engine that is not captured, or to or from one that stores rows "
            "differently"
        ),
        history="new version",
        mirror="quarantined; re-read with on_rewrite = resnapshot",
        changelog="a resnapshot row where it is re-read",
        on_rewrite_decides=True,
    ),
    ConsequenceRule(
        "values",
        _if_changed(reason_values_changed),
        Action.QUARANTINE,
        statements=(
            "MODIFY, CHANGE, CONVERT that can change stored values: shorter, lossy character "
            "sets, members removed or in another order, binary to text, another generation "
            "expression …"
        ),
        history="new version",
        mirror="quarantined; re-read with on_rewrite = resnapshot",
        changelog="a resnapshot row where it is re-read; the next generation where a type changes",
        on_rewrite_decides=True,
    ),
    ConsequenceRule(
        "shape",
        _if_changed(reason_shape_changed),
        Action.REREAD,
        statements=(
            "ALTER of a column that is hashed, masked, shown as another type, or used by the "
            "setting rows; ADD of a column that rows uses"
        ),
        history="new version",
        mirror="re-read, as its settings show it",
        changelog="a resnapshot row",
    ),
    ConsequenceRule(
        "key",
        _if_changed(reason_key_changed),
        Action.REREAD,
        statements="the primary key changes",
        history="new version",
        mirror="re-read under the new key",
        changelog="a resnapshot row",
    ),
    ConsequenceRule(
        NEW_COLUMN_RULE,
        _if_changed(reason_values_unknown),
        Action.REREAD,
        statements=(
            "ADD COLUMN with an expression default, generated, AUTO_INCREMENT, a moment in the "
            "time zone SYSTEM (DATETIME DEFAULT CURRENT_TIMESTAMP, TIMESTAMP with a literal), or a "
            "literal that the server rounds, cuts, pads or converts in its own way"
        ),
        history="new version",
        mirror=(
            "the new columns are read from the source by key and filled in one commit; the whole "
            "table is re-read if they are most of it, or if it has no primary key"
        ),
        changelog="column added; a resnapshot row where the whole table is re-read",
    ),
    ConsequenceRule(
        "columns",
        _if_changed(reason_columns_changed),
        Action.FOLLOW,
        statements=(
            "ADD, DROP, RENAME COLUMN, CHANGE, MODIFY to a type that holds every old value, ENUM "
            "and SET members appended, CONVERT to a superset"
        ),
        history="new version",
        mirror=(
            "columns added with the values that MySQL gave existing rows; kept or dropped by "
            "dropped_columns; renamed; widened in place or by a rewrite"
        ),
        changelog="columns added; the next generation where a type changes",
    ),
    ConsequenceRule(
        "nothing",
        lambda effect: effect.reason or "none of its rows changed",
        Action.NOTHING,
        statements=(
            "indexes, comments, row format, defaults, visibility, CHECK, foreign keys, collations; "
            "IF [NOT] EXISTS that did nothing"
        ),
        history="new version if the structure changed",
        mirror="nothing",
        changelog="nothing",
    ),
)


PoliciesOf = Callable[[TableName], LakePolicies]
"""Returns the policies by which the lake follows a table of the source."""


def consequences(
    followed: FollowedStatement,
    policies_of: PoliciesOf,
    logged: LoggedStatement,
    column_uses_of: ColumnUsesOf,
) -> Mapping[TableName, Consequence]:
    """Return the consequence of one statement for each table. If the statement has
    several effects on a table, the most severe wins, except that a creation, a drop or
    a rename replaces all effects before it."""
    moment = StatementMoment(logged.executed_at, zone_of(logged.context.time_zone))
    severity_of = list(Action).index
    by_table: dict[TableName, Consequence] = {}
    if followed.not_understood is not None:
        for table in followed.not_understood.possible_tables or ():
            effect = TableEffect(table, "not followed", followed.not_understood.reason)
            by_table[table] = _consequence(effect, policies_of(table))
    for change in followed.effects:
        for effect in table_effects(change, logged.context.sql_mode, moment, column_uses_of):
            new = _consequence(effect, policies_of(effect.table))
            old = by_table.get(effect.table)
            replaces_earlier = effect.kind in ("created", "dropped", "renamed")
            if old is None or replaces_earlier or severity_of(new.action) > severity_of(old.action):
                by_table[effect.table] = new
    return by_table


def _consequence(effect: TableEffect, policies: LakePolicies) -> Consequence:
    reasons = ((rule, rule.find_reason(effect)) for rule in RULES)
    # The last rule applies to every effect.
    rule, reason = next((rule, reason) for rule, reason in reasons if reason is not None)
    action = rule.action
    if rule.on_rewrite_decides and policies.on_rewrite is OnRewrite.RESNAPSHOT:
        action = Action.REREAD
    elif action is Action.EMPTY and policies.keeps_unmarked_rows:
        action, reason = Action.NOTHING, f"{reason}, which is ignored"
    return Consequence(effect.table, action, rule.name, reason)
