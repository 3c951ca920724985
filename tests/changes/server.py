"""A table that changes its columns and its rows by chance, with the images a log would hold.

Rows are what a mirror should show: the columns there are, and with `ghosts` the values of
dropped columns as the rows had them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from lockstep.pipeline.mirror.layout import changelog_schema
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.model import ColumnSchema, ValueDefault
from lockstep.pipeline.schema.rows import row_structure
from tests.changes.tables_made import ID, a_column, a_table, a_version

Row = dict[str, Any]

LADDERS = (
    ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal 20 0", "decimal 24 2"),
    ("tinyint", "decimal 3 0", "decimal 5 2"),
    ("bit 1", "bit 8", "bit 64"),
    ("smallint", "float", "double"),
    ("date", "datetime 6"),
    ("varchar",),
)
"""Types a column may go through, each keeping the values of the one before."""

DEFAULTS = {"tinyint": "7", "varchar": "it's ä`\\", "bit": "b'1'", "date": "2020-02-29"}
NAMES = ("a", "b", "c", "d", "e")


def of_type(name: str, kind: str, **more: Any) -> ColumnSchema:
    base, *numbers = kind.split()
    if base == "decimal":
        return a_column(name, base, precision=int(numbers[0]), scale=int(numbers[1]), **more)
    if numbers:
        return a_column(name, base, length=int(numbers[0]), **more)
    return a_column(name, base, **more)


@dataclass
class Server:
    chance: Random
    columns: list[ColumnSchema] = field(default_factory=lambda: [ID, a_column("a", "tinyint")])
    rows: dict[int, Row] = field(default_factory=dict)
    ghosts: dict[str, dict[int, Any]] = field(default_factory=dict)
    ladders: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"a": LADDERS[0]})
    versions: list[SchemaVersion] = field(default_factory=list)
    images: list[tuple[int, Row]] = field(default_factory=list)
    sequence: int = 0
    changed: dict[int, Row] = field(default_factory=dict)
    """The stamps of each row that is there."""

    def __post_init__(self) -> None:
        self._version([None] * len(self.columns))

    def step(self) -> None:
        """Something happens."""
        happenings: list[Callable[[], None]] = [
            *[self.insert, self.update, self.delete, self.move] * 2,
            *[self.add, self.drop, self.rename, self.swap, self.widen],
        ]
        self.chance.choice(happenings)()

    def changes(self) -> list[tuple[int, pa.Table]]:
        """The images since the last call, by version."""
        found = []
        for version in self.versions:
            images = [image for number, image in self.images if number == version.version]
            assert version.schema is not None
            schema = changelog_schema(row_structure(version.schema))
            if images:
                found.append((version.version, pa.Table.from_pylist(images, schema=schema)))
        self.images.clear()
        return found

    def shown(self, kept: tuple[str, ...], stamps: tuple[str, ...] = ()) -> list[Row]:
        ghosts = {name: self.ghosts[name] for name in kept}
        return [
            {
                **row,
                **{name: values.get(key) for name, values in ghosts.items()},
                **{name: self.changed[key][name] for name in stamps},
            }
            for key, row in sorted(self.rows.items())
        ]

    def insert(self) -> None:
        key = self.chance.randint(1, 6)
        if key not in self.rows:
            self._begin(key, {c.name: self._value(c) for c in self.columns} | {"id": key})
            self._image("insert", self.rows[key])

    def update(self) -> None:
        if self.rows:
            key = self.chance.choice(list(self.rows))
            self._image("update_preimage", self.rows[key])
            self.rows[key] = {c.name: self._value(c) for c in self.columns} | {"id": key}
            self._image("update_postimage", self.rows[key])

    def move(self) -> None:
        """An update changes a key."""
        free = [key for key in range(1, 7) if key not in self.rows]
        if self.rows and free:
            old, new = self.chance.choice(list(self.rows)), self.chance.choice(free)
            self._image("update_preimage", self.rows[old])
            self._begin(new, self.rows.pop(old) | {"id": new})
            self._image("update_postimage", self.rows[new])

    def delete(self) -> None:
        if self.rows:
            key = self.chance.choice(list(self.rows))
            self._image("delete", self.rows.pop(key))

    def add(self) -> None:
        free = [name for name in NAMES if name not in self._names()]
        if not free:
            return
        name, ladder = self.chance.choice(free), self.chance.choice(LADDERS)
        default = DEFAULTS.get(ladder[0].split()[0])
        given = ValueDefault(default) if default and self.chance.random() < 0.5 else None
        nullable = self.chance.random() < 0.6
        column = of_type(name, ladder[0], default=given, nullable=nullable)
        value = None if given is None and nullable else _implicit(ladder[0], given is not None)
        for row in self.rows.values():
            row[name] = value
        self.ladders[name] = ladder
        self.ghosts.pop(name, None)
        sources = [*self._names(), None]
        self.columns.append(column)
        self._version(sources)

    def drop(self) -> None:
        if len(self.columns) > 1:
            column = self.chance.choice(self.columns[1:])
            self.ghosts[column.name] = {k: row.pop(column.name) for k, row in self.rows.items()}
            self.columns.remove(column)
            del self.ladders[column.name]
            self._version(self._names())

    def rename(self) -> None:
        free = [name for name in NAMES if name not in self._names()]
        if len(self.columns) > 1 and free:
            self._renamed({self.chance.choice(self._names()[1:]): self.chance.choice(free)})

    def swap(self) -> None:
        if len(self.columns) > 2:
            names = self.chance.sample(self._names()[1:], min(3, len(self.columns) - 1))
            self._renamed(dict(zip(names, [*names[1:], names[0]], strict=True)))

    def widen(self) -> None:
        for at, column in enumerate(self.columns[1:], start=1):
            rest = self.ladders[column.name]
            if len(rest) > 1 and self.chance.random() < 0.5:
                self.ladders[column.name] = rest[1:]
                default = None if column.default is None or rest[1].startswith("d") else "b'1'"
                given = None if default is None else ValueDefault(default)
                nullable = column.nullable
                self.columns[at] = of_type(column.name, rest[1], default=given, nullable=nullable)
                for row in self.rows.values():
                    row[column.name] = _widened(row[column.name])
                self._version(self._names())
                return

    def _renamed(self, names: dict[str, str]) -> None:
        sources = self._names()
        self.columns = [replace(c, name=names.get(c.name, c.name)) for c in self.columns]
        self.ladders = {names.get(n, n): ladder for n, ladder in self.ladders.items()}
        for key, row in self.rows.items():
            self.rows[key] = {names.get(name, name): value for name, value in row.items()}
        for name in names.values():
            self.ghosts.pop(name, None)
        self._version(sources)

    def _names(self) -> list[str]:
        return [column.name for column in self.columns]

    def _version(self, sources: Sequence[str | None]) -> None:
        schema = a_table(*self.columns)
        self.versions.append(a_version(len(self.versions) + 1, schema, sources))

    def _begin(self, key: int, row: Row) -> None:
        """A row of that key that is not the one of before."""
        self.rows[key] = row
        for ghost in self.ghosts.values():
            ghost[key] = None

    def _image(self, kind: str, row: Row) -> None:
        self.sequence += 1
        stamps = {
            "_committed_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.sequence),
            "_sequence": self.sequence,
            "_gtid": f"s:{self.sequence}" if self.sequence % 3 else None,
        }
        self.changed[row["id"]] = stamps
        self.images.append((self.versions[-1].version, {"_change_type": kind} | stamps | row))

    def _value(self, column: ColumnSchema) -> Any:
        number = self.chance.randint(0, 99)
        if column.nullable and number < 20:
            return None
        return _of_type(column, number)


def _widened(value: Any) -> Any:
    """What the next step of a ladder makes of it; a number is that number."""
    if isinstance(value, bool):
        return int(value)
    if type(value) is date:
        return datetime(value.year, value.month, value.day)
    return value


def _of_type(column: ColumnSchema, number: int) -> Any:
    match column.type:
        case "bit":
            return bool(number % 2) if column.length == 1 else number
        case "decimal":
            return Decimal(number)
        case "float" | "double":
            return number / 2
        case "date":
            return date(2000, 1, 1 + number % 28)
        case "datetime":
            return datetime(2000, 1, 1, number % 24)
        case "varchar":
            return f"text {number}"
    return number


def _implicit(kind: str, given: bool) -> Any:
    return {
        "tinyint": 7 if given else 0,
        "smallint": 0,
        "bit": given,
        "date": date(2020, 2, 29) if given else None,
        "varchar": DEFAULTS["varchar"] if given else "",
    }[kind.split()[0]]
