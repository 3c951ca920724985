"""What a source's server says of itself when it is looked at closely, before any run.

Values only, as the server gave them: global variables, grants, replicas, tables. What
they mean is `pipeline.preflight`; asking is `resources.mysql.survey`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answered one connection. The greeting is what was said before the login, by
    whatever listens at the address; the rest is what SQL says afterwards."""

    greeted_as: str
    greeted_id: int
    version: str
    connection_id: int
    version_comment: str
    identity: tuple[str, ...]
    """What no two servers share: hostname, port, server id, and server_uuid if it has one."""


@dataclass(frozen=True, slots=True)
class RegisteredReplica:
    """A replica of this server, as it registered."""

    server_id: int
    host: str


@dataclass(frozen=True, slots=True)
class Channel:
    """One channel through which this server itself replicates. `lag` is its own estimate
    of seconds; None while it does not apply."""

    source: str
    receives: bool
    applies: bool
    lag: int | None


@dataclass(frozen=True, slots=True)
class LogFilters:
    """Databases the log is limited to, and databases it leaves out."""

    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SurveyedTable:
    """A table of any kind but views. `kind` is information_schema's table_type."""

    name: TableName
    kind: str
    engine: str
    partitioned: bool


@dataclass(frozen=True, slots=True)
class SurveyedForeignKey:
    """A foreign key. The actions are None where the account may not see them."""

    name: str
    child: TableName
    parent: TableName
    on_update: str | None
    on_delete: str | None


@dataclass(frozen=True, slots=True)
class OddSession:
    """How many sessions have a value of their own for a variable at this moment."""

    variable: str
    value: str
    sessions: int


@dataclass(frozen=True, slots=True)
class ReadReplica:
    """The replica that tables are read from, and why it may not be, with what cures that."""

    name: str
    fault: str | None = None
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """One look at a server. `settings` are all global variables by lower-case name.

    `account` is CURRENT_USER() (user@host); `grants` are the lines of SHOW GRANTS
    without passwords. `dump_server_ids` are those our own dumps carry. `unanswered` names
    what the account may not see or the server does not know, by field; those fields are
    then empty. `clock_ahead` is the server's clock minus ours.
    """

    flavour: str
    version: str
    settings: Mapping[str, str]
    account: str
    grants: tuple[str, ...]
    dump_server_ids: range
    answering: tuple[Answering, ...]
    encrypted: bool
    loopback: bool
    clock_ahead: timedelta
    read_at: datetime
    replicas: tuple[RegisteredReplica, ...] = ()
    dumps: int = 0
    channels: tuple[Channel, ...] = ()
    filters: LogFilters = LogFilters()
    tables: tuple[SurveyedTable, ...] = ()
    foreign_keys: tuple[SurveyedForeignKey, ...] = ()
    odd_sessions: tuple[OddSession, ...] = ()
    read_from: ReadReplica | None = None
    unanswered: frozenset[str] = frozenset()


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
