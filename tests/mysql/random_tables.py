"""Tables that chance makes, with keys of one to three columns.

What is done to their rows is `random_writes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.mysql.random_columns import FAMILIES, RandomColumn, characters


@dataclass(frozen=True, slots=True)
class RandomTable:
    """`columns` by name; those of the key first."""

    name: str
    columns: dict[str, RandomColumn]
    key: tuple[str, ...]

    @property
    def written(self) -> list[str]:
        return [name for name, column in self.columns.items() if not column.computed]

    def create(self) -> str:
        parts = [f"{name} {column.definition}" for name, column in self.columns.items()]
        key = ", ".join(self.columns[name].key.format(name) for name in self.key)
        return f"create table {self.name} ({', '.join(parts)}, primary key ({key}))"

    def row(self, chance: Random) -> str:
        return f"({', '.join(self.columns[name].literal(chance) for name in self.written)})"


def random_tables(chance: Random, count: int) -> Iterator[RandomTable]:
    for number in range(count):
        width = chance.randint(1, 3)
        keys: list[RandomColumn] = []
        while len(keys) < width:
            column = chance.choice(FAMILIES)(chance)
            if column.key:
                keys.append(column)
        if not any(column.definition.startswith(("bigint", "varchar")) for column in keys):
            # Of most types there are too few values for a table's worth of keys.
            keys.append(_keyed(chance))
        rest = [chance.choice(FAMILIES)(chance) for _ in range(chance.randint(1, 12))]
        columns = {f"k{n}": _not_null(column) for n, column in enumerate(keys)}
        columns |= {f"c{n}": _nullable(column, chance) for n, column in enumerate(rest)}
        if chance.random() < 0.5:
            kind = chance.choice(("stored", "virtual"))
            definition = f"int unsigned generated always as (crc32(k0)) {kind}"
            columns["g"] = RandomColumn(definition, _nothing, computed=True)
        yield RandomTable(f"t{number}", columns, tuple(f"k{n}" for n in range(len(keys))))


def _not_null(column: RandomColumn) -> RandomColumn:
    return RandomColumn(f"{column.definition} not null", column.literal, column.key)


def _nullable(column: RandomColumn, chance: Random) -> RandomColumn:
    if chance.random() < 0.2:
        return _not_null(column)

    def literal(chance: Random) -> str:
        return "null" if chance.random() < 0.15 else column.literal(chance)

    return RandomColumn(f"{column.definition} null", literal)


def _nothing(_: Random) -> str:
    raise AssertionError("nobody writes to a generated column")


def _keyed(chance: Random) -> RandomColumn:
    if chance.random() < 0.5:
        return RandomColumn("bigint", lambda chance: str(chance.randint(-99, 99)), "{}")
    return RandomColumn("varchar(8)", characters("utf8mb4", 3), "{}")
