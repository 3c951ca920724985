"""Rules about what the account may do, with the GRANT to run.

Belongs here: reading the lines of SHOW GRANTS. Privileges that a role brings stand in
them when the role is active (MySQL manual, "SHOW GRANTS Statement"); MariaDB lists the
roles' own grants as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

from pipeline.errors import PrivilegeMissing
from pipeline.preflight.evidence import SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict
from pipeline.preflight.log import set_global
from pipeline.table import TableName

TOPIC: Final = "the account"
_LINE = re.compile(r"(GRANT|REVOKE) (?P<what>.+?) ON (?:TABLE )?(?P<where>\S.*?) (?:TO|FROM) ")
_PART = re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|\*")
_EVERYTHING: Final = frozenset({"ALL", "ALL PRIVILEGES"})
_FEW_CONNECTIONS: Final = 3
_PER_CHUNK: Final = 3
_FEW_STATEMENTS: Final = 100
METADATA_LOCKS: Final = TableName("performance_schema", "metadata_locks")


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges on `database`.`table`; a database is a LIKE pattern, "*" is everything.
    `revoked`: taken from what a wider grant gives (partial_revokes)."""

    privileges: frozenset[str]
    database: str
    table: str
    revoked: bool = False

    def gives(self, privilege: str) -> bool:
        return bool(self.privileges & {privilege, *_EVERYTHING})


def read_grants(lines: tuple[str, ...]) -> tuple[Grant, ...]:
    """The grants on tables, databases and everything; those of routines, proxies, roles and
    single columns are left out."""
    return tuple(grant for line in lines for grant in _grant(line))


def _grant(line: str) -> Iterator[Grant]:
    match = _LINE.match(line)
    if match is None or match["what"] == "PROXY":
        return
    place = _PART.findall(match["where"])
    if len(place) != 2 or match["where"].startswith(("PROCEDURE", "FUNCTION", "PACKAGE")):
        return
    whole = re.sub(r"\w+ \([^)]*\),? ?", "", match["what"])
    privileges = frozenset(part.strip().upper() for part in whole.split(",") if part.strip())
    database, table = (_bare(part) for part in place)
    yield Grant(privileges, database, table, line.startswith("REVOKE"))


def _bare(quoted: str) -> str:
    return quoted if quoted == "*" else quoted[1:-1].replace(quoted[0] * 2, quoted[0])


def has_globally(looked: SourceEvidence, *privileges: str) -> bool:
    """Whether the account has one of the privileges on *.*."""
    grants = read_grants(looked.survey.grants)
    everywhere = [grant for grant in grants if grant.database == "*" and not grant.revoked]
    return any(grant.gives(name) for grant in everywhere for name in privileges)


def covers(grants: tuple[Grant, ...], privilege: str, table: TableName) -> bool:
    """Whether the account has the privilege on the whole table."""
    meant = [
        grant
        for grant in grants
        if grant.gives(privilege)
        and _like(grant.database, table.database)
        and grant.table in ("*", table.name)
    ]
    given = [grant for grant in meant if not grant.revoked]
    # A partial revoke takes from what is granted on everything alone.
    narrow = any(grant.database != "*" for grant in given)
    return bool(given) and (narrow or len(given) == len(meant))


def _like(pattern: str, database: str) -> bool:
    """LIKE of a GRANT's database: `%`, `_`, and a backslash before either."""
    if pattern == "*":
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meant = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    shell = "".join(meant.get(part, part[1:] if len(part) > 1 else part) for part in parts)
    return re.fullmatch(translate(shell), database) is not None


def account_name(looked: SourceEvidence) -> str:
    """'user'@'host', as a GRANT wants it."""
    user, _, host = looked.survey.account.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (user, host))


def _grant_statement(looked: SourceEvidence, what: str, where: str = "*.*") -> str:
    return f"GRANT {what} ON {where} TO {account_name(looked)};"


def _replication(looked: SourceEvidence) -> Iterator[Verdict]:
    if "grants" in looked.survey.unanswered:
        return
    client = "BINLOG MONITOR" if looked.mariadb else "REPLICATION CLIENT"
    needed = (("REPLICATION SLAVE",), (client, "REPLICATION CLIENT", "SUPER"))
    missing = [names[0] for names in needed if not has_globally(looked, *names)]
    if missing:
        listed = ", ".join(missing)
        yield Fault(f"{account_name(looked)} lacks {listed}", cure=_grant_statement(looked, listed))
    else:
        yield Fine(f"{account_name(looked)} may read the log")


