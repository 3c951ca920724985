"""Statements that chance makes of those that the log alone can follow.

Belongs here: new columns with a value for every row, columns that go, change names or
become wider, indexes, TRUNCATE, DROP and CREATE. What must be read from the source again
is `random_statements`' business.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from lockstep.pipeline.schema.model import ColumnSchema, ServerSchema, TableSchema
from lockstep.pipeline.values.table import TableName
from tests.schema.cases import Steps
from tests.schema.made_rows import full_name, quoted

_TABLES: Final = ("one", "two", "three", "four")
_COLUMNS: Final = ("a", "b", "C", "d-e", "ü", "g", "h", "i")
_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")
_NEW: Final = (
    "tinyint",
    "tinyint unsigned not null default 7",
    "smallint not null",
    "int default -1",
    "decimal(6,2) not null default 1.5",
    "varchar(5) default 'é\\'s'",
    "varchar(20) character set latin1 not null default 'ÿ'",
    "char(3) not null",
    "text",
    "enum('x','y') not null",
    "set('x','y','z') default 'x,z'",
    "float",
    "bit(7) default b'101'",
    "date default '2024-02-29'",
    "datetime(3) default '2024-02-29 01:02:03.456'",
    "timestamp(2) null",
    "time(1) default '-12:34:56.7'",
    "year default 2020",
    "json",
    "varbinary(9) default x'00ff'",
    "blob",
)


def plain_steps(chance: Random, database: str, count: int) -> Steps:
    """So many statements on tables of `database`, which has to be there."""
    maker = _Maker(chance, database)
    server = ServerSchema()
    for _ in range(count):
        server = yield maker.statement(server)


class _Maker:
    """The choices of one sequence."""

    def __init__(self, chance: Random, database: str) -> None:
        self._chance = chance
        self._names = [TableName(database, name) for name in _TABLES]
        self._forms: tuple[tuple[int, Callable[[TableSchema], str]], ...] = (
            (6, self._add),
            (3, self._drop),
            (3, self._rename),
            (2, self._swap),
            (6, self._widen),
            (2, self._nothing),
            (1, self._truncate),
            (1, self._gone),
        )

    def statement(self, server: ServerSchema) -> str:
        there = [server.tables[name] for name in self._names if name in server.tables]
        free = [name for name in self._names if name not in server.tables]
        if free and (len(there) < 2 or self._chance.random() < 0.1):
            return self._create(self._chance.choice(free))
        weights, forms = zip(*self._forms, strict=True)
        form: Callable[[TableSchema], str] = self._chance.choices(forms, weights)[0]
        return form(self._chance.choice(there))

    def _create(self, name: TableName) -> str:
        chosen = self._chance.sample(_COLUMNS, self._chance.randint(1, 4))
        columns = [f"{quoted(one)} {self._chance.choice(_NEW)}" for one in chosen]
        key = self._chance.choice(("int", "bigint unsigned", "smallint"))
        return f"create table {full_name(name)} (id {key} primary key, {', '.join(columns)})"

    def _add(self, table: TableSchema) -> str:
        taken = {column.name for column in table.columns}
        free = [name for name in _COLUMNS if name not in taken]
        if not free:
            return self._drop(table)
        after = self._chance.choice(table.columns).name
        where = self._chance.choice(("", " first", f" after {quoted(after)}"))
        new = f"{quoted(self._chance.choice(free))} {self._chance.choice(_NEW)}{where}"
        return f"alter table {full_name(table.name)} add column {new}"

    def _drop(self, table: TableSchema) -> str:
        others = _others(table)
        if len(others) < 2:
            return self._nothing(table)
        name = quoted(self._chance.choice(others).name)
        return f"alter table {full_name(table.name)} drop column {name}"

    def _rename(self, table: TableSchema) -> str:
        taken = {column.name for column in table.columns}
        free = [name for name in _COLUMNS if name not in taken]
        if not free or not _others(table):
            return self._nothing(table)
        old, new = self._chance.choice(_others(table)).name, self._chance.choice(free)
        renamed = f"rename column {quoted(old)} to {quoted(new)}"
        return f"alter table {full_name(table.name)} {renamed}"

    def _swap(self, table: TableSchema) -> str:
        if len(_others(table)) < 2:
            return self._add(table)
        one, other = (quoted(c.name) for c in self._chance.sample(_others(table), 2))
        swapped = f"rename column {one} to {other}, rename column {other} to {one}"
        return f"alter table {full_name(table.name)} {swapped}"

    def _widen(self, table: TableSchema) -> str:
        column = self._chance.choice(table.columns)
        kind = wider(column)
        if kind is None:
            return self._add(table)
        null = "" if column.nullable else " not null"
        return f"alter table {full_name(table.name)} modify {quoted(column.name)} {kind}{null}"

    def _nothing(self, table: TableSchema) -> str:
        number = self._chance.randrange(1 << 30)
        forms = (f"comment 'no {number}'", f"add index i{number} (id)", "force")
        return f"alter table {full_name(table.name)} {self._chance.choice(forms)}"

    def _truncate(self, table: TableSchema) -> str:
        return f"truncate table {full_name(table.name)}"

    def _gone(self, table: TableSchema) -> str:
        return f"drop table {full_name(table.name)}"


def _others(table: TableSchema) -> list[ColumnSchema]:
    return [column for column in table.columns if column.name not in table.primary_key]


def wider(column: ColumnSchema) -> str | None:
    """A type that holds all that the column's does; None where there is none to try."""
    match column.type:
        case "varchar":
            return f"varchar({min(1000, 2 * (column.length or 1))}) character set utf8mb4"
        case "decimal":
            return f"decimal({min(38, (column.precision or 1) + 3)},{column.scale})"
        case "float":
            return "double"
        case "enum":
            members = (*column.members, f"m{len(column.members)}")
            return f"enum({', '.join(repr(member) for member in members)})"
        case "set":
            members = (*column.members, f"m{len(column.members)}")
            return f"set({', '.join(repr(member) for member in members)})"
        case kind if kind in _INTEGERS[:-1]:
            following = _INTEGERS[_INTEGERS.index(kind) + 1]
            return f"{following} unsigned" if column.unsigned else following
    return None
