"""The session variables that every session of ours has, whatever the server gives new sessions.

Belongs here: the table of variables and the statement that sets them. Does not: connections
(`connection`), what one kind of session needs besides (`dump`, `reader`, `taking`).

A session begins with copies of the server's global variables, and `init_connect` may have changed
those. Each variable that can cut, change or refuse an answer of ours is in the table. A few stay as
the server has them, because the value of a virtual column may depend on them, and we read it as
other sessions do: `default_week_format`, `div_precision_increment`, `lc_time_names`,
`block_encryption_mode`, MariaDB's `old_mode`, and some words of `sql_mode`. None of our statements
depends on these.

Variables: MySQL manual, "Server System Variables"; MariaDB documentation, "Server System
Variables".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pymysql
from pymysql.constants import SERVER_STATUS
from pymysql.cursors import Cursor

from pipeline.errors import ServerSettings
from pipeline.server_errors import Meaning, meaning_of, told

LOCK_SECONDS: Final = 20
"""Writers queue up after a reader that waits for a lock, so it must give up before its connection
does."""

LEAST_PACKET: Final = 1 << 12
"""Smallest max_allowed_packet, in bytes, that our statements fit into. No session may set it for
itself. Values that it cuts are noticed where they are read."""

_MOST: Final = "18446744073709551615"

WANTED: Final = {
    # Character sets of what is sent and received, and the zone that moments are printed in.
    "character_set_client": "utf8mb4",
    "character_set_results": "utf8mb4",
    "collation_connection": "utf8mb4_general_ci",
    "time_zone": "'+00:00'",
    # What a statement means.
    # An impossible value if packets became too small: without it, the first sign would be that a
    # long statement loses the connection.
    "sql_auto_is_null": f"if(@@max_allowed_packet < {LEAST_PACKET}, 2, 0)",
    "sql_safe_updates": "0",
    "system_versioning_asof": "default",
    # Limits that leave rows out, or refuse a statement.
    "sql_select_limit": _MOST,
    "max_join_size": _MOST,
    "sql_big_selects": "1",  # comes after max_join_size, which switches it off
    "group_concat_max_len": "1048576",
    "max_sort_length": "1024",
    "sort_buffer_size": "2097152",
    "tmp_disk_table_size": _MOST,
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
    # Rows that are not those of the table now, or come another way.
    "use_secondary_engine": "'OFF'",
    "query_cache_type": "0",
    "sql_buffer_result": "0",
    "wsrep_dirty_reads": "0",
    "in_predicate_conversion_threshold": "0",
}
"""Variable → its value in SQL, in the order in which they are set. No server has all of them."""

_MODES: Final = (
    "ALLOW_INVALID_DATES",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "TIME_ROUND_FRACTIONAL",
    "TIME_TRUNCATE_FRACTIONAL",
)
"""Words of `sql_mode` that stay as they are: they change the values of expressions. All others
change how statements are parsed or what may be written, or pad CHAR."""

_FIRST: Final = (
    f"set session sql_select_limit = {_MOST}, sql_big_selects = 1"
    " /*!50708 , max_execution_time = 0 */ /*M!100301 , max_statement_time = 0,"
    f" max_session_mem_used = 9223372036854775807, tmp_disk_table_size = {_MOST} */"
)
"""Resets what could cut the list of variables short; the comments are for MySQL and for MariaDB."""

_SHOW: Final = "show session variables"
"""All of them: a list of names would not fit into the smallest max_allowed_packet."""


class SessionStart:
    """The statement that begins the sessions of one account at one server. The first session asks
    for the server's variables and makes it; each later session begins with one round trip."""

    def __init__(self) -> None:
        self._statement: str | None = None

    def begin(self, connection: pymysql.Connection[Cursor], also: str) -> None:
        """Set all variables, and `also`: assignments for this session alone. `ServerSettings` if a
        variable has another value and the account may not set it."""
        with connection.cursor() as cursor:
            if self._statement is None or not _accepted(cursor, self._statement + also):
                self._statement = _learned(cursor, also)
        driver: Any = connection  # no public attribute for it
        if driver.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
            connection.rollback()  # init_connect began it


def _accepted(cursor: Cursor, statement: str) -> bool:
    """Execute the statement; return False if the server refuses it, as a server that has replaced
    the one at this address may."""
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        if meaning_of(_number(error)) not in _REFUSED:
            raise
        return False
    return True


def _learned(cursor: Cursor, also: str) -> str:
    """Return the statement for this server, once it has set the variables of this session."""
    cursor.execute(_FIRST)
    cursor.execute(_SHOW)
    found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    _require_packets(found.get("max_allowed_packet"))
    kept = [mode for mode in _MODES if mode in found.get("sql_mode", "").upper().split(",")]
    wanted = {
        "sql_mode": f"'{','.join(kept)}'",
        **{name: value for name, value in WANTED.items() if name in found},
    }
    if not _accepted(cursor, _setting(wanted) + also):
        wanted = {
            name: value for name, value in wanted.items() if _is_set(cursor, name, value, found)
        }
        cursor.execute(_setting(wanted) + also)
    return _setting(wanted)


def _setting(wanted: Mapping[str, str]) -> str:
    return "set session " + ", ".join(f"{name} = {value}" for name, value in wanted.items())


def _is_set(cursor: Cursor, name: str, value: str, found: Mapping[str, str]) -> bool:
    """Set a variable; return False if the account may not, and the value is the wanted one."""
    try:
        cursor.execute(_setting({name: value}))
    except pymysql.MySQLError as error:
        if meaning_of(_number(error)) not in _REFUSED:
            raise
        if _plain(found[name]) == _plain(value):
            return False
        raise ServerSettings(
            f"{name} is {found[name]!r}, and the account may not set it for its sessions: "
            f"{told(_number(error), str(error.args[-1]), (name,))}",
            hint=f"set global {name} = {value}; (and put it into the server's configuration)",
        ) from error
    return True


_REFUSED: Final = frozenset({Meaning.REFUSED, Meaning.PRIVILEGE})
_WORDS: Final = {"ON": "1", "OFF": "0"}


def _number(error: pymysql.MySQLError) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _plain(value: str) -> str:
    """Return a value in the form in which the server's and ours are compared."""
    word = value.strip("'").upper()
    return _WORDS.get(word, word)


def _require_packets(shown: str | None) -> None:
    if shown is None or int(shown) < LEAST_PACKET:
        raise ServerSettings(
            f"max_allowed_packet is {shown}: statements of ours are longer than that",
            hint=f"set global max_allowed_packet = {1 << 26}; (and put it into the server's "
            "configuration)",
        )
