"""ALTER TABLE of many clauses: what a server takes is followed, column by column."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, Final

import pymysql
import pytest
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.compare import differences, with_unlogged_properties
from lockstep.pipeline.schema.context import StatementContext, read_context
from lockstep.pipeline.schema.effects import Changed, NotFollowed, Renamed
from lockstep.pipeline.schema.evolve import EvolvedSchema, evolve
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ServerSchema,
    TableSchema,
    ValueDefault,
    WrittenDefault,
)
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from tests.fix_mysql import MySqlStand
from tests.schema.information_schema import comparable, read_server
from tests.schema.logged_items import facts_of
from tests.schema.random_alters import random_alter, random_table

_ALTERS: Final = 8
"""So many statements change each table."""


def _one_table(
    cursor: Cursor,
    chance: Random,
    context: StatementContext,
    counted: Counter[str],
    wrong: list[str],
) -> None:
    server = _server(cursor, context)
    for known in server.tables.values():
        cursor.execute(f"drop table `{known.name.name}`")
    if not _taken(cursor, random_table(chance, "t")):
        return
    server = _server(cursor, context)
    for _ in range(_ALTERS):
        [table] = server.tables.values()
        row = _only_row(cursor, table)
        text = random_alter(chance, table, mariadb=context.facts.is_mariadb)
        if not _taken(cursor, text):
            counted["refused"] += 1
            continue
        counted["taken"] += 1
        after = _server(cursor, context)
        told = _otherwise(cursor, text, server, after, row, context)
        wrong += [f"{table}\n{text}: {one}" for one in told]
        server = after


def _server(cursor: Cursor, context: StatementContext) -> ServerSchema:
    return read_server(cursor, mariadb=context.facts.is_mariadb, like=context.database)


def _taken(cursor: Cursor, statement: str) -> bool:
    try:
        cursor.execute(statement)
    except pymysql.MySQLError:
        return False
    return True


def _only_row(cursor: Cursor, table: TableSchema) -> dict[str, str]:
    """Each column's value in the only row there is: a number of its own."""
    name = table.name.name
    cursor.execute(f"delete from `{name}`")
    names = [column.name for column in table.columns]
    listed = ", ".join(f"`{one}`" for one in names)
    values = range(11, 11 + len(names))
    cursor.execute(f"insert into `{name}` ({listed}) values ({', '.join(map(str, values))})")
    return dict(zip(names, map(str, values), strict=True))


def _otherwise(
    cursor: Cursor,
    text: str,
    before: ServerSchema,
    after: ServerSchema,
    row: dict[str, str],
    context: StatementContext,
) -> list[str]:
    read = read_change(text, context)
    if isinstance(read, Irrelevant | NotUnderstood):
        return [f"not followed: {read}"]
    done = evolve(before, read, context)
    quarantined = [effect.reason for effect in done.effects if isinstance(effect, NotFollowed)]
    if quarantined:
        return quarantined
    [theirs] = after.tables.values()
    ours = done.schema.table(theirs.name)
    if ours is None:
        return [f"{theirs.name} is not there"]
    found = list(differences(comparable(ours), with_unlogged_properties(comparable(theirs), ours)))
    names = ", ".join(f"cast(`{column.name}` as char)" for column in theirs.columns)
    cursor.execute(f"select {names} from `{theirs.name.name}`")
    values = cursor.fetchone()
    expected = _row(done, ours, row)
    if values is None or expected != list(values):
        found.append(f"the row is {values}, not {expected}")
    return found


def _row(done: EvolvedSchema, table: TableSchema, row: dict[str, str]) -> list[Any]:
    changed = [effect for effect in done.effects if isinstance(effect, Changed | Renamed)]
    origins = changed[-1].columns_from if changed else tuple(row)
    found = []
    for column, origin in zip(table.columns, origins, strict=True):
        found.append(_default(column) if origin is None else row[origin])
    return found


def _default(column: ColumnSchema) -> str | None:
    """As the server casts it to text; the literals of these statements are whole numbers, whose
    value a person knows of a written one, too."""
    match column.default:
        case ValueDefault(text) if column.type == "double":
            return f"{float(text):g}"
        case ValueDefault(text) if text.startswith("0x"):
            return bytes.fromhex(text[2:]).decode()
        case ValueDefault(text):
            return text
        case WrittenDefault(text):
            return text.strip("'")
        case _:
            return None


@pytest.mark.parametrize(
    ("flavour", "seed", "tables"),
    [
        *(("mysql", 1, 12), ("mariadb", 2, 12)),
        *(
            pytest.param(flavour, seed, 25, marks=pytest.mark.soak)
            for flavour in ("mysql", "mariadb")
            for seed in range(3, 103)
        ),
    ],
)
def test_alters(request: pytest.FixtureRequest, flavour: str, seed: int, tables: int) -> None:
    """Each statement that is taken leads to the server's table, whatever order it resolves the
    clauses in, and a row that is there tells which column became which; nothing is quarantined."""
    stand: MySqlStand = request.getfixturevalue(flavour)
    facts, chance, name = facts_of(stand), Random(seed), stand.fresh_name()
    context = read_context(b"", facts, name)
    counted, wrong = Counter[str](), list[str]()
    stand.execute(f"create database `{name}` character set utf8mb4")
    with stand.connect(name) as connection, connection.cursor() as cursor:
        for _ in range(tables):
            _one_table(cursor, chance, context, counted, wrong)
    stand.execute(f"drop database `{name}`")
    assert wrong == []
    assert counted["taken"] > counted["refused"] / 4  # chance has 32 to 44 % of them taken
    assert counted["taken"] > tables
