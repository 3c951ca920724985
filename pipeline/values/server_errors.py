"""The meaning of MySQL's errors and warnings by number, and their texts without values
of rows.

Not here: the errors of a dump, which all have one number
(`pipeline.binlog.stream.intake`), the driver's exceptions
(`resources.mysql.connection`).

Most errors of a server mean that it is available. A number of the class `NOT_NOW` means
that it has no capacity or is shutting down. Numbers from 2000 to 2999 are the client's
(MySQL manual, "Client Error Message Reference") and mean that it has no connection.

While rows are read, a limit of the session or a conversion may change a value, and the
server only warns of it. A warning that is in neither table below may mean that. The
harmless warnings come from expressions of the table itself, mostly of generated
columns: every reader of the source gets the same value.

Sources: MySQL manual, "Server Error Message Reference"; MariaDB documentation, "Error
Codes".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName


class Meaning(StrEnum):
    """The class of an error number, which decides who has to act."""

    LOST = "lost"
    """An error of the client: it has no connection."""
    NOT_NOW = "not now"
    """The server has no capacity for anybody, or is shutting down."""
    BUSY = "busy"
    """Other sessions blocked or ended this statement."""
    ACCESS = "access"
    """The account cannot log in."""
    PRIVILEGE = "privilege"
    """The account lacks a privilege."""
    REFUSED = "refused"
    """Any other error: the statement is refused."""


_MEANINGS: Final = {
    Meaning.NOT_NOW: {
        1021: "disk full",
        1037: "out of memory",
        1040: "too many connections",
        1041: "out of memory",
        1047: "the node of a Galera cluster is not ready",
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
_MEANING_BY_NUMBER: Final = {
    number: meaning for meaning, numbers in _MEANINGS.items() for number in numbers
}
_WITHOUT_VALUES: Final = frozenset({1153, 1203, 1226})
"""Errors whose texts quote only an account or a limit, never a value of a row."""

_CLIENT_NUMBERS: Final = range(2000, 3000)
_QUOTED: Final = re.compile(r"'([^']*)'")


def meaning_of(number: int) -> Meaning:
    """Return the class of an error number. 0 stands for an error without a number."""
    if number <= 0 or number in _CLIENT_NUMBERS:
        return Meaning.LOST
    return _MEANING_BY_NUMBER.get(number, Meaning.REFUSED)


def explain(number: int, text: str, names: Collection[str] = ()) -> str:
    """Return an error's number and text without values of rows. Of the quoted parts,
    only those in `names` are kept.

    The server does not escape quotes in a value, so everything from the first quoted
    part that is not a name up to the last quote is left out.
    """
    line = " ".join(text.split())
    value = next((part for part in _QUOTED.finditer(line) if part[1] not in names), None)
    if value is not None and number not in _WITHOUT_VALUES:
        end = line.rindex("'") + 1
        line = f"{line[: value.start()]}'…'{line[end:]}"
    return f"error {number}: {line}" if number else line


def quotable_names(table: TableName, columns: Collection[str]) -> frozenset[str]:
    """Return the names by which a server's messages quote a table and its columns."""
    database, name = table.database, table.name
    names = {database, name, f"{database}.{name}", *columns}
    return frozenset(names | {f"{name}.{c}" for c in columns} | {f"{table}.{c}" for c in columns})


MOST_WARNINGS: Final = 65_535
"""Largest number of warnings that a session keeps (MySQL manual, "max_error_count") and
that the protocol can count. Further warnings cannot be read."""

HARMLESS_WARNINGS: Final = {
    1003: "a note about a statement",
    1264: "a generated column's value lies outside its type: the source shows the nearest",
    1265: "a generated column's value was cut to its type: the source shows it so",
    1287: "something deprecated is used",
    1292: "a generated column's expression converts a text that is no such value",
    1365: "a generated column's expression divides by zero: the source shows NULL",
    1366: "a generated column's expression converts a text that is no such value",
    1411: "a generated column's expression reads a text that is no such date",
    1441: "a generated column's date is out of range: the source shows NULL",
    1681: "something deprecated is used",
    1690: "a generated column's value lies outside its type: the source shows the nearest",
    1916: "a generated column's expression converts a text that is no such value (MariaDB)",
    1918: "a generated column's expression converts a text that is no such value (MariaDB)",
    3719: "utf8 is an old name of utf8mb3",
    3778: "the collation is deprecated",
}
"""Warnings that do not change the values that are read: every reader of the source gets
the same values."""

LIMIT_WARNINGS: Final = {
    1260: "raise group_concat_max_len",
    1301: "raise max_allowed_packet",
    4164: "raise max_allowed_packet",
}
"""Warnings that a limit of the server cut a value or made it NULL, each with the cure."""


@dataclass(frozen=True, slots=True)
class SourceWarning:
    """A warning as a server shows it; `level`: Note, Warning or Error."""

    level: str
    number: int
    text: str


def require_harmless(
    table: TableName,
    count: int,
    warnings: Sequence[SourceWarning],
    names: Collection[str] = (),
) -> None:
    """Raise TableError if one of a read's `count` warnings may mean that a value was
    changed. `warnings`: the warnings that the server kept. `names`: the names that a
    message may quote."""
    for warning in warnings:
        if warning.level.lower() != "note" and warning.number not in HARMLESS_WARNINGS:
            raise TableError(
                "the source warned while it was read: "
                f"{explain(warning.number, warning.text, names)}",
                hint=_cure(table, warning.number),
            )
    if count > len(warnings) or count >= MOST_WARNINGS:
        raise TableError(
            f"the source warned {count} times while it was read, and showed {len(warnings)} of "
            "them",
            hint=f"raise max_error_count to {MOST_WARNINGS} at the server, then "
            f"`lockstep reload {table.word} --reason …` reads it again and sees more of them",
        )


def _cure(table: TableName, number: int) -> str:
    again = f"then `lockstep reload {table.word} --reason …` reads it again"
    if number in LIMIT_WARNINGS:
        return f"{LIMIT_WARNINGS[number]} at the server, {again}"
    return f"fix what it warns of at the source, {again}"
