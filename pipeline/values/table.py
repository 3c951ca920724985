"""The name of a source table, and its structure as the log describes it.

Not here: a column's Arrow type (`pipeline.schema.types`), reading a TABLE_MAP event
(`pipeline.binlog.rows.table_map`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from lockstep.pipeline.values.shown import shown


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A source table's full name, exactly as the server spells it."""

    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    def __format__(self, spec: str) -> str:
        """In an f-string, escape control characters; `str` returns the name itself."""
        return format(shown(str(self)), spec)


@dataclass(frozen=True, slots=True)
class Column:
    """One column as the log describes it.

    `type` is MySQL's base type in lower case ("int", "varchar", "datetime", …).
    `length` is bytes for strings and BINARY, fractional digits for temporal types.
    `charset` is MySQL's character set name, "binary" for byte strings, None elsewhere.
    """

    name: str
    type: str
    nullable: bool = True
    unsigned: bool = False
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    charset: str | None = None
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableStructure:
    """A table's columns in the order of its row images, and the column names of its primary key."""

    name: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with any part of the structure except its name."""
        text = json.dumps(
            [[asdict(column) for column in self.columns], self.primary_key],
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]
