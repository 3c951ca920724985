"""Connections to MySQL, the variables of their sessions, the meaning of a server's
errors, and a server's product and version.

A session begins with copies of the server's global variables, which `init_connect` may
change. Each variable that could cut off, change or refuse an answer is set by
`SESSION_VARIABLES`. A few stay as the server has them, because the value of a virtual
column may depend on them and has to be read as other sessions read it:
`default_week_format`, `div_precision_increment`, `lc_time_names`,
`block_encryption_mode`, MariaDB's `old_mode`, and some words of `sql_mode`. None of our
statements depends on these.

Variables: MySQL manual, "Server System Variables"; MariaDB documentation, "Server
System Variables".
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.constants import SERVER_STATUS
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.stream.control import version_number
from lockstep.pipeline.binlog.stream.intake import DUMP_REFUSED, dump_refusal
from lockstep.pipeline.values.errors import (
    AccessDenied,
    HostUnknown,
    LockstepError,
    PrivilegeMissing,
    ServerSettings,
    SourceMoving,
    SourceRefused,
    SourceUnavailable,
    TlsRefused,
)
from lockstep.pipeline.values.server_errors import Meaning, explain, meaning_of
from lockstep.pipeline.values.survey import grant_statement

_NO_BINLOG = 1381  # ER_NO_BINARY_LOGGING
_TLS_REQUIRED = 3159  # ER_SECURE_TRANSPORT_REQUIRED
_PACKET_TOO_LARGE = 1153  # ER_NET_PACKET_TOO_LARGE
_WRONG_PASSWORD = 1045  # ER_ACCESS_DENIED_ERROR

_LOGIN_HINT: Final = "check user and password of the source in lockstep.toml"
_EXPIRED_HINT: Final = (
    "at the server, `alter user … identified by … password expire never`, because only a new "
    "password ends this; then run again with it"
)
_LOCKED_HINT: Final = "at the server, `alter user … account unlock`; then run again"
_ACCOUNT_HINTS: Final = {
    1203: "run again; if it happens every time, raise `max_user_connections` of the server",
    1226: "at the server, raise that limit of the account (`alter user … with "
    "max_user_connections 0`), or run again in an hour if it counts by the hour",
    1820: _EXPIRED_HINT,
    1862: _EXPIRED_HINT,
    3118: _LOCKED_HINT,
    3955: _LOCKED_HINT,
    4151: _LOCKED_HINT,
}
"""Hints, by error number, about limits and accounts that are changed at the server."""

_OLD_TLS: Final = (
    "the server supports TLS 1.1 at most, which OpenSSL refuses on this machine",
    "upgrade the server (MySQL supports TLS 1.2 in all of 8.0, and since 5.7.28), or set up an "
    "encrypted tunnel to it and set tls = 'off' with tls_force = true",
)
_UNVERIFIED_HINT: Final = (
    "set tls_ca to the server's CA, or set tls = 'required' (encrypted, unverified), or 'off' on "
    "the loopback"
)
_UNKNOWN_AUTHORITY: Final = (
    "no authority that this machine trusts has signed the server's certificate; a server makes "
    "such a certificate for itself at its first start",
    _UNVERIFIED_HINT,
)
_TLS_SIGNS: Final = (
    (
        "certificate is not valid for",
        "the server's certificate is not for the name or address in host",
        "set host to a name that the certificate has, or set tls = 'required' (encrypted, "
        "unverified)",
    ),
    (
        "certificate has expired",
        "the server's certificate, or its CA's, has expired",
        "renew it, or set tls = 'required' (encrypted, unverified) until then",
    ),
    ("unable to get local issuer certificate", *_UNKNOWN_AUTHORITY),
    ("self-signed certificate", *_UNKNOWN_AUTHORITY),
    ("self signed certificate", *_UNKNOWN_AUTHORITY),
    ("UNSAFE_LEGACY_RENEGOTIATION", *_OLD_TLS),
    ("UNSUPPORTED_PROTOCOL", *_OLD_TLS),
    ("ALERT_PROTOCOL_VERSION", *_OLD_TLS),
    ("WRONG_VERSION_NUMBER", *_OLD_TLS),
    (
        "server doesn't support it",
        "the server has no certificate and does not support TLS",
        "give the server a certificate (ssl_cert, ssl_key), or set up an encrypted tunnel to it "
        "and set tls = 'off' with tls_force = true",
    ),
)
"""Part of the text of an error (of the driver or of OpenSSL), the error's meaning, and
a hint."""

_BROKEN_TLS_SIGNS: Final = ("EOF", "BAD_RECORD_MAC")
"""Parts of the text of an error of OpenSSL about a connection that ended, or whose
bytes were damaged, as it happens while a server restarts: the settings are right."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence before the first keepalive probe, and between probes; number of
probes."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The address and account of a server. `tls`: "verify" (certificate and name are
    verified), "required" (encrypted, unverified) or "off". Timeouts are in seconds.
    `server`: the identity of the only server that may answer (`open_connection`); None
    if any may."""

    host: str
    port: int
    user: str
    password: str
    tls: str = "verify"
    tls_ca: str | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    server: str | None = None

    def __repr__(self) -> str:
        return f"ConnectionSettings({self.user}@{self.host}:{self.port}, tls={self.tls})"


@contextmanager
def connect(settings: ConnectionSettings, **options: Any) -> Iterator[pymysql.Connection[Cursor]]:
    """Yield a connection and close it at the end; errors are raised as
    `pipeline.values.errors`."""
    with translate_errors(settings):
        connection = open_connection(settings, **options)
        try:
            yield connection
        finally:
            if connection.open:
                connection.close()


def open_connection(
    settings: ConnectionSettings, *, extra_assignments: str = "", **options: Any
) -> pymysql.Connection[Cursor]:
    """Return a connection whose session has the variables of `SESSION_VARIABLES`: UTC,
    autocommit, utf8mb4, no limits. `extra_assignments`: more assignments, each after a
    comma. Raise `SourceMoving` if another server than `settings.server` answers. The
    caller closes the connection, and wraps its use in `translate_errors`."""
    return _open_identified(settings, extra_assignments, **options)[0]


def open_and_identify(
    settings: ConnectionSettings,
) -> tuple[pymysql.Connection[Cursor], ConnectionSettings]:
    """Return a connection as `open_connection` does, and the settings with the identity
    of its server. Errors are raised as `pipeline.values.errors`."""
    with translate_errors(settings):
        connection, identity = _open_identified(settings, "")
    return connection, replace(settings, server=identity)


def _open_identified(
    settings: ConnectionSettings, extra_assignments: str, **options: Any
) -> tuple[pymysql.Connection[Cursor], str]:
    connection: pymysql.Connection[Cursor] = _Connection(
        host=settings.host,
        port=settings.port,
        user=settings.user,
        password=settings.password,
        charset="utf8mb4",
        autocommit=None,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        write_timeout=settings.read_timeout,
        **_tls_options(settings),
        **options,
    )
    driver: Any = connection  # PyMySQL has no type for this call
    try:
        session_start = _session_start(replace(settings, server=None), driver.get_server_info())
        identity = session_start.begin(connection, extra_assignments)
        _require_same_server(settings, identity)
    except BaseException:
        if connection.open:
            connection.close()
        raise
    return connection, identity


def _require_same_server(settings: ConnectionSettings, identity: str) -> None:
    if settings.server not in {None, identity}:
        raise SourceMoving(
            f"{settings.host}:{settings.port} leads to another server now: {identity}, not "
            f"{settings.server}",
            hint="run again; if it happens every time, give the address of one server in "
            "lockstep.toml",
        )


class _Connection(pymysql.Connection):
    """A connection without PyMySQL's statement for the character set, which
    `SessionStart` sets together with the other variables."""

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        return


@cache
def _session_start(_settings: ConnectionSettings, _version: str) -> SessionStart:
    """Return the `SessionStart` for an account and a server of this version, cached in
    the process."""
    return SessionStart()


def remove_read_timeout(connection: pymysql.Connection[Cursor]) -> None:
    """Remove the read timeout, for statements whose first row may take long, such as a
    sum over a table. TCP keepalive then detects a dead server."""
    driver: Any = connection  # no public call for either
    driver._read_timeout = None
    driver._sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            driver._sock.setsockopt(socket.IPPROTO_TCP, option, value)


def shut_down_socket(connection: pymysql.Connection[Cursor]) -> None:
    """Shut the socket down: another thread that waits for an answer loses its
    connection."""
    driver: Any = connection
    with suppress(OSError, AttributeError):  # it is closed
        driver._sock.shutdown(socket.SHUT_RDWR)


def _tls_options(settings: ConnectionSettings) -> dict[str, Any]:
    if settings.tls == "off":
        return {"ssl_disabled": True}
    verified = settings.tls != "required"
    ca_file = settings.tls_ca or (ssl.get_default_verify_paths().cafile if verified else None)
    modified_at = Path(ca_file).stat().st_mtime_ns if ca_file else 0
    return {"ssl": _tls_context(settings.tls_ca, modified_at, verified=verified)}


@cache
def _tls_context(ca_file: str | None, _modified_at: int, *, verified: bool) -> ssl.SSLContext:
    """Return a TLS context, cached for each state of the certificate file, because
    reading the system's certificates takes much longer than connecting. These are read
    only for verification without a file."""
    if verified or ca_file:
        context = ssl.create_default_context(cafile=ca_file)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def translate_errors(settings: ConnectionSettings) -> Iterator[None]:
    """Raise errors of the driver and socket as `pipeline.values.errors`, with the
    original as cause."""
    try:
        yield
    except LockstepError:
        raise
    except pymysql.MySQLError as error:
        raise _translate(settings, error) from error
    except (ssl.SSLError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise _tls_error(settings, error) from error  # a file error is about `tls_ca`
    except OSError as error:
        raise _unavailable_error(settings, str(error)) from error
    except UnicodeError as error:
        if "idna" not in str(error):
            raise
        raise _host_error(settings) from error  # no host can have this name: `db..example`


def read_value(cursor: Cursor, query: str) -> str:
    """Return the single value of a query, "" for NULL or no row, without newlines
    (which GTID sets have) and outer white space."""
    cursor.execute(query)
    row = cursor.fetchone()
    return "" if row is None or row[0] is None else "".join(str(row[0]).split("\n")).strip()


def number_of(error: pymysql.MySQLError) -> int:
    """Return an error's number; 0 if the driver gave none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def text_of(error: pymysql.MySQLError) -> str:
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def _translate(settings: ConnectionSettings, error: pymysql.MySQLError) -> LockstepError:
    number, text = number_of(error), text_of(error)
    account = f"{settings.user}@{settings.host}:{settings.port}"
    if number == _NO_BINLOG:
        return ServerSettings(
            f"{settings.host}:{settings.port} writes no binary log",
            hint="set log_bin in the server's configuration and restart it",
        )
    if number == _TLS_REQUIRED:
        return _tls_error(settings, error)
    if number == DUMP_REFUSED:
        return dump_refusal(text)
    match meaning_of(number):
        case Meaning.ACCESS:
            hint = _ACCOUNT_HINTS.get(number, _LOGIN_HINT)
            if number == _WRONG_PASSWORD and settings.tls == "off":
                # MySQL refuses the right password in the same way if the account has REQUIRE SSL.
                hint += "; or the account requires TLS: set tls = 'verify' or 'required'"
            return AccessDenied(f"MySQL refuses {account}: {text}", hint=hint)
        case Meaning.PRIVILEGE:
            privileges = "REPLICATION SLAVE, REPLICATION CLIENT"
            return PrivilegeMissing(
                f"the account {account} lacks a privilege: {text}",
                hint=f"{grant_statement(privileges, '*.*', account_of(settings))}; and SELECT on "
                "the captured tables",
            )
        case Meaning.NOT_NOW | Meaning.BUSY:
            return SourceUnavailable(
                f"MySQL at {settings.host}:{settings.port} cannot answer now: "
                f"{explain(number, text)}",
                hint=_ACCOUNT_HINTS.get(
                    number, "run again; if it happens every time, look at the server's error log"
                ),
            )
        case Meaning.LOST:
            return _lost_error(settings, error, text)
        case Meaning.REFUSED:
            return SourceRefused(
                f"MySQL at {settings.host}:{settings.port} refuses a query: "
                f"{explain(number, text)}",
                hint="fix the problem that the server reports, then run again",
            )


