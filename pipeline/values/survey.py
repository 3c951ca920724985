"""A survey of a source's server: the facts that `lockstep check` judges, and the
privileges that the account's grants give it.

Values only, as the server reports them: global variables, grants, replicas, tables.
They are gathered by `resources.mysql.survey` and judged by `pipeline.check`.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class AnsweringServer:
    """The server that answered one connection. Before the login, whatever listens at
    the address (such as a proxy) sends a greeting with a version (`greeting_version`)
    and a connection id (`greeting_connection_id`). The other values are read by SQL
    after the login."""

    greeting_version: str
    greeting_connection_id: int
    version: str
    connection_id: int
    version_comment: str
    identity: tuple[str, ...]
    """Values that distinguish servers: hostname, port, server id, and server_uuid if it
    has one."""


@dataclass(frozen=True, slots=True)
class RegisteredReplica:
    """A replica that registered at this server."""

    server_id: int
    host: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel through which this server itself replicates from `source`.
    `is_receiving` and `is_applying`: whether its two threads run. `lag`: its own
    estimate in seconds, or None while it applies nothing."""

    source: str
    is_receiving: bool
    is_applying: bool
    lag: int | None


@dataclass(frozen=True, slots=True)
class LogFilters:
    """The filters of the log: `included`, the databases to which it is limited
    (binlog_do_db), and `excluded`, the databases that it leaves out
    (binlog_ignore_db)."""

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SurveyedTable:
    """A table that is not a view. `kind` is the table_type of information_schema."""

    name: TableName
    kind: str
    engine: str
    is_partitioned: bool


@dataclass(frozen=True, slots=True)
class SurveyedForeignKey:
    """A foreign key. The actions are None if the account may not see them."""

    name: str
    child: TableName
    parent: TableName
    on_update: str | None
    on_delete: str | None


@dataclass(frozen=True, slots=True)
class SessionOverride:
    """Sessions with their own value of a variable, which differs from the global one.
    `session_count`: their number."""

    variable: str
    value: str
    session_count: int


@dataclass(frozen=True, slots=True)
class ReadReplica:
    """The replica from which tables are read. `reason_unusable`: why it cannot be used,
    and its `cure`."""

    name: str
    reason_unusable: str | None = None
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """All facts about one server. `settings`: all global variables by lower-case name.
    `answering_servers`: the server behind each of several connections. `dump_count`:
    number of threads that send the log now. `account`: CURRENT_USER() (user@host).
    `grants`: the lines of SHOW GRANTS without passwords. `dump_server_ids`: the server
    ids that Lockstep's own dumps use. `unanswered_fields`: names of the fields that are
    empty because the account may not see them or the server does not have them.
    `clock_ahead`: the server's clock minus ours.
    """

    flavour: str
    version: str
    settings: Mapping[str, str]
    account: str
    grants: tuple[str, ...]
    dump_server_ids: range
    answering_servers: tuple[AnsweringServer, ...]
    is_encrypted: bool
    is_loopback: bool
    clock_ahead: timedelta
    read_at: datetime
    replicas: tuple[RegisteredReplica, ...] = ()
    dump_count: int = 0
    channels: tuple[Channel, ...] = ()
    filters: LogFilters = LogFilters()
    tables: tuple[SurveyedTable, ...] = ()
    foreign_keys: tuple[SurveyedForeignKey, ...] = ()
    session_overrides: tuple[SessionOverride, ...] = ()
    read_replica: ReadReplica | None = None
    unanswered_fields: frozenset[str] = frozenset()


