"""Rules about the account's privileges and limits, with the GRANT for each that is
missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    RuleVerdict,
    SourceEvidence,
    with_topic,
)
from lockstep.pipeline.check.log import set_global_hint
from lockstep.pipeline.values.errors import PrivilegeMissing
from lockstep.pipeline.values.survey import account_name, grant_statement, has_privilege
from lockstep.pipeline.values.table import TableName, quoted, quoted_table

_MIN_CONNECTIONS: Final = 3
"""Number of connections that a run needs while it reads no chunk of a table."""

_CONNECTIONS_PER_CHUNK: Final = 3
"""Number of further connections for each chunk that is read at the same time."""

_MIN_PREPARED_STATEMENTS: Final = 100
"""Smallest number of prepared statements that the server should allow."""

_CODE_PRIVILEGES: Final = ("TRIGGER", "SHOW VIEW")
"""Privileges that show which tables a logged statement changes through triggers and
views."""

METADATA_LOCKS: Final = TableName("performance_schema", "metadata_locks")
"""The table in which MySQL shows that an ALTER waits for a table."""


def has_globally(evidence: SourceEvidence, *privileges: str) -> bool:
    """Return whether the account has one of the privileges on *.*."""
    return any(
        grant.database == "*" and not grant.is_revoked and any(map(grant.gives, privileges))
        for grant in evidence.grants or ()
    )


def account_of(evidence: SourceEvidence) -> str:
    """Return the account as 'user'@'host', for a GRANT."""
    return account_name(evidence.survey.account)


def _grant_statement(evidence: SourceEvidence, privileges: str, where: str = "*.*") -> str:
    return f"{grant_statement(privileges, where, evidence.survey.account)};"


def _judge_replication(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.grants is None:
        return
    client = "BINLOG MONITOR" if evidence.is_mariadb else "REPLICATION CLIENT"
    alternatives = (("REPLICATION SLAVE",), (client, "REPLICATION CLIENT", "SUPER"))
    missing = [names[0] for names in alternatives if not has_globally(evidence, *names)]
    if missing:
        names = ", ".join(missing)
        yield Fault(f"{account_of(evidence)} lacks {names}", cure=_grant_statement(evidence, names))
    else:
        yield Fine(f"{account_of(evidence)} may read the log")


def _judge_select(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for table in evidence.invisible_tables:
        yield Fault(table.reason, str(table.table), table.hint)
    grants = evidence.grants
    if grants is None:
        return
    described_names = {structure.name for structure in evidence.structures}
    unreadable = [
        table.name
        for table in evidence.tables
        if not has_privilege(grants, "SELECT", table.name)
        or (table.kind == "BASE TABLE" and table.name not in described_names)
    ]
    for name in unreadable:
        yield Fault(
            "the account cannot read its rows, or not all of its columns: `verify` cannot compare "
            "it, and no run can re-read it",
            subject=str(name),
            cure=_grant_statement(evidence, "SELECT", quoted_table(name)),
        )
    if evidence.tables and not unreadable and not evidence.invisible_tables:
        yield Fine("SELECT on every captured table")


def _judge_lock(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    grants = evidence.grants
    if evidence.is_mariadb or grants is None:
        return  # MariaDB reports the position of a consistent snapshot, so no lock is needed.
    keyless = [structure.name for structure in evidence.structures if not structure.primary_key]
    unlockable = [name for name in keyless if not has_privilege(grants, "LOCK TABLES", name)]
    for name in unlockable:
        yield Fault(
            "has no key and cannot be locked: re-reading it waits for a moment in which "
            "nothing is committed",
            subject=str(name),
            cure=_grant_statement(evidence, "LOCK TABLES", f"{quoted(name.database)}.*"),
        )
    if evidence.structures and not keyless:
        yield Fine("LOCK TABLES is not needed: every captured table has a key")
    elif evidence.structures and not unlockable:
        yield Fine("tables without a key may be locked for the moment in which a read begins")


def _judge_xa_recover(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.grants is None:
        return
    if evidence.is_mariadb or evidence.survey.version.startswith("5.7."):
        return  # XA RECOVER needed no privilege on these servers.
    if has_globally(evidence, "XA_RECOVER_ADMIN"):
        yield Fine("XA RECOVER is allowed")
    else:
        yield Fault(
            f"{account_of(evidence)} lacks XA_RECOVER_ADMIN: a start that a person chooses "
            "cannot see XA transactions that were prepared before it",
            cure=_grant_statement(evidence, "XA_RECOVER_ADMIN"),
        )


def _judge_password(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    days = int(evidence.variable("default_password_lifetime") or 0)
    if days:
        yield Fault(
            f"passwords expire after {days} days, and runs would stop then",
            cure=f"ALTER USER {account_of(evidence)} PASSWORD EXPIRE NEVER; (or renew it in time; "
            "the warning stays even if the account has this already)",
        )


def _judge_connections(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    limit = int(evidence.variable("max_user_connections") or 0)
    needed = _MIN_CONNECTIONS + _CONNECTIONS_PER_CHUNK * evidence.plan.snapshot.connections
    if 0 < limit < needed:
        yield Fault(
            f"max_user_connections is {limit}: a run holds one connection for the log, others "
            f"beside it, and up to {_CONNECTIONS_PER_CHUNK} for each chunk that it reads at a time",
            cure=set_global_hint("max_user_connections", str(needed)),
        )


def _judge_lock_visibility(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    grants = evidence.grants
    if grants is None:
        return
    if has_globally(evidence, "PROCESS") or (
        not evidence.is_mariadb and has_privilege(grants, "SELECT", METADATA_LOCKS)
    ):
        yield Fine("an ALTER that waits for a table is visible")
        return
    cure = _grant_statement(evidence, "SELECT", str(METADATA_LOCKS))
    if evidence.is_mariadb:
        cure = _grant_statement(evidence, "PROCESS")
    yield Fault(
        f"{account_of(evidence)} cannot see whether an ALTER waits for a table that is being read: "
        "it waits until the read ends",
        cure=cure,
    )


def _judge_prepared_statements(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    limit = evidence.variable("max_prepared_stmt_count")
    if limit is not None and int(limit) < _MIN_PREPARED_STATEMENTS:
        yield Fault(
            f"max_prepared_stmt_count is {limit}: rows are read by prepared statements, and the "
            "server allows no more than that for all accounts together"
        )


def _judge_triggers_and_views(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    if evidence.plan.allowed_statements.texts:
        yield Fine(
            "statements in the log that change them are passed on your word (passed_statements): "
            + ", ".join(evidence.plan.allowed_statements.texts)
        )
    grants = evidence.grants
    if grants is None:
        return
    every_table = TableName("", "")  # No table has this name, so only grants on *.* cover it.
    missing = [name for name in _CODE_PRIVILEGES if not has_privilege(grants, name, every_table)]
    if not missing:
        yield Fine("triggers and views of every database are visible")
        return
    cure = _grant_statement(evidence, ", ".join(missing))
    sentence = (
        f"{account_of(evidence)} cannot see all triggers and views: a statement that is logged "
        "instead of rows stops a run if it may change tables through them"
    )
    if any(session.variable == "binlog_format" for session in evidence.survey.session_overrides):
        yield Fault(sentence, cure=cure)
    else:
        yield Fine(f"{sentence}. If sessions log statements: {cure}")


CHECK_RULES: Final = with_topic(
    "the account",
    CheckRule(
        "replication privileges",
        "REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR) on *.*",
        "refusal",
        "the log cannot be found or read",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'user'@'host';",
        _judge_replication,
        PrivilegeMissing,
    ),
    CheckRule(
        "select",
        "SELECT on each captured table as a whole: some of its columns are not enough",
        "warning",
        "`verify` cannot read it; a run follows it only if the log describes its columns, and "
        "quarantines it where it needs the source; without any privilege a run does not find it "
        "before its first row",
        "GRANT SELECT ON `database`.`table` TO 'user'@'host';",
        _judge_select,
    ),
    CheckRule(
        "lock tables",
        "LOCK TABLES (MySQL), on captured tables without a key",
        "warning",
        "a read of such a table must begin at an exact position, which takes a brief lock or a "
        "moment without commits",
        "GRANT LOCK TABLES ON `database`.* TO 'user'@'host';",
        _judge_lock,
    ),
    CheckRule(
        "xa",
        "XA_RECOVER_ADMIN (MySQL 8.0 and later)",
        "warning",
        "a start that a person chooses cannot see XA transactions prepared before it",
        "GRANT XA_RECOVER_ADMIN ON *.* TO 'user'@'host';",
        _judge_xa_recover,
    ),
    CheckRule(
        "password lifetime",
        "default_password_lifetime",
        "warning",
        "the account's password expires one day, and runs stop",
        "ALTER USER 'user'@'host' PASSWORD EXPIRE NEVER;",
        _judge_password,
    ),
    CheckRule(
        "connections",
        "max_user_connections",
        "warning",
        "a run needs more than one connection at a time",
        f"set global max_user_connections = {_MIN_CONNECTIONS}; or more, with three for each of "
        "`connections` under [sources.snapshot]",
        _judge_connections,
    ),
    CheckRule(
        "waiting ALTER",
        "SELECT on performance_schema.metadata_locks, or PROCESS (MariaDB: PROCESS)",
        "warning",
        "a read gives way to an ALTER only if it can see that one waits; otherwise the ALTER, "
        "and every later query, waits for a table that is read in one piece",
        "GRANT SELECT ON performance_schema.metadata_locks TO 'user'@'host'; (MariaDB: GRANT "
        "PROCESS ON *.*)",
        _judge_lock_visibility,
    ),
    CheckRule(
        "triggers and views",
        "TRIGGER and SHOW VIEW on *.*, and passed_statements in lockstep.toml",
        "warning",
        "a statement that is logged instead of rows stops a run unless its table is known to "
        "have no trigger that changes a captured one. A warning only while a session logs "
        "statements",
        "GRANT TRIGGER, SHOW VIEW ON *.* TO 'user'@'host';",
        _judge_triggers_and_views,
    ),
    CheckRule(
        "prepared statements",
        f"max_prepared_stmt_count, wanted: {_MIN_PREPARED_STATEMENTS} or more",
        "warning",
        "no table can be read from the source while the server allows no further statement",
        set_global_hint("max_prepared_stmt_count", "16382"),
        _judge_prepared_statements,
    ),
)