def account_of(settings: ConnectionSettings) -> str:
    """Return CURRENT_USER(), whose host may be a pattern; the configured name if the
    server does not answer."""
    # `connect` is not used, because its translation of errors calls this function.
    with (
        suppress(LockstepError, pymysql.MySQLError, OSError),
        closing(open_connection(settings)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("select current_user()")
        for (account,) in cursor.fetchall():
            return str(account)
    return f"{settings.user}@%"


def _lost_error(
    settings: ConnectionSettings, error: pymysql.MySQLError, text: str
) -> LockstepError:
    cause = error.__cause__ or error.__context__ or getattr(error, "original_exception", None)
    if isinstance(cause, ssl.SSLError) or "SSL" in text or "certificate" in text:
        return _tls_error(settings, error)
    if isinstance(cause, socket.gaierror):
        return _host_error(settings)
    return _unavailable_error(settings, text)


def _host_error(settings: ConnectionSettings) -> HostUnknown:
    return HostUnknown(
        f"the host name {settings.host!r} does not resolve",
        hint="check host of the source in lockstep.toml",
    )


def _tls_error(settings: ConnectionSettings, error: BaseException) -> LockstepError:
    text = str(error)
    if any(sign in text for sign in _BROKEN_TLS_SIGNS):
        return _unavailable_error(
            settings, text_of(error) if isinstance(error, pymysql.MySQLError) else text
        )
    reason, hint = next(
        ((reason, hint) for sign, reason, hint in _TLS_SIGNS if sign in text),
        (text, _UNVERIFIED_HINT),
    )
    if hint is _UNVERIFIED_HINT and settings.tls_ca:
        hint = hint.replace("set tls_ca", f"set tls_ca, which is {settings.tls_ca},")
    return TlsRefused(
        f"no secured connection to {settings.host}:{settings.port} with tls = {settings.tls!r}: "
        f"{reason}",
        hint=hint,
    )


def _unavailable_error(settings: ConnectionSettings, text: str) -> SourceUnavailable:
    return SourceUnavailable(
        f"MySQL at {settings.host}:{settings.port} cannot be reached: "
        f"{text or 'the connection was closed'}",
        hint="check that the server runs and that host and port are correct, then run again",
    )


LOCK_SECONDS: Final = 20
"""Seconds that a statement waits for a lock. Writers queue up after the waiting reader,
so it must give up before its connection times out."""

LEAST_PACKET_BYTES: Final = 1 << 12
"""Smallest max_allowed_packet, in bytes, that our statements fit into. In MySQL a
session cannot set the variable for itself. The code that reads a value notices if this
limit truncated it."""

_LARGEST: Final = "18446744073709551615"

SESSION_VARIABLES: Final = {
    # Character sets of what is sent and received, and the zone that moments are printed
    # in.
    "character_set_client": "utf8mb4",
    "character_set_results": "utf8mb4",
    "collation_connection": "utf8mb4_general_ci",
    "time_zone": "'+00:00'",
    # What a statement means. If max_allowed_packet has become too small, the first of
    # these is set to 2, which the server refuses with a clear error. A statement that
    # is too long would only lose the connection.
    "sql_auto_is_null": f"if(@@max_allowed_packet < {LEAST_PACKET_BYTES}, 2, 0)",
    "sql_safe_updates": "0",
    "system_versioning_asof": "default",
    # Limits that leave rows out, or refuse a statement.
    "sql_select_limit": _LARGEST,
    "max_join_size": _LARGEST,
    "sql_big_selects": "1",  # comes after max_join_size, which switches it off
    "group_concat_max_len": "1048576",
    "max_sort_length": "1024",
    "sort_buffer_size": "2097152",
    "tmp_disk_table_size": _LARGEST,
    "max_session_mem_used": "9223372036854775807",
    # Transactions.
    "completion_type": "'NO_CHAIN'",  # comes before autocommit, which may commit
    "autocommit": "1",
    "transaction_isolation": "'REPEATABLE-READ'",
    "tx_isolation": "'REPEATABLE-READ'",
    # How long a statement, a lock or a silent session may last.
    "max_execution_time": "0",
    "max_statement_time": "0",
    "lock_wait_timeout": str(LOCK_SECONDS),
    "wait_timeout": "86400",
    "net_read_timeout": "600",
    "net_write_timeout": "3600",
    "idle_transaction_timeout": "0",
    "idle_readonly_transaction_timeout": "0",
    # What is shown of tables, of statements and of other sessions.
    "show_gipk_in_create_table_and_information_schema": "1",  # row images have these columns
    "show_old_temporals": "1",  # such columns have another form in the log
    "show_create_table_verbosity": "0",
    "sql_quote_show_create": "1",
    "explain_format": "'TRADITIONAL'",
    "terminology_use_previous": "'NONE'",
    "lc_messages": "'en_US'",
    "note_verbosity": "'basic'",
    # Caches and engines that may return other rows than the table has now.
    "use_secondary_engine": "'OFF'",
    "query_cache_type": "0",
    "sql_buffer_result": "0",
    "wsrep_dirty_reads": "0",
    "in_predicate_conversion_threshold": "0",
}
"""Variable → its value in SQL, in the order in which they are set. No server has all of
them."""

_IDENTITY: Final = ("server_uuid", "hostname", "port", "server_id")
"""Variables by which servers are told apart. MariaDB has no server_uuid, and all nodes of a Galera
cluster may have the same server_id."""

_KEPT_MODES: Final = (
    "ALLOW_INVALID_DATES",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "TIME_ROUND_FRACTIONAL",
    "TIME_TRUNCATE_FRACTIONAL",
)
"""Words of `sql_mode` that stay as they are: they change the values of expressions. All
others change how statements are parsed or what may be written, or pad CHAR."""

_LIFT_LIMITS: Final = (
    f"set session sql_select_limit = {_LARGEST}, sql_big_selects = 1"
    " /*!50708 , max_execution_time = 0 */ /*M!100301 , max_statement_time = 0,"
    f" max_session_mem_used = 9223372036854775807, tmp_disk_table_size = {_LARGEST} */"
)
"""The first statement of a session: it lifts the limits that could cut off the list of
variables. MySQL and MariaDB each execute the comments that are meant for them."""

_SHOW_VARIABLES: Final = "show session variables"
"""Asks for all variables, because a list of names would not fit into the smallest
max_allowed_packet."""


class SessionStart:
    """The statement that sets the variables of each session of one account at one
    server. The first session asks for the server's variables, to compose the statement;
    each later session begins with one round trip."""

    def __init__(self) -> None:
        self._composed: tuple[str, str] | None = None
        """The statement, and the identity of the only server that does not refuse it."""

    def begin(self, connection: pymysql.Connection[Cursor], extra_assignments: str) -> str:
        """Set all variables, and `extra_assignments`: assignments for this session
        only. Return the server's identity. Raise `ServerSettings` if a variable has
        another value and the account may not set it."""
        composed = self._composed
        with connection.cursor() as cursor:
            if composed is None or not _execute_unless_refused(
                cursor, composed[0] + extra_assignments
            ):
                composed = self._composed = _set_and_compose(cursor, extra_assignments)
        driver: Any = connection  # no public attribute for it
        if driver.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
            connection.rollback()  # init_connect began it
        return composed[1]


def _execute_unless_refused(cursor: Cursor, statement: str) -> bool:
    """Execute the statement. Return False if the server refuses it, for instance
    because another server has this address now."""
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        if number_of(error) == _PACKET_TOO_LARGE:  # after which the server closes the connection
            _require_packet_size(f"less than {len(statement)}")
        if meaning_of(number_of(error)) not in _REFUSALS:
            raise
        return False
    return True


def _set_and_compose(cursor: Cursor, extra_assignments: str) -> tuple[str, str]:
    """Set the variables of this session. Return the statement that does so at this
    server, and the server's identity; every other server refuses the statement."""
    cursor.execute(_LIFT_LIMITS)
    cursor.execute(_SHOW_VARIABLES)
    variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    _require_packet_size(variables.get("max_allowed_packet"))
    modes = [
        mode for mode in _KEPT_MODES if mode in variables.get("sql_mode", "").upper().split(",")
    ]
    assignments = {
        "sql_mode": f"'{','.join(modes)}'",
        **{name: value for name, value in SESSION_VARIABLES.items() if name in variables},
    }
    if not _execute_unless_refused(cursor, _set_statement(assignments) + extra_assignments):
        assignments = {
            name: value
            for name, value in assignments.items()
            if _try_to_set(cursor, name, value, variables)
        }
        cursor.execute(_set_statement(assignments) + extra_assignments)
    names = [name for name in _IDENTITY if name in variables]
    identity = ":".join(variables[name] for name in names)
    refusal = f", sql_auto_is_null = if(concat_ws(':', @@{', @@'.join(names)}) = %s, 0, 2)"
    return _set_statement(assignments) + cursor.mogrify(refusal, (identity,)), identity


def _set_statement(assignments: Mapping[str, str]) -> str:
    return "set session " + ", ".join(f"{name} = {value}" for name, value in assignments.items())


def _try_to_set(cursor: Cursor, name: str, value: str, variables: Mapping[str, str]) -> bool:
    """Set a variable, and return True. If the account cannot set it, return False if
    the variable has the wanted value already, else raise `ServerSettings`."""
    try:
        cursor.execute(_set_statement({name: value}))
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) not in _REFUSALS:
            raise
        if _in_one_spelling(variables[name]) == _in_one_spelling(value):
            return False
        raise ServerSettings(
            f"{name} is {variables[name]!r}, and the account may not set it for its sessions: "
            f"{explain(number_of(error), text_of(error), (name,))}",
            hint=f"set global {name} = {value}; (and put it into the server's configuration)",
        ) from error
    return True


_REFUSALS: Final = frozenset({Meaning.REFUSED, Meaning.PRIVILEGE})
_NUMBER_OF_WORD: Final = {"ON": "1", "OFF": "0"}


def _in_one_spelling(value: str) -> str:
    """Return a value in one spelling, to compare the server's with ours: ON and 1 are
    the same."""
    word = value.strip("'").upper()
    return _NUMBER_OF_WORD.get(word, word)


def _require_packet_size(size: str | None) -> None:
    if size is None or not size.isdigit() or int(size) < LEAST_PACKET_BYTES:
        raise ServerSettings(
            f"max_allowed_packet is {size}, which is too small for Lockstep's statements",
            hint=f"set global max_allowed_packet = {1 << 26}; (and put it into the server's "
            "configuration)",
        )


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server's product and version. `version`: a number such as 90704 for 9.7.4, 0 if
    it is unknown."""

    is_mariadb: bool
    version: int

    @property
    def flavour(self) -> str:
        return "mariadb" if self.is_mariadb else "mysql"

    def is_mysql_from(self, major: int, minor: int = 0, patch: int = 0) -> bool:
        """Return whether this is MySQL of that version or later."""
        return not self.is_mariadb and self.version >= major * 10_000 + minor * 100 + patch


def read_dialect(cursor: Cursor) -> Dialect:
    cursor.execute("select @@version")
    (version,) = cursor.fetchone() or ("",)
    return Dialect("mariadb" in str(version).lower(), version_number(str(version)) or 0)
