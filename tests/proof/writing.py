"""Writers that do not stop, and mirrors that somebody tampered with.

Belongs here: traffic on one table, ways to spoil a mirror in memory. Does not: what a comparison
finds of it (the tests).
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Final

import pyarrow as pa
import pymysql

from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.positions.follower import Follower

COLUMNS: Final = "id int primary key, a varchar(30), b double, c decimal(12,3), d datetime(3)"
KEYLESS: Final = "id int, a varchar(30), b double, c decimal(12,3), d datetime(3)"
KEYS: Final = 400
PAUSE: Final = 0.004
"""Seconds between two transactions of a session: hundreds a second are a hot table, and leave the
processor to who compares it."""


def statement(chance: Random, table: str) -> str:
    """One that changes a row or a few, or none."""
    key = chance.randrange(KEYS)
    text = chance.choice(("'a'", "'a '", "''", "null", "'é,😀'", f"'{chance.random()}'"))
    number = chance.choice(("null", "0", "-0e0", "1e-300", str(chance.random()), "2.5e20"))
    moment = f"'2024-02-29 12:00:00' + interval {chance.randrange(10**6)} second"
    return chance.choice(
        (
            f"insert ignore into {table} (id, a, b, c, d)"
            f" values ({key}, {text}, {number}, {key}/7, {moment})",
            f"update {table} set a = {text}, d = {moment} where id = {key}",
            f"update {table} set b = {number} where id between {key} and {key + 5}",
            f"delete from {table} where id = {key}",
            f"update ignore {table} set id = {KEYS} - id where id = {key}",
        )
    )


@contextmanager
def writers(
    stand: MySqlStand, database: str, tables: Sequence[str], count: int = 2
) -> Iterator[list[int]]:
    """So many sessions write until the block ends; how many transactions each committed."""
    done, committed, errors = threading.Event(), [0] * count, list[BaseException]()

    def write(number: int) -> None:
        chance = Random(number)
        with stand.connect(database, autocommit=False) as connection:
            cursor = connection.cursor()
            while not done.wait(PAUSE):
                try:
                    for _ in range(chance.randint(1, 3)):
                        cursor.execute(statement(chance, chance.choice(tables)))
                    connection.commit()
                    committed[number] += 1
                except pymysql.MySQLError as error:
                    if error.args[0] not in (1205, 1213):  # a deadlock is everyday life
                        errors.append(error)
                        return
                    connection.rollback()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield committed
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not errors, errors


def spoil(
    follower: Follower, table: TableName, change: Callable[[list[dict[str, Any]]], object]
) -> None:
    """Change the rows of a table's mirror, behind everybody's back."""
    path = follower.states()[table].mirror
    newest = follower.lake.tables[path][-1]
    rows = newest.rows.to_pylist()
    change(rows)
    spoiled = pa.Table.from_pylist(rows, newest.rows.schema)
    follower.lake.tables[path][-1] = replace(newest, rows=spoiled)


def _swap(rows: list[dict[str, Any]], column: str) -> None:
    one = rows[0]
    other = next(row for row in rows if row[column] != one[column])
    one[column], other[column] = other[column], one[column]


def _next_double(value: float) -> float:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    (found,) = struct.unpack("<d", struct.pack("<q", bits ^ 1))
    return float(found)


def _one(rows: list[dict[str, Any]], column: str, value: Callable[[Any], Any]) -> None:
    row = next(row for row in rows if row[column] not in (None, ""))
    row[column] = value(row[column])


def _emptied(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["a"] is None or row["a"] == "")
    row["a"] = "" if row["a"] is None else None


SPOILED: Final[dict[str, Callable[[list[dict[str, Any]]], object]]] = {
    "a row is missing": lambda rows: rows.pop(3),
    "a row is doubled": lambda rows: rows.append(dict(rows[5])),
    "a row is changed": lambda rows: rows[7].update(c=None),
    "NULL for empty": _emptied,
    "a trailing space": lambda rows: _one(rows, "a", lambda text: f"{text} "),
    "a bit of a double": lambda rows: _one(rows, "b", _next_double),
    "two values change places": lambda rows: _swap(rows, "a"),
    "two dates change places": lambda rows: _swap(rows, "d"),
}
"""Ways in which a mirror may be wrong; each has rows of `COLUMNS`."""