def is_loopback(host: str) -> bool:
    """Return whether a host name or address always means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# -- grants ----------------------------------------------------------------------------
# Privileges as SHOW GRANTS prints them. Its lines include the privileges of active
# roles (MySQL manual, "SHOW GRANTS Statement"); MariaDB also lists the roles' own
# grants and those of PUBLIC.

_NAME: Final = r"(?:`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|\*)"
_LINE = re.compile(
    rf"(?:GRANT|REVOKE) (?P<privileges>.+?) ON (?:TABLE )?"
    rf"(?P<database>{_NAME})\.(?P<table>{_NAME}) (?:TO|FROM) ",
    re.DOTALL,
)
_COLUMNS = re.compile(r"\w+ \((?:`(?:[^`]|``)*`|[^)`])*\),? ?")
_ALL_PRIVILEGES: Final = frozenset({"ALL", "ALL PRIVILEGES"})


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges on `database`.`table`; "*" matches everything. If the table is "*",
    the database is a LIKE pattern. `is_revoked`: the privileges are taken away from a
    wider grant (partial_revokes). `has_column_grants`: the line also has privileges on
    single columns of the table."""

    privileges: frozenset[str]
    database: str
    table: str
    is_revoked: bool = False
    has_column_grants: bool = False

    def gives(self, privilege: str) -> bool:
        return bool(self.privileges & {privilege, *_ALL_PRIVILEGES})


def read_grants(lines: tuple[str, ...]) -> tuple[Grant, ...]:
    """Return the grants on tables, databases and everything. Grants on routines,
    proxies and roles are left out; privileges on single columns only set
    `has_column_grants`."""
    return tuple(_grant(match) for match in map(_LINE.match, lines) if match is not None)


def _grant(match: re.Match[str]) -> Grant:
    on_table = _COLUMNS.sub("", match["privileges"])
    return Grant(
        frozenset(part.strip().upper() for part in on_table.split(",") if part.strip()),
        _unquoted(match["database"]),
        _unquoted(match["table"]),
        is_revoked=match[0].startswith("REVOKE"),
        has_column_grants=on_table != match["privileges"],
    )


def _unquoted(quoted: str) -> str:
    return quoted if quoted == "*" else quoted[1:-1].replace(quoted[0] * 2, quoted[0])


def has_privilege(grants: tuple[Grant, ...], privilege: str, table: TableName) -> bool:
    """Return whether the account has the privilege on the whole table."""
    matching = [
        grant
        for grant in grants
        if grant.gives(privilege)
        and (
            _matches_pattern(table.database, grant.database)
            if grant.table == "*"
            else (grant.database, grant.table) == (table.database, table.name)
        )
    ]
    granted = [grant for grant in matching if not grant.is_revoked]
    # A partial revoke restricts grants on `*.*` only, not those on a database or a
    # table.
    is_granted_narrowly = any(grant.database != "*" for grant in granted)
    is_revoked = any(grant.is_revoked for grant in matching)
    return bool(granted) and (is_granted_narrowly or not is_revoked)


def _matches_pattern(database: str, pattern: str) -> bool:
    """Return whether a database's name matches the pattern of a GRANT. `%` and `_` are
    wildcards unless a backslash precedes them."""
    if pattern == "*":
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(regex, database, re.DOTALL) is not None


def readable_tables(grants: Iterable[Grant], tables: Iterable[TableName]) -> frozenset[TableName]:
    """Return the tables that the account can certainly read with all columns. Tables
    with a grant on single columns are left out. The account may be able to read other
    tables too, for example through an inactive role."""
    grants_on = defaultdict[str, list[Grant]](list)
    for grant in grants:
        grants_on[grant.table].append(grant)
    readable = set[TableName]()
    for table in tables:
        candidates = (*grants_on["*"], *grants_on[table.name])
        has_column_grants = any(
            grant.has_column_grants and grant.database == table.database for grant in candidates
        )
        if not has_column_grants and has_privilege(candidates, "SELECT", table):
            readable.add(table)
    return frozenset(readable)


def account_name(account: str) -> str:
    """Return the value of CURRENT_USER() in the form that GRANT takes: 'user'@'host'."""
    user, _, host = account.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (user, host))


def grant_statement(privileges: str, target: str, account: str) -> str:
    """Return the GRANT to type, without a semicolon. `target`: `*.*`, a quoted database
    with `.*`, or a quoted table."""
    return f"GRANT {privileges} ON {target} TO {account_name(account)}"