def _select(looked: SourceEvidence) -> Iterator[Verdict]:
    if "grants" in looked.survey.unanswered:
        return
    grants = read_grants(looked.survey.grants)
    unread = [table.name for table in looked.tables if not covers(grants, "SELECT", table.name)]
    for name in unread:
        where = f"`{name.database}`.`{name.name}`"
        yield Fault(
            "its rows may not be read: `verify` cannot compare it, and no run can re-read it",
            subject=str(name),
            cure=_grant_statement(looked, "SELECT", where),
        )
    if looked.tables and not unread:
        yield Fine("SELECT on every captured table")


def _lock(looked: SourceEvidence) -> Iterator[Verdict]:
    if looked.mariadb or "grants" in looked.survey.unanswered:
        return  # MariaDB tells the place of a snapshot of InnoDB's tables
    grants = read_grants(looked.survey.grants)
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
            f"{account_name(looked)} lacks XA_RECOVER_ADMIN: a start that a person chooses "
            "cannot see XA transactions that were prepared before it",
            cure=_grant_statement(looked, "XA_RECOVER_ADMIN"),
        )


def _password(looked: SourceEvidence) -> Iterator[Verdict]:
    days = int(looked.setting("default_password_lifetime") or 0)
    if days:
        yield Fault(
            f"passwords expire after {days} days, and runs would stop with it",
            cure=f"ALTER USER {account_name(looked)} PASSWORD EXPIRE NEVER; (or renew it in time; "
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
    if "grants" in looked.survey.unanswered:
        return
    grants = read_grants(looked.survey.grants)
    if has_globally(looked, "PROCESS") or (
        not looked.mariadb and covers(grants, "SELECT", METADATA_LOCKS)
    ):
        yield Fine("an ALTER that waits for a table is seen")
        return
    cure = _grant_statement(looked, "PROCESS")
    if not looked.mariadb:
        cure = _grant_statement(looked, "SELECT", str(METADATA_LOCKS))
    yield Fault(
        f"{account_name(looked)} cannot see whether an ALTER waits for a table that is being read: "
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


CHECK_RULES: Final = (
    CheckRule(
        "replication privileges",
        TOPIC,
        "REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: BINLOG MONITOR) on *.*",
        "refusal",
        "the log cannot be found or read",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'user'@'host';",
        _replication,
        PrivilegeMissing,
    ),
    CheckRule(
        "select",
        TOPIC,
        "SELECT on each captured table",
        "warning",
        "`verify` cannot read it, and neither can a run after a statement whose effect is not in "
        "the log; without any privilege a run does not even find it",
        "GRANT SELECT ON `database`.`table` TO 'user'@'host';",
        _select,
    ),
    CheckRule(
        "lock tables",
        TOPIC,
        "LOCK TABLES (MySQL), on captured tables without a key",
        "warning",
        "rows that are re-read are told apart from later changes by their key; without one, "
        "reading must begin at an exact place, which takes a brief lock, or luck",
        "GRANT LOCK TABLES ON `database`.* TO 'user'@'host';",
        _lock,
    ),
    CheckRule(
        "xa",
        TOPIC,
        "XA_RECOVER_ADMIN (MySQL 8.0 and later)",
        "warning",
        "a start that a person chooses cannot see XA transactions prepared before it",
        "GRANT XA_RECOVER_ADMIN ON *.* TO 'user'@'host';",
        _prepared,
    ),
    CheckRule(
        "password lifetime",
        TOPIC,
        "default_password_lifetime",
        "warning",
        "the account's password expires one day, and runs stop",
        "ALTER USER 'user'@'host' PASSWORD EXPIRE NEVER;",
        _password,
    ),
    CheckRule(
        "connections",
        TOPIC,
        "max_user_connections",
        "warning",
        "a run needs more than one connection at a time",
        f"set global max_user_connections = {_FEW_CONNECTIONS}; or more, with three for each of "
        "`connections` under [sources.snapshot]",
        _connections,
    ),
    CheckRule(
        "waiting ALTER",
        TOPIC,
        "SELECT on performance_schema.metadata_locks, or PROCESS (MariaDB: PROCESS)",
        "warning",
        "a read gives way to an ALTER only if it can see that one waits; otherwise the ALTER waits "
        "for a table that is read in one piece, and every later query waits for the ALTER",
        "GRANT SELECT ON performance_schema.metadata_locks TO 'user'@'host'; (MariaDB: GRANT "
        "PROCESS ON *.*)",
        _waiting,
    ),
    CheckRule(
        "prepared statements",
        TOPIC,
        f"max_prepared_stmt_count, wanted: {_FEW_STATEMENTS} or more",
        "warning",
        "no table can be read from the source while the server has no statement left",
        set_global("max_prepared_stmt_count", "16382"),
        _statements,
    ),
)
