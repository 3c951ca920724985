"""A log of rows and statements that change tables, mixed by chance.

Belongs here: which comes when, in which session. Does not: the statements
(`plain_statements`, `random_statements`) and the rows (`made_rows`), what is read of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.model import ServerSchema, TableSchema
from tests.fix_mysql import MySqlStand
from tests.schema.information_schema import read_server
from tests.schema.made_rows import SESSION, change
from tests.schema.plain_statements import plain_steps
from tests.schema.random_statements import random_steps


@contextmanager
def minimal_log(stand: MySqlStand) -> Iterator[str]:
    """The server logs as it does by default; a name for databases, of which `name`_p has a
    table `first`, and which go afterwards."""
    name = stand.fresh_name()
    stand.execute(f"create database {name}_p", f"create table {name}_p.first (id int primary key)")
    try:
        with stand.metadata("MINIMAL"):
            yield name
    finally:
        for end in ("p", "x", "x_2"):
            stand.execute(f"drop database if exists {name}_{end}")


def mixed_log(stand: MySqlStand, name: str, seed: int, count: int) -> Iterator[str]:
    """Make `count` statements and rows in between; each statement once it is in the log.

    Tables of `name`_p are changed as the log alone can follow, those of `name`_x and
    `name`_x_2 in every way. What the server refuses is not counted.
    """
    chance = Random(seed)
    plain, wild = f"{name}_p", f"{name}_x"
    stand.execute(f"create database {wild}")
    kinds = [
        plain_steps(chance, plain, 10 * count),
        random_steps(seed, wild, 10 * count, mariadb=False),
    ]
    with (
        stand.connect(
            wild,
        ) as connection,
        stand.connect() as writers,
        connection.cursor() as session,
        writers.cursor() as writer,
    ):
        for statement in SESSION:
            writer.execute(statement)
        nexts = [next(steps) for steps in kinds]
        made = 0
        while made < count:
            which = chance.randrange(2)
            # No lake holds a column with a blank in its name.
            statement = nexts[which].replace("`e f`", "`e_f`")
            if done := _done(session, statement):
                made += 1
            server = read_server(writer, mariadb=False, like=f"{name}%")
            nexts[which] = kinds[which].send(server)
            if done:
                _write(writer, chance, server)
                yield statement


def _done(session: Cursor, statement: str) -> bool:
    try:
        session.execute(statement)
        session.fetchall()
    except pymysql.MySQLError:
        return False
    return True


def _write(writer: Cursor, chance: Random, server: ServerSchema) -> None:
    tables = sorted(server.tables.values(), key=lambda one: one.name)
    for _ in range(chance.randint(2, 5)):
        _transaction(writer, chance, tables)


def _transaction(writer: Cursor, chance: Random, tables: list[TableSchema]) -> None:
    if not tables:
        return
    writer.execute("begin")
    for _ in range(chance.randint(1, 3)):
        with suppress(pymysql.MySQLError):
            writer.execute(change(chance, chance.choice(tables)))
    writer.execute(chance.choice(("commit", "commit", "commit", "rollback")))
