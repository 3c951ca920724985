"""Columns, keys and options as a statement wrote them, nothing inherited yet.

Belongs here: values between the grammar and `evolve`. What they come to on a server is
`pipeline.schema.model`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pipeline.schema.model import KeyPart
from pipeline.table import TableName

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Bytes that were no characters in the statement."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: `kind` is string, number, hex, bits, null, or date, time and timestamp for
    those with that word before them; TRUE and FALSE are numbers. `charset` is its introducer."""

    kind: str
    text: str = ""
    charset: str | None = None

    @property
    def as_sql(self) -> str:
        """As a statement may write it."""
        introducer = f"_{self.charset} " if self.charset else ""
        match self.kind:
            case "hex":
                return f"{introducer}x'{self.text}'"
            case "bits":
                return f"{introducer}b'{self.text}'"
            case "number":
                return self.text
        word = "" if self.kind == "string" else f"{self.kind} "
        return introducer + word + "'" + _SURROGATES.sub("?", self.text).replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression, as written; `now` for CURRENT_TIMESTAMP and its other names, whose
    text is that word and the digits."""

    text: str
    now: bool = False


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A data type under its information_schema name. `length` as declared; `sized` is a
    TEXT or BLOB whose length chooses among the four."""

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    binary: bool = False
    members: tuple[Constant, ...] = ()
    sized: bool = False
    serial: bool = False
    check_json: bool = False
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class WrittenReference:
    """FOREIGN KEY, or a column's REFERENCES; `referenced` empty: the primary key."""

    columns: tuple[str, ...]
    references: TableName
    referenced: tuple[str, ...]
    name: str | None = None
    index: str | None = None
    on_delete: str | None = None
    on_update: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """PRIMARY KEY, UNIQUE, INDEX, FULLTEXT or SPATIAL; `name` None is the server's choice.
    `generated`: the one a foreign key brings along. `hash`: USING HASH."""

    kind: str
    parts: tuple[KeyPart, ...]
    name: str | None = None
    invisible: bool = False
    if_not_exists: bool = False
    generated: bool = False
    hash: bool = False


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column definition. `nullable` None: neither NULL nor NOT NULL was written.
    `key` is "primary", "unique" or None; `unique_too`: it asks for both. `versioned`: WITH
    SYSTEM VERSIONING of its own."""

    name: str
    type: WrittenType
    nullable: bool | None = None
    default: Constant | Computed | None = None
    on_update: bool = False
    auto_increment: bool = False
    generated: str | None = None
    stored: bool = False
    invisible: bool = False
    key: str | None = None
    unique_too: bool = False
    reference: WrittenReference | None = None
    srid: int | None = None
    system_period: str | None = None
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class WrittenOptions:
    """Table options that matter here; None where not written."""

    engine: str | None = None
    charset: str | None = None
    collation: str | None = None
    row_format: str | None = None
    partitioned: bool | None = None
    system_versioned: bool | None = None


@dataclass(frozen=True, slots=True)
class WrittenPeriod:
    """MariaDB's PERIOD FOR a name: its two columns cannot be NULL."""

    columns: tuple[str, ...]


Element = WrittenColumn | WrittenKey | WrittenReference | WrittenPeriod
