"""A survey of a source's server: the facts that `lockstep check` judges.

Values only, as the server reports them: global variables, grants, replicas, tables. They are
gathered by `resources.mysql.survey` and judged by `pipeline.check`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Answering:
    """The server that answered one connection. The greeting comes from whatever listens at the
    address, before the login; the other values are read by SQL after it."""

    greeted_as: str
    greeted_id: int
    version: str
    connection_id: int
    version_comment: str
    identity: tuple[str, ...]
    """Values that distinguish servers: hostname, port, server id, and server_uuid if it has one."""


@dataclass(frozen=True, slots=True)
class RegisteredReplica:
    """A replica that registered at this server."""

    server_id: int
    host: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel through which this server itself replicates. `lag`: its own estimate in seconds, or
    None while it applies nothing."""

    source: str
    receives: bool
    applies: bool
    lag: int | None


@dataclass(frozen=True, slots=True)
class LogFilters:
    """The databases to which the log is limited, and those that it leaves out."""

    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SurveyedTable:
    """A table that is not a view. `kind` is the table_type of information_schema."""

    name: TableName
    kind: str
    engine: str
    partitioned: bool


@dataclass(frozen=True, slots=True)
class SurveyedForeignKey:
    """A foreign key. The actions are None if the account may not see them."""

    name: str
    child: TableName
    parent: TableName
    on_update: str | None
    on_delete: str | None


@dataclass(frozen=True, slots=True)
class OddSession:
    """The number of sessions that currently have a value of their own for a variable."""

    variable: str
    value: str
    sessions: int


@dataclass(frozen=True, slots=True)
class ReadReplica:
    """The replica from which tables are read. `fault`: why it cannot be used, and its `cure`."""

    name: str
    fault: str | None = None
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """All facts about one server. `settings`: all global variables by lower-case name.

    `account`: CURRENT_USER() (user@host). `grants`: the lines of SHOW GRANTS without passwords.
    `dump_server_ids`: the server ids that Lockstep's own dumps use. `unanswered`: names of the
    fields that are empty because the account may not see them or the server does not have them.
    `clock_ahead`: the server's clock minus ours.
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
    """Return whether a host name or address always means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
