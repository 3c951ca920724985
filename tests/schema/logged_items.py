"""A real server's log as statements, each with its own context, and TABLE_MAPs.

Belongs here: QUERY events taken apart. What they come to is `following`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.binlog.search.walk import walk
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import EventType
from pipeline.position import Coordinates
from pipeline.runs.capturing.logged_statements import statement_text
from pipeline.schema.context import ServerDialect, StatementContext, read_context
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server

_BEGINNINGS: Final = (b"\0BEGIN", b"\0COMMIT")


@dataclass(frozen=True, slots=True)
class Logged:
    """A statement of the log."""

    end: Coordinates
    text: str
    context: StatementContext


@dataclass(frozen=True, slots=True)
class Mapped:
    """A TABLE_MAP of the log."""

    end: Coordinates
    raw: bytes


def facts_of(stand: MySqlStand) -> ServerDialect:
    """What the log does not tell, asked of the server."""
    ((version, names, engine, explicit),) = stand.rows(
        "select version(), @@lower_case_table_names, @@default_storage_engine,"
        " @@global.explicit_defaults_for_timestamp"
    )
    numbers = [int(part) for part in version.split("-")[0].split(".")]
    number = numbers[0] * 10000 + numbers[1] * 100 + numbers[2]
    flavour = "mariadb" if "MariaDB" in version else "mysql"
    return ServerDialect(number, flavour, int(names), engine, bool(explicit))


def logged(
    stand: MySqlStand, start: Coordinates, facts: ServerDialect
) -> Iterator[Logged | Mapped]:
    """The statements and TABLE_MAPs from `start` on, BEGIN and COMMIT left out."""
    dump = server(stand).dump(start)
    try:
        for seen in walk(dump, start):
            if seen.code == EventType.QUERY:
                body = seen.event.body
                if not body.endswith(_BEGINNINGS):
                    yield _statement(body, facts, seen.after)
            elif seen.code == EventType.TABLE_MAP:
                yield Mapped(seen.after, seen.packet[: -4 if seen.checksum else None])
    finally:
        dump.close()


def _statement(body: bytes, facts: ServerDialect, end: Coordinates) -> Logged:
    reader = Reader(body, "a QUERY event")
    reader.take(8)
    length = reader.integer(1)
    reader.take(2)
    status = reader.take(reader.integer(2))
    database = reader.take(length).decode()
    reader.take(1)
    context = read_context(status, facts, database)
    return Logged(end, statement_text(reader.rest(), context.client_charset), context)
