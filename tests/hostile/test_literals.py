"""What MySQL and MariaDB make of a literal, against what is derived of it and what is asked.

Pairs of a type and a literal, in sessions of many kinds: each that the server takes becomes the
default of columns that rows take, by CREATE TABLE and by ADD COLUMN. The log's statements are
followed; a value that is derived or asked is the one that rows have, or there is none.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import pyarrow as pa
import pymysql
import pytest

from lockstep.pipeline.binlog.values.charsets import text_decoder
from lockstep.pipeline.schema.collations import canonical_charset
from lockstep.pipeline.schema.compare import disagreements
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.model import (
    ExpressionDefault,
    ServerSchema,
    TableSchema,
    WrittenDefault,
)
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.hostile.random_literals import MARIADB, MYSQL, SESSIONS, Session, pair
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import verify
from tests.positions.follower import Follower
from tests.schema.logged_items import Logged, facts_of, logged

_COLUMNS: Final = 20
"""Columns of one table: rows and statements stay well below the servers' limits."""


@dataclass
class Trial:
    """`wrong`: a sentence for each value that is another than the server's."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def judge(self, told: str, table: TableSchema, stored: pa.Table, texts: Sequence[str]) -> None:
        """`table`'s defaults against the row that took them."""
        kinds = arrow_schema(row_structure(table)).types
        for column, kind, text in zip(table.columns[1:], kinds[1:], texts, strict=True):
            default = column.default
            self.counts[f"{told} {type(default).__name__}"] += 1
            if isinstance(default, WrittenDefault | ExpressionDefault):
                # MariaDB makes an expression of a moment in a text.
                continue
            fill, there = fill_of(column, kind, None), stored.column(column.name)[0]
            if fill is None or repr(fill.as_py()) != repr(there.as_py()):
                self.wrong.append(f"{told}: {text}: {default}, {fill!r}, stored {there!r}")


def trial(stand: MySqlStand, database: str, seed: int, tables: int) -> Trial:
    """So many tables, of literals drawn by that seed."""
    mariadb = facts_of(stand).is_mariadb
    chance, done = Random(seed), Trial()
    start = head(stand)
    sessions = itertools.cycle([*SESSIONS, *(MARIADB if mariadb else MYSQL)])
    texts: dict[str, list[str]] = {}
    for number, session in zip(range(tables), sessions, strict=False):
        texts |= _made(stand, database, f"t{number}", session, chance, done)
    _judge(stand, database, start, texts, done)
    return done


def _made(
    stand: MySqlStand, database: str, name: str, session: Session, chance: Random, done: Trial
) -> dict[str, list[str]]:
    """Two tables with one row each that took all defaults; what was written in them."""
    with stand.connect(database) as connection:
        texts = _defaults(connection, session, chance, done, _COLUMNS)
        added = ", ".join(f"add column {text}" for text in texts)
        for statement in (
            f"create table {name}c (id int primary key, {', '.join(texts)})",
            f"insert into {name}c (id) values (1)",
            f"create table {name}a (id int primary key)",
            f"insert into {name}a values (1)",
            f"alter table {name}a {added}",
        ):
            connection.query(_bytes(statement, session))
    told = [f"{session}: {text}" for text in texts]
    return {f"{name}c": told, f"{name}a": told}


def _defaults(
    connection: pymysql.Connection[Any], session: Session, chance: Random, done: Trial, count: int
) -> list[str]:
    """Definitions of columns that the server takes in such a session, which begins."""
    for statement in session.statements:
        connection.query(statement)
    taken = itertools.islice(_taken(connection, session, chance, done), count)
    return [f"c{n} {kind} default {literal}" for n, (kind, literal) in enumerate(taken)]


def _bytes(statement: str, session: Session) -> Any:
    """As the session's client would send it."""
    return statement.encode(session.codec, "surrogateescape")


def _taken(
    connection: pymysql.Connection[Any], session: Session, chance: Random, done: Trial
) -> Iterator[tuple[str, str]]:
    """Pairs that the server takes, and that leave no bytes without a character: those quarantine
    their table, whatever they come from."""
    while True:
        kind, literal = pair(chance, session)
        done.counts["tried"] += 1
        try:
            # MySQL 8.0.15 leaves one that it made in spite of an error.
            connection.query("drop temporary table if exists tried")
            create = f"create temporary table tried (c {kind} default {literal})"
            connection.query(_bytes(create, session))
        except (UnicodeEncodeError, pymysql.MySQLError):
            continue
        if _is_text(connection):
            yield kind, literal


def _is_text(connection: pymysql.Connection[Any]) -> bool:
    """Whether the default's bytes are characters of its column's set."""
    with connection.cursor() as cursor:
        try:
            cursor.execute("insert into tried values ()")
            cursor.execute("select hex(charset(c)), cast(c as binary) from tried")
        except pymysql.MySQLError:
            return False
        ((name, raw),) = cursor.fetchall()
    charset = bytes.fromhex(str(name, "ascii") if isinstance(name, bytes) else name).decode()
    if raw is None or charset == "binary":
        return True
    try:
        text_decoder(canonical_charset(charset) or charset)(raw)
    except UnicodeDecodeError:
        return False
    return True


