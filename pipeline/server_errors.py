"""What a server's error packet means, by its number, and how much of its text may be told.

Belongs here: the table of numbers. Does not: errors of a dump, which one number stands for
(`pipeline.binlog.stream.dump_refusals`), which driver reported them (`resources.mysql.connection`).

A server that answers is there, whatever it answers: only the numbers below say that it has
no time or room, or is about to go. Numbers from 2000 to 2999 are the client's own (MySQL
manual, "Client Error Message Reference"): it lost the connection or had none.

Sources: MySQL manual, "Server Error Message Reference"; MariaDB documentation, "Error Codes".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Final

from pipeline.table import TableName


class Meaning(StrEnum):
    """What an error number says of whom."""

    LOST = "lost"
    """The client's own: there is no connection."""
    NOT_NOW = "not now"
    """The server has no time or room for anybody, or is about to go."""
    BUSY = "busy"
    """Others keep this one statement from its answer, or ended it."""
    ACCESS = "access"
    """The account is not let in."""
    PRIVILEGE = "privilege"
    """The account may not do that."""
    REFUSED = "refused"
    """An answer: it cannot be done."""


_MEANINGS: Final = {
    Meaning.NOT_NOW: {
        1021: "disk full",
        1037: "out of memory",
        1040: "too many connections",
        1041: "out of memory",
        1053: "shutdown in progress",
        1077: "normal shutdown",
        1079: "shutdown complete",
        1080: "forced close of a thread",
        1129: "host blocked",
        1135: "no thread for a connection",
        1152: "aborted connection",
        1158: "network read",
        1159: "network read timed out",
        1160: "network write",
        1161: "network write timed out",
        1184: "aborted connection",
        1203: "too many connections of this user",
        1226: "the user's limit of queries or connections",
        1461: "no more prepared statements (max_prepared_stmt_count)",
        1927: "connection killed (MariaDB)",
        3032: "server in offline mode",
        3168: "server is not available",
        3169: "session was killed",
        4031: "disconnected for being inactive",
    },
    Meaning.BUSY: {
        1205: "lock wait timed out",
        1213: "deadlock",
        1317: "query interrupted",
        1969: "max_statement_time exceeded (MariaDB)",
        3024: "max_execution_time exceeded",
        3058: "user-level lock deadlock",
        3572: "lock not granted at once",
    },
    Meaning.ACCESS: {
        1044: "database",
        1045: "password",
        1130: "host",
        1698: "no password",
        1820: "password expired",
        1862: "password expired",
        3118: "account locked",
        3955: "account blocked for a time",
        4151: "account locked (MariaDB)",
    },
    Meaning.PRIVILEGE: {
        1142: "table",
        1143: "column",
        1227: "global",
        1370: "routine",
        1410: "grant",
    },
}
_BY_NUMBER: Final = {
    number: meaning for meaning, numbers in _MEANINGS.items() for number in numbers
}
_NAMES_ALONE: Final = frozenset({1153, 1203, 1226})
"""Numbers whose texts quote an account and a limit, and no value of a row."""

_CLIENT: Final = range(2000, 3000)
_QUOTED: Final = re.compile(r"'([^']*)'")


def meaning_of(number: int) -> Meaning:
    """By an error's number; 0 is one that has none."""
    if number <= 0 or number in _CLIENT:
        return Meaning.LOST
    return _BY_NUMBER.get(number, Meaning.REFUSED)


def told(number: int, text: str, names: Collection[str] = ()) -> str:
    """The number and the text, without a row's value: of what is quoted only `names` stay.

    A value is printed as it is, quotes in it included, so everything from the first that is
    not a name up to the last quote is left out.
    """
    line = " ".join(text.split())
    for match in _QUOTED.finditer(line):
        if match[1] not in names and number not in _NAMES_ALONE:
            end = line.rindex("'") + 1
            line = f"{line[: match.start()]}'…'{line[end:]}"
            break
    return f"error {number}: {line}" if number else line


def names_of(table: TableName, columns: Collection[str]) -> frozenset[str]:
    """How a server quotes a table and its columns."""
    database, name = table.database, table.name
    whole = {database, name, f"{database}.{name}", *columns}
    return frozenset(whole | {f"{name}.{c}" for c in columns} | {f"{table}.{c}" for c in columns})
