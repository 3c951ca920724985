"""Surveys a server for the preflight (the checks before the first run), by the same
number of queries however many tables it has.

Statements: MySQL manual, "SHOW Statements"; the older forms are for MariaDB and MySQL
before 8.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.values.survey import (
    AnsweringServer,
    Channel,
    LogFilters,
    RegisteredReplica,
    SessionOverride,
    Survey,
    SurveyedForeignKey,
    SurveyedTable,
    is_loopback,
)
from lockstep.pipeline.values.table import SYSTEM_DATABASES, TableName
from lockstep.resources.mysql.connection import ConnectionSettings, connect
from lockstep.resources.mysql.receiving import SERVER_IDS

_TABLES: Final = """
select table_schema, table_name, table_type, coalesce(engine, '') as engine,
       coalesce(create_options, '') as options
  from information_schema.tables
 where table_type not in ('VIEW', 'SYSTEM VIEW')
 order by table_schema, table_name
"""
_FOREIGN_KEYS: Final = """
select constraint_name, table_schema, table_name, referenced_table_schema, referenced_table_name
  from information_schema.key_column_usage
 where referenced_table_name is not null and ordinal_position = 1
 order by table_schema, table_name, constraint_name
"""
_ACTIONS: Final = """
select constraint_schema, table_name, constraint_name, update_rule, delete_rule
  from information_schema.referential_constraints
"""
"""The actions are queried separately, because MariaDB joins information_schema row by
row, and shows this table only to accounts with more than SELECT."""

_SESSION_OVERRIDES: Final = """
select v.variable_name, v.variable_value, count(*) as sessions
  from performance_schema.variables_by_thread v
  join performance_schema.global_variables g on g.variable_name = v.variable_name
 where v.variable_name in ('binlog_format', 'binlog_row_image', 'binlog_row_value_options',
                           'binlog_transaction_compression')
   and v.variable_value <> g.variable_value
 group by v.variable_name, v.variable_value
 union all
select variable_name, variable_value, count(*) as sessions
  from performance_schema.variables_by_thread
 where variable_name = 'sql_log_bin' and variable_value <> 'ON'
 group by variable_name, variable_value
