"""Settings of the session and the server that decide what a statement means. The
session's are read from the status variables of the statement's QUERY event.

Sources: `Query_event` in `libs/mysql/binlog/event/statement_events.cpp` of MySQL's
source, where 21 (Q_ENABLE_CASCADE_TRIGGERS, in 9.7) is the last code; `Query_log_event`
in `sql/log_event.h` of MariaDB's for the codes from 128 to 131.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lockstep.pipeline.schema.collations import charset_of, collation_name
from lockstep.pipeline.schema.hidden_columns import knows_hidden_places
from lockstep.pipeline.values.errors import DamagedEvent, UnsupportedEvent
from lockstep.pipeline.values.table import TableName

REAL_AS_FLOAT: Final = 1
ANSI_QUOTES: Final = 1 << 2
IGNORE_SPACE: Final = 1 << 3
_ORACLE: Final = 1 << 9
_MAXDB: Final = 1 << 12
NO_BACKSLASH_ESCAPES: Final = 1 << 20
PARSING_MODES: Final = {
    "ANSI_QUOTES": ANSI_QUOTES,
    "IGNORE_SPACE": IGNORE_SPACE,
    "ORACLE": _ORACLE,
    "MAXDB": _MAXDB,
    "NO_BACKSLASH_ESCAPES": NO_BACKSLASH_ESCAPES,
}
"""Modes of `sql_mode` that change how code, such as a view's query, is parsed: name →
bit."""

STRICT: Final = 1 << 21 | 1 << 22
_MARIADB_EXPLICIT_TIMESTAMPS: Final = 1 << 24
PAD_CHAR_TO_FULL_LENGTH: Final = 1 << 31
"""Mode in which a CHAR is read with its padding, even by ALTER TABLE."""

EMPTY_STRING_IS_NULL: Final = 1 << 32
"""MariaDB's mode in which '' means NULL."""


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """Facts about the server that no event contains. `version`: 90704 for 9.7.4, 101118
    for 10.11.18. `flavour`: "mysql" or "mariadb". `default_engine`: the engine of a
    table whose definition names none. `explicit_timestamps`: the server's
    `explicit_defaults_for_timestamp`, which MySQL before 8.0.14 never logs."""

    version: int = 90704
    flavour: str = "mysql"
    lower_case_table_names: int = 0
    default_engine: str = "InnoDB"
    explicit_timestamps: bool = True

    @property
    def is_mariadb(self) -> bool:
        return self.flavour == "mariadb"

    @property
    def charset_resets_collation(self) -> bool:
        """True if CHARACTER SET after COLLATE replaces the collation with the set's
        default, as in MySQL up to 8.0.15; later versions of 8.0 were not tested. MySQL
        9.7 and MariaDB keep the collation."""
        return not self.is_mariadb and self.version <= 80015

    @property
    def knows_hidden_places(self) -> bool:
        """True if the places of the hidden columns of functional indexes are known."""
        return knows_hidden_places(self.version, mariadb=self.is_mariadb)

    @property
    def is_mysql_8(self) -> bool:
        """True if the server is MySQL 8.0 or later. MySQL 5.7 often behaves like
        MariaDB."""
        return not self.is_mariadb and self.version >= 80000

    @property
    def is_mysql_57(self) -> bool:
        return not self.is_mariadb and self.version < 80000


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The settings of the session in which a statement ran. Collations have canonical
    names.

    `facts`: the server. `utf8mb4_collation`: the default collation of utf8mb4.
    `charset_collations`: MariaDB's default collation of each set. `microseconds`: added
    to the second of the event's timestamp. `database_collation`: the session's
    `collation_database`, if it differs from the database's (MySQL). `alter_phase`:
    MariaDB logs a two-phase ALTER at its "start" and again at its "commit" or
    "rollback". `thread_specific`: the statement used a temporary table or
    CONNECTION_ID(). `error`: the error with which the statement failed after it had
    changed something; 0 if it succeeded. `ddl_xid`: the event has the number of the
    transaction that changed the data dictionary, as in MySQL 8.0 and later for tables
    of InnoDB. `finds_view`: CREATE TABLE IF NOT EXISTS creates nothing, since a view
    has the table's name; the caller finds that out, since the log does not say it.
    """

    facts: ServerDialect = field(default_factory=ServerDialect)
    database: str = ""
    sql_mode: int = 0
    client_charset: str = "utf8mb4"
    connection_collation: str = "utf8mb4_0900_ai_ci"
    server_collation: str | None = None
    utf8mb4_collation: str = "utf8mb4_0900_ai_ci"
    charset_collations: Mapping[str, str] = field(default_factory=dict)
    explicit_timestamps: bool = True
    time_zone: str = ""
    microseconds: int = 0
    alter_phase: str | None = None
    database_collation: str | None = None
    thread_specific: bool = False
    error: int = 0
    ddl_xid: bool = False
    finds_view: bool = False

    def has_mode(self, bits: int) -> bool:
        return bool(self.sql_mode & bits)

    @property
    def type_grammar_mode(self) -> str | None:
        """The sql_mode, ORACLE or MAXDB, that changes the meaning of type names in
        MariaDB; None if neither is set."""
        if self.facts.is_mariadb and self.has_mode(_ORACLE):
            return "ORACLE"
        return "MAXDB" if self.facts.is_mariadb and self.has_mode(_MAXDB) else None


def stored_name(name: TableName, context: StatementContext) -> TableName:
    """Return a table's name as the server stores it: in lower case if
    `lower_case_table_names` is 1."""
    if context.facts.lower_case_table_names == 1:
        return TableName(name.database.lower(), name.name.lower())
    return name


@dataclass(slots=True)
class _StatusReader:
    """A cursor over the status variables of an event. `at`: offset of the next byte."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        content = self.data[self.at : self.at + count]
        if len(content) != count:
            raise DamagedEvent(
                "a QUERY event's status variables end in the middle of a value",
                hint="look at that place with mysqlbinlog; the event was not recorded",
            )
        self.at += count
        return content

    def integer(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def sized_bytes(self) -> bytes:
        return self.take(self.integer(1))

    def bytes_to_nul(self) -> bytes:
        end = self.data.find(b"\0", self.at)
        content = self.take((end if end >= 0 else len(self.data)) - self.at)
        self.take(1)
        return content


_SKIPPED: Final = {3: 4, 7: 2, 8: 2, 9: 8, 10: 4, 14: 8, 15: 8, 19: 1, 20: 1, 21: 1, 129: 8}
"""Status variables that do not matter for structures: code → size of the value in
bytes."""

_TOO_MANY_DATABASES: Final = 254
"""Count of updated databases that stands for too many of them; their names are then
left out."""


def read_context(status: bytes, facts: ServerDialect, database: str = "") -> StatementContext:
    """Read a QUERY event's status variables.

    Raise UnsupportedEvent for an unknown code: the length of its value is unknown, and
    variables after it might change what the statement means. Raise DamagedEvent if the
    variables end in the middle of a value.
    """
    context = StatementContext(
        facts=facts,
        database=database,
        utf8mb4_collation="utf8mb4_0900_ai_ci" if facts.is_mysql_8 else "utf8mb4_general_ci",
        # MySQL logs the variable only with statements that define a TIMESTAMP; for the
        # others its default, ON, makes no difference. Before 8.0.14 MySQL never logs
        # it: the server's setting is taken.
        explicit_timestamps=not facts.is_mariadb
        and (facts.version >= 80014 or facts.explicit_timestamps),
    )
    reader = _StatusReader(status)
    while reader.at < len(status):
        context = _read_variable(reader.integer(1), reader, context)
    return context


def _read_variable(code: int, reader: _StatusReader, context: StatementContext) -> StatementContext:
    """Read the value of one variable, and return the context with it. The codes are
    `Q_FLAGS2_CODE` (0) and those after it, in the sources that the module's docstring
    names."""
    match code:
        case 0:
            flags = reader.integer(4)
            if not context.facts.is_mariadb:
                return context
            explicit = bool(flags & _MARIADB_EXPLICIT_TIMESTAMPS)
            return replace(context, explicit_timestamps=explicit)
        case 1:
            return replace(context, sql_mode=reader.integer(8))
        case 2:  # catalog
            reader.sized_bytes()
            reader.take(1)
        case 4:
            return _read_charsets(reader, context)
        case 5:
            return replace(context, time_zone=reader.sized_bytes().decode("utf-8", "replace"))
        case 6:  # catalog
            reader.sized_bytes()
        case 8 if not context.facts.is_mariadb:
            name = _read_collation(reader.integer(2), context)
            return replace(context, database_collation=name)
        case 11:  # user and host of the invoker
            reader.sized_bytes()
            reader.sized_bytes()
        case 12:  # names of updated databases
            count = reader.integer(1)
            for _ in range(0 if count == _TOO_MANY_DATABASES else count):
                reader.bytes_to_nul()
        case 13 | 128:
            return replace(context, microseconds=reader.integer(3))
        case 16:
            return replace(context, explicit_timestamps=reader.integer(1) != 0)
        case 17:
            reader.take(8)
            return replace(context, ddl_xid=True)
        case 18:
            name = _read_collation(reader.integer(2), context)
            return replace(context, utf8mb4_collation=name)
        case 130:
            return _read_alter_phase(reader, context)
        case 131:
            return _read_charset_collations(reader, context)
        case _ if code in _SKIPPED:
            reader.take(_SKIPPED[code])
        case _:
            raise UnsupportedEvent(
                f"a QUERY event has the status variable {code}, unknown to this version",
                hint="wait for a version that reads it; the event was not recorded",
            )
    return context


def _read_alter_phase(reader: _StatusReader, context: StatementContext) -> StatementContext:
    """Read MariaDB's flags of a two-phase ALTER: 2 for START, 4 for COMMIT, 8 for
    ROLLBACK. After COMMIT and ROLLBACK comes the number of their START."""
    flags = reader.integer(1)
    if flags & 0x0C:
        reader.take(8)
    phases = {2: "start", 4: "commit", 8: "rollback"}
    return replace(context, alter_phase=phases.get(flags & 0x0E))


def _read_charsets(reader: _StatusReader, context: StatementContext) -> StatementContext:
    client, connection, server = (_read_collation(reader.integer(2), context) for _ in range(3))
    return replace(
        context,
        client_charset=charset_of(client) or client,
        connection_collation=connection,
        server_collation=server,
    )


def _read_charset_collations(reader: _StatusReader, context: StatementContext) -> StatementContext:
    """Read MariaDB's `character_set_collations`: pairs of a set's default collation and
    the collation that the session uses instead."""
    collations = dict(context.charset_collations)
    for _ in range(reader.integer(1)):
        default, preferred = (_read_collation(reader.integer(2), context) for _ in range(2))
        collations[charset_of(default) or default] = preferred
    utf8mb4 = collations.get("utf8mb4", context.utf8mb4_collation)
    return replace(context, charset_collations=collations, utf8mb4_collation=utf8mb4)


def _read_collation(number: int, context: StatementContext) -> str:
    name = collation_name(number, context.facts.flavour)
    if name is None:
        raise UnsupportedEvent(
            f"a QUERY event names the collation {number}, unknown to this version",
            hint="wait for a version that knows it; the event was not recorded",
        )
    return name


_UTC_OFFSET: Final = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d?):(?P<minutes>\d\d)")


def fixed_zone(name: str) -> tzinfo | None:
    """Return a session's `time_zone` if it is a fixed offset from UTC; else None."""
    offset = _UTC_OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset["hours"]) * 60 + int(offset["minutes"])
        return timezone(timedelta(minutes=-minutes if offset["sign"] == "-" else minutes))
    return UTC if name == "UTC" else None


def zone_of(name: str) -> tzinfo | None:
    """Return the zone of a session's `time_zone`; None for an empty name, for a zone
    that this machine does not know, and for a name without a slash except UTC: SYSTEM
    and `localtime` mean something else on each machine."""
    fixed = fixed_zone(name)
    if fixed is not None:
        return fixed
    try:
        return ZoneInfo(name) if "/" in name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
