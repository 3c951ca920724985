"""What the ledger keeps of a source's structures: every version of every table, by place.

Not here: how a version comes about (`evolve`, `tracker`), how the ledger stores it
(`resources.postgres`).

A version holds from its place on: the place behind the statement that made it, or, for
what was read from the server, the place the reading belongs to. Versions are ordered by
(batch, file number, offset, version): batches ascend along the log, and where a start
is not behind the batch before it, the versions that hold there are recorded once more
(`VersionOrigin.CARRIED`). So nothing is ever deleted, and a table's newest version is
always the one that the next batch begins with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from pipeline.position import Coordinates
from pipeline.schema.model import DatabaseSchema, TableSchema
from pipeline.schema.model_json import schema_fingerprint, schema_from_json, schema_to_json
from pipeline.schema.rows import row_structure
from pipeline.schema.treatments import (
    Fate,
    Treatment,
    read_treatment,
    shown_in_words,
    treatment_words,
)
from pipeline.table import TableName, TableStructure


class Knowledge(StrEnum):
    KNOWN = "known"
    DROPPED = "dropped"
    UNKNOWN = "unknown"


class VersionOrigin(StrEnum):
    BASELINE = "baseline"
    """Read from the server."""
    STATEMENT = "statement"
    """Followed from a statement in the log."""
    TABLE_MAP = "table map"
    """Told by the log beside its rows (`binlog_row_metadata=FULL`)."""
    CARRIED = "carried"
    """An older version that holds again where a start went back, or on."""
    PERSON = "person"
    """Given with `lockstep resume --schema`."""


@dataclass(frozen=True, slots=True)
class ShownAs:
    """How the lake shows a table: not as it is.

    `treatments`: one for each column of the source's structure, in their order. `rows`: the
    condition of the rows that are taken, None for all. `key`: the fingerprint of the key that
    values are hashed with, None where none is. `schema`: the structure that the lake shows; a
    column that is shown as another type has that type there, and its default is the shaped one.
    """

    treatments: tuple[Treatment, ...]
    rows: str | None
    key: str | None
    schema: TableSchema

    @property
    def visible(self) -> tuple[int, ...]:
        """Indexes of the source's columns that the lake has in some form."""
        return tuple(
            index
            for index, treatment in enumerate(self.treatments)
            if treatment is not Fate.LEFT_OUT
        )

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with what is shown of a table with one structure."""
        words = [treatment_words(treatment) for treatment in self.treatments]
        text = json.dumps([words, self.rows, self.key])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def same_rules(self, other: ShownAs | None) -> bool:
        """Whether the other shows the same of a table with the same structure."""
        return other is not None and (self.treatments, self.rows, self.key) == (
            other.treatments,
            other.rows,
            other.key,
        )


def shown_as_to_json(shown_as: ShownAs) -> dict[str, Any]:
    """As the ledger keeps it."""
    return {
        "treatments": [treatment_words(treatment) for treatment in shown_as.treatments],
        "rows": shown_as.rows,
        "key": shown_as.key,
        "schema": schema_to_json(shown_as.schema),
    }


def shown_as_from_json(data: Mapping[str, Any]) -> ShownAs:
    """The inverse of `shown_as_to_json`."""
    return ShownAs(
        tuple(map(read_treatment, data["treatments"])),
        data["rows"],
        data["key"],
        schema_from_json(data["schema"]),
    )


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A table's structure from `since` on; numbered from 1 for each name.

    `schema` is there for KNOWN only; `reason` says why for UNKNOWN only. `columns_from`:
    for each column of `schema`, in order, the name it had in the version before, None for
    a new column; None as a whole where the rows of before are not this table's rows.
    `statement`: index into the statements recorded with it, by the ledger's id once it is
    stored. `generation`: of the changelog that its rows go to (`pipeline.changes.generations`).
    `batch` is 0 until stored. `shown_as`: how the lake shows it; None: as it is, all of it. What
    stands behind the decoder asks for `shown`, never for `schema`.
    """

    table: TableName
    version: int
    since: Coordinates
    knowledge: Knowledge
    origin: VersionOrigin
    schema: TableSchema | None = None
    columns_from: tuple[str | None, ...] | None = None
    statement: int | None = None
    reason: str | None = None
    generation: int = 1
    batch: int = 0
    shown_as: ShownAs | None = None

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.knowledge is Knowledge.KNOWN):
            raise ValueError(f"{self.table}: {self.knowledge} with schema {self.schema}")

    @property
    def structure(self) -> TableStructure:
        """What the log's decoder needs; ValueError unless KNOWN."""
        if self.schema is None:
            raise ValueError(f"{self.table}: version {self.version} is {self.knowledge}")
        return row_structure(self.schema)

    @property
    def shape(self) -> str | None:
        """The fingerprint of how the lake shows it; None: as it is."""
        return None if self.shown_as is None else self.shown_as.fingerprint

    @property
    def shown(self) -> TableSchema | None:
        """The structure that the lake shows, for KNOWN only."""
        return self.schema if self.shown_as is None else self.shown_as.schema

    @property
    def shown_structure(self) -> TableStructure:
        """What the changelog's columns are; ValueError unless KNOWN."""
        return self.structure if self.shown_as is None else row_structure(self.shown_as.schema)

    @property
    def shown_from(self) -> tuple[str | None, ...] | None:
        """`columns_from` of the columns that the lake shows."""
        if self.columns_from is None or self.shown_as is None:
            return self.columns_from
        return tuple(self.columns_from[index] for index in self.shown_as.visible)

    @property
    def treated(self) -> Mapping[str, str]:
        """Columns that the lake does not show as they are, each with what becomes of it."""
        if self.schema is None or self.shown_as is None:
            return {}
        pairs = zip(self.schema.columns, self.shown_as.treatments, strict=True)
        return {
            column.name: shown_in_words(treatment)
            for column, treatment in pairs
            if treatment is not Fate.SHOWN
        }

    @property
    def fingerprint(self) -> str:
        """The schema's; the knowledge where there is none."""
        return self.knowledge.value if self.schema is None else schema_fingerprint(self.schema)


@dataclass(frozen=True, slots=True)
class DatabaseVersion:
    """A database from `since` on; `schema` None once it is dropped."""

    name: str
    since: Coordinates
    schema: DatabaseSchema | None
    statement: int | None = None
    batch: int = 0


REDACTED_TEXT: Final = "redacted"
"""The key in a statement's context that says that its text has no values."""


@dataclass(frozen=True, slots=True)
class SchemaStatement:
    """A statement of the log that may change a structure, as it was read.

    `begin`, `end`: its transaction. `context`: what its event says of the session
    (`StatementContext`, plain values). `outcome`: followed, partly (some table's structure
    is unknown from here on), or "not understood". `effects`: a sentence each.
    """

    begin: Coordinates
    end: Coordinates
    gtid: str
    committed_at: datetime | None
    database: str
    text: str
    outcome: str
    effects: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    id: int = 0
    batch: int = 0


@dataclass(frozen=True, slots=True)
class History:
    statements: tuple[SchemaStatement, ...] = ()
    versions: tuple[SchemaVersion, ...] = ()
    databases: tuple[DatabaseVersion, ...] = ()