"""
_PASSWORD_HASH: Final = re.compile(r" IDENTIFIED (BY|VIA|WITH) .*")
"""The end of a line of MariaDB's SHOW GRANTS, from the password's hash on."""

_Rows = list[dict[str, Any]]


def take_survey(settings: ConnectionSettings) -> Survey:
    """Survey a server over two connections, which a proxy may lead to two servers. If
    the account is not allowed to run a query, its answer is empty and the field is
    named in `unanswered_fields`. Raise the errors of `connect` if a connection
    fails."""
    with connect(settings) as first, connect(settings) as second:
        answering = tuple(_identify_server(connection) for connection in (first, second))
        with first.cursor() as cursor:
            return _Surveyor(cursor).survey(settings, answering)


def _identify_server(connection: pymysql.Connection[Cursor]) -> AnsweringServer:
    driver: Any = connection  # PyMySQL has no types for its two calls
    with connection.cursor() as cursor:
        # ProxySQL answers exactly this statement itself, so the answer reveals
        # ProxySQL.
        cursor.execute("select @@version_comment limit 1")
        comment = _first_row(cursor)[0]
        cursor.execute("select @@version, connection_id(), @@hostname, @@port, @@server_id")
        version, connection_id, *identity = _first_row(cursor)
        with suppress(pymysql.err.OperationalError):  # MariaDB has no server_uuid
            cursor.execute("select @@server_uuid")
            identity += _first_row(cursor)
    return AnsweringServer(
        greeting_version=driver.get_server_info(),
        greeting_connection_id=driver.thread_id(),
        version=version,
        connection_id=connection_id,
        version_comment=comment,
        identity=tuple(map(str, identity)),
    )


def _first_row(cursor: Cursor) -> Sequence[Any]:
    return cursor.fetchone() or ()


class _Surveyor:
    """The queries of one survey, over one cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._unanswered: set[str] = set()

    def survey(
        self, settings: ConnectionSettings, answering: tuple[AnsweringServer, ...]
    ) -> Survey:
        self._cursor.execute("show global variables")
        variables = {name.lower(): value for name, value in self._cursor.fetchall()}
        self._cursor.execute("select current_user()")
        (account,) = _first_row(self._cursor)
        return Survey(
            flavour="mariadb" if "mariadb" in variables["version"].lower() else "mysql",
            version=variables["version"],
            settings=variables,
            account=account,
            grants=tuple(
                _PASSWORD_HASH.sub("", line)
                for row in self._first_answer("grants", "show grants")
                for line in row.values()
            ),
            dump_server_ids=SERVER_IDS,
            answering_servers=answering,
            is_encrypted=any(
                row["value"]
                for row in self._first_answer(
                    "is_encrypted", "show session status like 'Ssl_cipher'"
                )
            ),
            is_loopback=is_loopback(settings.host),
            clock_ahead=self._clock_ahead(),
            read_at=datetime.now(UTC),
            replicas=tuple(
                RegisteredReplica(int(row["server_id"]), row.get("host") or "")
                for row in self._first_answer("replicas", "show replicas", "show slave hosts")
            ),
            dump_count=sum(
                str(row["command"]).startswith("Binlog Dump")
                for row in self._first_answer("dump_count", "show processlist")
            ),
            channels=tuple(
                _channel(row)
                for row in self._first_answer(
                    "channels", "show all slaves status", "show replica status", "show slave status"
                )
            ),
            filters=self._filters(),
            tables=self._tables(),
            foreign_keys=self._foreign_keys(),
            session_overrides=self._session_overrides(variables),
            unanswered_fields=frozenset(self._unanswered),
        )

    def _session_overrides(self, variables: Mapping[str, str]) -> tuple[SessionOverride, ...]:
        if variables.get("performance_schema") != "ON":
            self._unanswered.add("session_overrides")  # its tables exist, but are empty
            return ()
        return tuple(
            SessionOverride(row["variable_name"], row["variable_value"], int(row["sessions"]))
            for row in self._first_answer("session_overrides", _SESSION_OVERRIDES)
        )

    def _first_answer(self, field: str, *statements: str) -> _Rows:
        """Return the rows of the first statement that the server knows and the account
        may run, by lower-case column; if there is none, return no rows and note `field`
        as unanswered."""
        for statement in statements:
            try:
                self._cursor.execute(statement)
            except pymysql.DatabaseError:
                if not self._cursor.connection.open:
                    raise  # the connection was lost
                continue
            names = [column[0].lower() for column in self._cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in self._cursor.fetchall()]
        self._unanswered.add(field)
        return []

    def _clock_ahead(self) -> timedelta:
        """Return the server's clock minus ours, which is taken halfway through the
        query."""
        before = datetime.now(UTC)
        self._cursor.execute("select utc_timestamp(6)")
        after = datetime.now(UTC)
        server_time: datetime = _first_row(self._cursor)[0]
        return server_time.replace(tzinfo=UTC) - (before + (after - before) / 2)

    def _filters(self) -> LogFilters:
        rows = self._first_answer("filters", "show binary log status", "show master status")
        if not rows:
            return LogFilters()
        return LogFilters(
            _split_names(rows[0]["binlog_do_db"]), _split_names(rows[0]["binlog_ignore_db"])
        )

    def _tables(self) -> tuple[SurveyedTable, ...]:
        return tuple(
            SurveyedTable(
                TableName(row["table_schema"], row["table_name"]),
                row["table_type"],
                row["engine"],
                "partitioned" in row["options"],
            )
            for row in self._first_answer("tables", _TABLES)
            if row["table_schema"] not in SYSTEM_DATABASES
        )

    def _foreign_keys(self) -> tuple[SurveyedForeignKey, ...]:
        actions = {
            (row["constraint_schema"], row["table_name"], row["constraint_name"]): row
            for row in self._first_answer("foreign_keys", _ACTIONS)
        }
        keys = []
        for row in self._first_answer("foreign_keys", _FOREIGN_KEYS):
            child = TableName(row["table_schema"], row["table_name"])
            parent = TableName(row["referenced_table_schema"], row["referenced_table_name"])
            name = row["constraint_name"]
            rules = actions.get((child.database, child.name, name), {})
            on_update, on_delete = rules.get("update_rule"), rules.get("delete_rule")
            keys.append(SurveyedForeignKey(name, child, parent, on_update, on_delete))
        return tuple(keys)


def _channel(row: dict[str, Any]) -> Channel:
    """Return the channel of a row of SHOW REPLICA STATUS, in its new or old spelling."""

    def either(new: str, old: str) -> Any:
        return row[new] if new in row else row[old]

    lag = either("seconds_behind_source", "seconds_behind_master")
    return Channel(
        source=str(either("source_host", "master_host")),
        is_receiving=either("replica_io_running", "slave_io_running") == "Yes",
        is_applying=either("replica_sql_running", "slave_sql_running") == "Yes",
        lag=None if lag is None else int(lag),
    )


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
