"""Writes whose row images leave columns out, as SQL that chance makes.

Belongs here: tables with every kind of column that a server fills by itself, and sessions that
switch `binlog_row_image` between statements. Does not: what is made of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Final

_COLUMNS: Final = (
    "a int default 5, b varchar(20) default 'hi', c int not null, t text, e enum('s','m') not null,"
    " d datetime(3) default current_timestamp(3), s timestamp null on update current_timestamp,"
    " bits bit(3) default b'101', n decimal(9,2) default 1.5, y binary(3) default 'ab',"
    " g int generated always as (a * 2) stored, v int generated always as (a + 1) virtual,"
    " x int default (1 + 1), blo blob"
)

TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "keyed": f"id int primary key, {_COLUMNS}",
        "counted": f"id int primary key auto_increment, {_COLUMNS}",
        "paired": f"id int, k varchar(10) default 'k', {_COLUMNS}, primary key (id, k)",
        "uniquely": f"id int not null, {_COLUMNS}, unique key (id), unique key two (b, id)",
        "keyless": f"id int, {_COLUMNS}",
        "triggered": f"id int primary key, {_COLUMNS}",
    }
)
TRIGGERS: Final = (
    "create trigger before_one before insert on triggered for each row set new.n = new.id + 0.25",
    "create trigger before_two before update on triggered for each row set new.b ="
    " concat('u', new.id)",
)
IMAGES: Final = ("full", "minimal", "noblob")


ALTERED: Final = (
    "add column added int not null default 3, add column note varchar(9)",
    "rename column x to other, modify n decimal(12,2)",
    "drop column added, add column added varchar(5) default 'new'",
)
"""What becomes of every table, one after the other."""


class PartialWrites:
    """Seeded by `chance` alone. `added`: numbers may be written to these columns too."""

    def __init__(self, chance: Random, tables: Sequence[str] = tuple(TABLES)) -> None:
        self._chance = chance
        self._tables = tables
        self.added: tuple[str, ...] = ()

    def statements(self, count: int) -> Iterator[str]:
        """So many, of one session that is not strict."""
        yield "set sql_mode = ''"
        for _ in range(count):
            if self._chance.random() < 0.4:
                yield f"set binlog_row_image = {self._chance.choice(IMAGES)}"
            yield self._statement(self._chance.choice(self._tables))

    def _statement(self, table: str) -> str:
        if self._chance.random() < 0.03:
            return f"truncate table {table}"
        kinds = (self._insert, self._update, self._update, self._move, self._delete, self._replace)
        return self._chance.choice(kinds)(table)

    def _id(self) -> int:
        return self._chance.randint(1, 15)

    def _values(self) -> dict[str, str]:
        chance = self._chance
        found = {
            "a": chance.choice(("null", "7", "id + 1", "default")),
            "b": chance.choice(("null", "'x'", "default")),
            "c": str(chance.randint(0, 99)),
            "t": chance.choice(("null", "'text'", "repeat('y', 300)")),
            "e": chance.choice(("'m'", "'s'")),
            "d": "'2020-02-03 04:05:06.789'",
            "n": "2.25",
            "blo": "x'00ff'",
            **{name: str(chance.randint(0, 99)) for name in self.added},
        }
        return {name: found[name] for name in chance.sample(sorted(found), chance.randint(0, 4))}

    def _insert(self, table: str) -> str:
        values = {"id": str(self._id()), **self._values()}
        values = {n: v.replace("id + 1", "3") for n, v in values.items()}
        more = " on duplicate key update c = c + 1, t = concat(coalesce(t, ''), 'd')"
        if table == "counted" and self._chance.random() < 0.5:
            values.pop("id")
        words = self._chance.choice(("insert", "insert ignore"))
        return _insert(words, table, values) + ("" if words != "insert" else more)

    def _replace(self, table: str) -> str:
        values = {"id": str(self._id()), **self._values()}
        values = {n: v.replace("id + 1", "3") for n, v in values.items()}
        return _insert("replace", table, values)

    def _update(self, table: str) -> str:
        values = self._values() or {"c": "c + 1"}
        told = ", ".join(f"{name} = {value}" for name, value in values.items())
        return f"update ignore {table} set {told} where id % 3 = {self._chance.randint(0, 2)}"

    def _move(self, table: str) -> str:
        more = self._chance.choice(("", ", a = 9", ", t = 'moved'", ", b = 'moved'"))
        if self._chance.random() < 0.2:
            return f"update ignore {table} set id = id + 1{more} order by id desc"
        return f"update ignore {table} set id = {self._id()}{more} where id = {self._id()}"

    def _delete(self, table: str) -> str:
        return f"delete from {table} where id = {self._id()} limit 1"


def _insert(words: str, table: str, values: Mapping[str, str]) -> str:
    return f"{words} into {table} ({', '.join(values)}) values ({', '.join(values.values())})"
