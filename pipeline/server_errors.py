"""What a server's error packet or warning means, by its number, and how much may be told of it.

Not here: errors of a dump, which one number stands for (`pipeline.binlog.stream.dump_refusals`),
which driver reported them (`resources.mysql.connection`).

A server that answers is there, whatever it answers: only the numbers below say that it
has no time or room, or is about to go. Numbers from 2000 to 2999 are the client's own
(MySQL manual, "Client Error Message Reference"): it lost the connection or had none.

While rows are read, a value may be changed on its way to the reader by a limit of the session or by
a conversion, with a warning and no error. A warning that is in neither table stands for one of
those. The harmless ones come from an expression of the table itself, a generated column's mostly:
what it gives is what the source shows to everybody.

Sources: MySQL manual, "Server Error Message Reference"; MariaDB documentation, "Error Codes".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.errors import TableError
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


KEPT: Final = 65_535
"""So many warnings a session keeps at most (MySQL manual, "max_error_count"), and so many the
protocol counts: of more nobody knows what they are."""

HARMLESS: Final = {
    1003: "a note, of a statement",
    1264: "a generated column's value lies outside its type: the source shows the nearest",
    1265: "a generated column's value was cut to its type: the source shows it so",
    1287: "something deprecated is used",
    1292: "a generated column's expression converts a text that is no such value",
    1365: "a generated column's expression divides by zero: the source shows NULL",
    1366: "a generated column's expression converts a text that is no such value",
    1411: "a generated column's expression reads a text that is no such date",
    1441: "a generated column's date lies outside what there is: the source shows NULL",
    1681: "something deprecated is used",
    1690: "a generated column's value lies outside its type: the source shows the nearest",
    1916: "a generated column's expression converts a text that is no such value (MariaDB)",
    1918: "a generated column's expression converts a text that is no such value (MariaDB)",
    3719: "utf8 is an old name of utf8mb3",
    3778: "the collation is deprecated",
}

LIMITS: Final = {
    1260: "raise group_concat_max_len",
    1301: "raise max_allowed_packet",
    4164: "raise max_allowed_packet",
}
"""Values that a server's limit made empty, short or NULL, and what helps."""


@dataclass(frozen=True, slots=True)
class SourceWarning:
    """A warning as a server shows it; `level`: Note, Warning or Error."""

    level: str
    number: int
    text: str


def harmless(warning: SourceWarning) -> bool:
    return warning.level.lower() == "note" or warning.number in HARMLESS


def require_harmless(
    table: TableName,
    count: int,
    shown: Sequence[SourceWarning],
    names: Collection[str] = (),
) -> None:
    """TableError where some of a reading's `count` warnings may stand for values that are not
    the table's. `shown`: those that the server kept; `names`: what a message may quote."""
    for warning in shown:
        if not harmless(warning):
            raise TableError(
                f"the source warned while it was read: {told(warning.number, warning.text, names)}",
                hint=_cure(table, warning.number),
            )
    if count > len(shown) or count >= KEPT:
        raise TableError(
            f"the source warned {count} times while it was read, and showed {len(shown)} of them",
            hint=f"raise max_error_count to {KEPT} at the server, then "
            f"`lockstep reload {table} --reason …` reads it again and sees more of them",
        )


def _cure(table: TableName, number: int) -> str:
    again = f"then `lockstep reload {table} --reason …` reads it again"
    if number in LIMITS:
        return f"{LIMITS[number]} at the server, {again}"
    return f"fix what it warns of at the source, {again}"
