"""A real server's log as statements, each with its own context, and TABLE_MAPs.

Belongs here: QUERY events taken apart. What they come to is `following`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.binlog.search.log_scan import walk
from lockstep.pipeline.binlog.stream.control import Query, read_query
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.run.dump.logged_statements import context_of, statement_text
from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.values.position import Coordinates
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server

_FRAMES: Final = ("BEGIN", "COMMIT")


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
            if seen.type is EventType.QUERY:
                query = read_query(seen)
                if query.text not in _FRAMES:
                    yield _statement(query, facts, seen.after)
            elif seen.type is EventType.TABLE_MAP:
                yield Mapped(seen.after, seen.raw)
    finally:
        dump.close()


def _statement(query: Query, facts: ServerDialect, end: Coordinates) -> Logged:
    context = context_of(query, facts)
    return Logged(end, statement_text(query.raw, context.client_charset), context)