def _judge(
    stand: MySqlStand,
    database: str,
    start: Coordinates,
    texts: dict[str, list[str]],
    done: Trial,
) -> None:
    names = [TableName(database, name) for name in texts]
    source = server(stand)
    asked = {table.name.name: table for table in source.baseline(names).tables}
    derived = _followed(stand, database, start)
    for name, told in texts.items():
        with source.snapshot(asked[name]) as rows:
            stored = pa.Table.from_batches(list(rows.batches))
        done.judge("asked", asked[name], stored, told)
        if name not in derived:
            done.wrong.append(f"not followed: {told}")
            continue
        done.judge("derived", derived[name], stored, told)
        done.wrong += disagreements(derived[name], asked[name])


def _followed(stand: MySqlStand, database: str, start: Coordinates) -> dict[str, TableSchema]:
    """The tables by the statements of the log."""
    facts = facts_of(stand)
    schema = ServerSchema()
    for one in server(stand).baseline([TableName(database, "t0a")]).databases:
        schema = schema.with_database(one)
    for item in logged(stand, start, facts):
        if not isinstance(item, Logged):
            continue
        read = read_change(item.text, item.context)
        if isinstance(read, tuple):
            schema = evolve(schema, read, item.context).schema
    return {name.name: table for name, table in schema.tables.items() if name.database == database}


def _check(stand: MySqlStand, database: str, seed: int, tables: int) -> None:
    done = trial(stand, database, seed, tables)
    print(dict(done.counts))
    assert not done.wrong, "\n".join(done.wrong)
    counts, columns = done.counts, 2 * _COLUMNS * tables
    assert counts["asked WrittenDefault"] == 0
    assert counts["asked ValueDefault"] > 0.9 * columns
    assert counts["derived ValueDefault"] > 0.25 * columns


SEEDS: Final = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 60))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("flavour", "tables"),
    [
        ("mysql", 12),
        ("mariadb", 13),
        pytest.param("mariadb11", 13, marks=pytest.mark.soak),
    ],
)
def test_values_of_defaults(
    request: pytest.FixtureRequest, flavour: str, tables: int, seed: int
) -> None:
    """Hundreds of pairs, each session's in a table, those that none may write left out."""
    stand: MySqlStand = request.getfixturevalue(flavour)
    with stand.own_database() as database:
        _check(stand, database, seed, tables)


# -- mirrors ------------------------------------------------------------------------------

ROUNDS: Final = 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_mirrors_of_defaults(request: pytest.FixtureRequest, flavour: str, seed: int) -> None:
    """Rows that name no value, logged with MINIMAL images, and columns that are added to rows:
    mirrors are equal to their tables after every run, and none is quarantined."""
    stand: MySqlStand = request.getfixturevalue(flavour)
    with stand.own_database() as database:
        _require_mirrored(stand, database, seed)


def _require_mirrored(stand: MySqlStand, database: str, seed: int) -> None:
    mariadb = facts_of(stand).is_mariadb
    chance, done = Random(seed), Trial()
    sessions = chance.sample([*SESSIONS, *(MARIADB if mariadb else MYSQL)], ROUNDS)
    stand.execute("create table t (id int primary key)", database=database)
    follower = Follower(server(stand), [f"{database}.*"])
    follower.run()
    for number, session in enumerate(sessions):
        _write(stand, database, f"t{number}", session, chance, done)
        follower.run()
        stand.execute(
            "set binlog_row_image = minimal, sql_mode = ''",
            f"insert into t{number} (id) values (10), (11)",
            f"delete from t{number} where id = 1",
            database=database,
        )
        follower.run()
        found = verify(follower.ports())
        assert [str(one) for one in found.quarantined] == []
        assert [str(table) for table in found.tables if not table.equal] == []


def _write(
    stand: MySqlStand, database: str, name: str, session: Session, chance: Random, done: Trial
) -> None:
    """A table, a row, columns that are added, a row, another default, a row."""
    with stand.connect(database) as connection:
        connection.query("set binlog_row_image = minimal")
        texts = _defaults(connection, session, chance, done, 16)
        another = texts[1].partition(" default ")[2]
        added = ", ".join(f"add column {text}" for text in texts[8:])
        for statement in (
            f"create table {name} (id int primary key, {', '.join(texts[:8])})",
            f"insert into {name} (id) values (1), (2)",
            f"alter table {name} {added}",
            f"insert into {name} (id) values (3)",
            f"alter table {name} alter c0 drop default, alter c1 set default {another}",
            f"insert into {name} (id, c0) select 4, c0 from {name} where id = 3",
        ):
            connection.query(_bytes(statement, session))
