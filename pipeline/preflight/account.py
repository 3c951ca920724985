"""Rules about what the account may do, with the GRANT to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.errors import PrivilegeMissing
from pipeline.grants import account_name, covers, grant_statement, place, read_grants
from pipeline.preflight.evidence import SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about
from pipeline.preflight.log import set_global
from pipeline.table import TableName

_FEW_CONNECTIONS: Final = 3
_PER_CHUNK: Final = 3
_FEW_STATEMENTS: Final = 100
_CODE: Final = ("TRIGGER", "SHOW VIEW")
METADATA_LOCKS: Final = TableName("performance_schema", "metadata_locks")


def has_globally(looked: SourceEvidence, *privileges: str) -> bool:
    """Whether the account has one of the privileges on *.*."""
    grants = read_grants(looked.survey.grants)
    everywhere = [grant for grant in grants if grant.database == "*" and not grant.revoked]
    return any(grant.gives(name) for grant in everywhere for name in privileges)


def account_of(looked: SourceEvidence) -> str:
    """'user'@'host', as a GRANT wants it."""
    return account_name(looked.survey.account)


def _grant_statement(looked: SourceEvidence, what: str, where: str = "*.*") -> str:
    return f"{grant_statement(what, where, looked.survey.account)};"


def _replication(looked: SourceEvidence) -> Iterator[Verdict]:
    if "grants" in looked.survey.unanswered:
        return
    client = "BINLOG MONITOR" if looked.mariadb else "REPLICATION CLIENT"
    needed = (("REPLICATION SLAVE",), (client, "REPLICATION CLIENT", "SUPER"))
    missing = [names[0] for names in needed if not has_globally(looked, *names)]
    if missing:
        listed = ", ".join(missing)
        yield Fault(f"{account_of(looked)} lacks {listed}", cure=_grant_statement(looked, listed))
    else:
        yield Fine(f"{account_of(looked)} may read the log")


def _select(looked: SourceEvidence) -> Iterator[Verdict]:
    grants = looked.grants
    if grants is None:
        return
    whole = {structure.name for structure in looked.structures}
    unread = [
        table.name
        for table in looked.tables
        if not covers(grants, "SELECT", table.name)
        or (table.kind == "BASE TABLE" and table.name not in whole)
    ]
    for name in unread:
        yield Fault(
            "its rows may not be read, or not all columns of them: `verify` cannot compare it, "
            "and no run can re-read it",
            subject=str(name),
            cure=_grant_statement(looked, "SELECT", place(name)),
        )
    if looked.tables and not unread:
        yield Fine("SELECT on every captured table")


def _lock(looked: SourceEvidence) -> Iterator[Verdict]:
    grants = looked.grants
    if looked.mariadb or grants is None:
        return  # MariaDB tells the place of a snapshot of InnoDB's tables
    keyless = [structure.name for structure in looked.structures if not structure.primary_key]
    unlocked = [name for name in keyless if not covers(grants, "LOCK TABLES", name)]
    for name in unlocked:
        yield Fault(
            "has no key and may not be locked: re-reading it waits for a moment in which "
            "nothing is committed",
            subject=str(name),
            cure=_grant_statement(looked, "LOCK TABLES", f"`{name.database}`.*"),
        )
    if looked.structures and not keyless:
        yield Fine("LOCK TABLES is not needed: every captured table has a key")
    elif looked.structures and not unlocked:
        yield Fine("tables without a key may be locked for the moment that a reading begins")


def _prepared(looked: SourceEvidence) -> Iterator[Verdict]:
    if "grants" in looked.survey.unanswered:
        return
    if looked.mariadb or looked.survey.version.startswith("5.7."):
        return  # XA RECOVER asks for no privilege there.
    if has_globally(looked, "XA_RECOVER_ADMIN"):
        yield Fine("XA RECOVER may be asked")
    else:
        yield Fault(
            f"{account_of(looked)} lacks XA_RECOVER_ADMIN: a start that a person chooses "
            "cannot see XA transactions that were prepared before it",
            cure=_grant_statement(looked, "XA_RECOVER_ADMIN"),
        )


def _password(looked: SourceEvidence) -> Iterator[Verdict]:
    days = int(looked.setting("default_password_lifetime") or 0)
    if days:
        yield Fault(
            f"passwords expire after {days} days, and runs would stop with it",
            cure=f"ALTER USER {account_of(looked)} PASSWORD EXPIRE NEVER; (or renew it in time; "
            "the warning stays even if the account has this already)",
        )


def _connections(looked: SourceEvidence) -> Iterator[Verdict]:
    limit = int(looked.setting("max_user_connections") or 0)
    needs = _FEW_CONNECTIONS + _PER_CHUNK * looked.reading.connections
    if 0 < limit < needs:
        yield Fault(
            f"max_user_connections is {limit}: a run holds one connection for the log, others "
            f"beside it, and up to {_PER_CHUNK} for each chunk that it reads at a time",
            cure=set_global("max_user_connections", str(needs)),
        )


def _waiting(looked: SourceEvidence) -> Iterator[Verdict]:
    grants = looked.grants
    if grants is None:
        return
    if has_globally(looked, "PROCESS") or (
        not looked.mariadb and covers(grants, "SELECT", METADATA_LOCKS)
    ):
        yield Fine("an ALTER that waits for a table is seen")
        return
    cure = _grant_statement(looked, "PROCESS")
    if not looked.mariadb:
        cure = _grant_statement(looked, "SELECT", str(METADATA_LOCKS))
    yield Fault(
        f"{account_of(looked)} cannot see whether an ALTER waits for a table that is being read: "
        "it waits until the read ends",
        cure=cure,
    )


def _statements(looked: SourceEvidence) -> Iterator[Verdict]:
    limit = looked.setting("max_prepared_stmt_count")
    if limit is not None and int(limit) < _FEW_STATEMENTS:
        yield Fault(
            f"max_prepared_stmt_count is {limit}: rows are read by prepared statements, and the "
            "server allows no more than that for all accounts together"
        )


def _code(looked: SourceEvidence) -> Iterator[Verdict]:
    if looked.passes.texts:
        yield Fine(
            "statements in the log that change them are passed on your word (passed_statements): "
            + ", ".join(looked.passes.texts)
        )
    grants = looked.grants
    if grants is None:
        return
    everywhere = TableName("", "")
    lacks = [one for one in _CODE if not covers(grants, one, everywhere)]
    if not lacks:
        yield Fine("triggers and views are seen in every database")
        return
    cure = _grant_statement(looked, ", ".join(lacks))
    odd = [one for one in looked.survey.odd_sessions if one.variable == "binlog_format"]
    said = (
        f"{account_of(looked)} may not see all triggers and views: a statement that is logged "
        "instead of rows stops a run where they would tell what it changes"
    )
    yield Fault(said, cure=cure) if odd else Fine(f"{said}. If there are such: {cure}")


CHECK_RULES: Final = about(
    "the account",
    CheckRule(
        "replication privileges",
        "REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR) on *.*",
        "refusal",
        "the log cannot be found or read",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'user'@'host';",
        _replication,
        PrivilegeMissing,
    ),
    CheckRule(
        "select",
        "SELECT on each captured table as a whole: some of its columns are not enough",
        "warning",
        "`verify` cannot read it, and neither can a run: it follows the table only if the log "
        "describes its columns, and quarantines it where it needs the source; without any "
        "privilege a run does not even find it before its first row",
        "GRANT SELECT ON `database`.`table` TO 'user'@'host';",
        _select,
    ),
    CheckRule(
        "lock tables",
        "LOCK TABLES (MySQL), on captured tables without a key",
        "warning",
        "rows that are re-read are told apart from later changes by their key; without one, "
        "reading must begin at an exact place, which takes a brief lock, or luck",
        "GRANT LOCK TABLES ON `database`.* TO 'user'@'host';",
        _lock,
    ),
    CheckRule(
        "xa",
        "XA_RECOVER_ADMIN (MySQL 8.0 and later)",
        "warning",
        "a start that a person chooses cannot see XA transactions prepared before it",
        "GRANT XA_RECOVER_ADMIN ON *.* TO 'user'@'host';",
        _prepared,
    ),
    CheckRule(
        "password lifetime",
        "default_password_lifetime",
        "warning",
        "the account's password expires one day, and runs stop",
        "ALTER USER 'user'@'host' PASSWORD EXPIRE NEVER;",
        _password,
    ),
    CheckRule(
        "connections",
        "max_user_connections",
        "warning",
        "a run needs more than one connection at a time",
        f"set global max_user_connections = {_FEW_CONNECTIONS}; or more, with three for each of "
        "`connections` under [sources.snapshot]",
        _connections,
    ),
    CheckRule(
        "waiting ALTER",
        "SELECT on performance_schema.metadata_locks, or PROCESS (MariaDB: PROCESS)",
        "warning",
        "a read gives way to an ALTER only if it can see that one waits; otherwise the ALTER waits "
        "for a table that is read in one piece, and every later query waits for the ALTER",
        "GRANT SELECT ON performance_schema.metadata_locks TO 'user'@'host'; (MariaDB: GRANT "
        "PROCESS ON *.*)",
        _waiting,
    ),
    CheckRule(
        "triggers and views",
        "TRIGGER and SHOW VIEW on *.*, and passed_statements in lockstep.toml",
        "warning",
        "a statement that is logged instead of rows (by pt-heartbeat, pt-table-checksum, a managed "
        "service) is passed only where its table is known to have no trigger that changes a "
        "captured one; otherwise it stops a run. Looked at while a session logs statements",
        "GRANT TRIGGER, SHOW VIEW ON *.* TO 'user'@'host';",
        _code,
    ),
    CheckRule(
        "prepared statements",
        f"max_prepared_stmt_count, wanted: {_FEW_STATEMENTS} or more",
        "warning",
        "no table can be read from the source while the server has no statement left",
        set_global("max_prepared_stmt_count", "16382"),
        _statements,
    ),
)
