"""The history of a source's structures: each version of each table, by its position in
the log.

A version holds from its position on: the end of the statement that made the
version, or the position at which the server's structure was read. Versions are ordered
by (batch, file number, offset, version); a batch is the part of the log that one run
captured. Batches follow each other in the log. If a batch starts elsewhere than at the
end of the batch before it, the versions that hold at its start are recorded again
(`VersionOrigin.CARRIED`). So a batch always begins with the newest version of each
table, and versions are never deleted.

The structure of a stopped table is still followed. A later batch captures the table's
changes from the same part of the log (`pipeline.run.catch_up`), and may know the
structure better: a person gave it, or Lockstep now follows a statement that it did not
follow before. Then it records schema versions of its own. They overrule the versions
that earlier batches recorded for later places of the log. No row was captured under an
overruled version, because the table was stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal

from lockstep.pipeline.schema.model import (
    DatabaseSchema,
    TableSchema,
    schema_fingerprint,
    schema_from_json,
    schema_to_json,
)
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.treatments import (
    Treatment,
    Visibility,
    hides_values,
    treatment_from_text,
    treatment_to_text,
    treatments_in_words,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TableStructure


class Knowledge(StrEnum):
    """State of a table in the history. UNKNOWN: the table may exist, with an unknown
    structure."""

    KNOWN = "known"
    DROPPED = "dropped"
    UNKNOWN = "unknown"


class VersionOrigin(StrEnum):
    """Source of a version."""

    BASELINE = "baseline"
    """Read from the server."""
    STATEMENT = "statement"
    """Derived from a statement in the log."""
    TABLE_MAP = "table map"
    """Read from a TABLE_MAP event (`binlog_row_metadata=FULL`)."""
    CARRIED = "carried"
    """An older version that holds again, because the batch started at an earlier or
    later position than the end of the batch before it."""
    PERSON = "person"
    """Given with `lockstep resume --schema`."""


@dataclass(frozen=True, slots=True)
class ShownAs:
    """The way in which the lake shows a table whose settings hide or convert something.

    `treatments`: one for each column of the source's structure, in their order.
    `row_condition`: the condition for the rows that the lake takes, None for all rows.
    `key_fingerprint`: the fingerprint of the key with which values are hashed, None if
    no column is. `schema`: the structure that the lake shows, with the types and
    defaults of the treated columns."""

    treatments: tuple[Treatment, ...]
    row_condition: str | None
    key_fingerprint: str | None
    schema: TableSchema

    @property
    def shown_indexes(self) -> tuple[int, ...]:
        """Indexes of the source's columns that are not left out."""
        return tuple(
            index
            for index, treatment in enumerate(self.treatments)
            if treatment is not Visibility.LEFT_OUT
        )

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, which change with a treatment, the condition or the
        key."""
        words = [treatment_to_text(treatment) for treatment in self.treatments]
        text = json.dumps([words, self.row_condition, self.key_fingerprint])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def shown_as_to_json(shown_as: ShownAs) -> dict[str, Any]:
    """Return the `ShownAs` as JSON values, which the ledger stores."""
    return {
        "treatments": [treatment_to_text(treatment) for treatment in shown_as.treatments],
        "rows": shown_as.row_condition,
        "key": shown_as.key_fingerprint,
        "schema": schema_to_json(shown_as.schema),
    }


def shown_as_from_json(data: Mapping[str, Any]) -> ShownAs:
    """Return the `ShownAs` that `shown_as_to_json` stored."""
    return ShownAs(
        tuple(map(treatment_from_text, data["treatments"])),
        data["rows"],
        data["key"],
        schema_from_json(data["schema"]),
    )


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A table's structure from `since` on, numbered from 1 for each table name.

    - `schema`: only of KNOWN. It also has the columns that the settings hide, so only
      the log's decoder may read it; all other code reads `shown_schema`.
    - `columns_from`: for each column of `schema` the name that it had in the version
      before, None for a new column; the tuple itself is None if the table did not keep
      its rows.
    - `statement_number`: an index into the statements that the same run records; once
      stored, the statement's id in the ledger.
    - `reason`: only of UNKNOWN.
    - `generation`: the number of the changelog's part that gets the rows
      (`pipeline.mirror.generations`; the changelog is the Delta table with every
      change).
    - `batch`: 0 until stored.
    - `shown_as`: how the lake shows the table; None if it shows every column and row as
      it is.
    """

    table: TableName
    version: int
    since: Coordinates
    knowledge: Knowledge
    origin: VersionOrigin
    schema: TableSchema | None = None
    columns_from: tuple[str | None, ...] | None = None
    statement_number: int | None = None
    reason: str | None = None
    generation: int = 1
    batch: int = 0
    shown_as: ShownAs | None = None

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.knowledge is Knowledge.KNOWN):
            raise ValueError(f"{self.table}: {self.knowledge} with schema {self.schema}")

    @property
    def structure(self) -> TableStructure:
        """The structure for the log's decoder; ValueError unless KNOWN."""
        if self.schema is None:
            raise ValueError(f"{self.table}: version {self.version} is {self.knowledge}")
        return row_structure(self.schema)

    @property
    def shape_fingerprint(self) -> str | None:
        """The fingerprint of `shown_as`; None if the lake shows the table as it is."""
        return None if self.shown_as is None else self.shown_as.fingerprint

    @property
    def key_fingerprint(self) -> str | None:
        """The fingerprint of the key with which values are hashed; None if none are."""
        return None if self.shown_as is None else self.shown_as.key_fingerprint

    @property
    def shown_schema(self) -> TableSchema | None:
        """The schema that the lake shows; None unless KNOWN."""
        return self.schema if self.shown_as is None else self.shown_as.schema

    @property
    def shown_structure(self) -> TableStructure:
        """The structure of the changelog's columns; ValueError unless KNOWN."""
        return self.structure if self.shown_as is None else row_structure(self.shown_as.schema)

    @property
    def shown_columns_from(self) -> tuple[str | None, ...] | None:
        """`columns_from`, reduced to the columns that the lake shows."""
        if self.columns_from is None or self.shown_as is None:
            return self.columns_from
        return tuple(self.columns_from[index] for index in self.shown_as.shown_indexes)

    @property
    def treatments(self) -> Mapping[str, Treatment]:
        """The treatment of each column, by its name in lower case; empty unless the
        version is KNOWN and has `shown_as`."""
        if self.schema is None or self.shown_as is None:
            return {}
        names = map(str.lower, self.schema.names)
        return dict(zip(names, self.shown_as.treatments, strict=True))

    @property
    def hidden_columns(self) -> frozenset[str]:
        """The names, in lower case, of the columns whose values the lake does not
        show."""
        return frozenset(
            name for name, treatment in self.treatments.items() if hides_values(treatment)
        )

    @property
    def treatments_in_words(self) -> Mapping[str, str]:
        """Each column that the lake does not show as it is, with its treatment in
        words."""
        if self.schema is None or self.shown_as is None:
            return {}
        return treatments_in_words(self.schema.names, self.shown_as.treatments)

    @property
    def fingerprint(self) -> str:
        """The schema's fingerprint; "dropped" or "unknown" if there is no schema."""
        return self.knowledge.value if self.schema is None else schema_fingerprint(self.schema)


@dataclass(frozen=True, slots=True)
class DatabaseVersion:
    """A database from `since` on. `schema`: None if it was dropped."""

    name: str
    since: Coordinates
    schema: DatabaseSchema | None
    statement_number: int | None = None
    batch: int = 0


REDACTED_KEY: Final = "redacted"
"""Key in `SchemaStatement.context` that is set if values were removed from the
statement's text."""


@dataclass(frozen=True, slots=True)
class RecordedEffect:
    """A statement's effect on a table, in words. `table`: None for an effect on a
    database, or if the statement may change any table."""

    table: TableName | None
    words: str

    def __str__(self) -> str:
        return self.words if self.table is None else f"{self.table}: {self.words}"


StatementOutcome = Literal["followed", "partly followed", "not understood"]
"""The tables for which a statement's effects are known: all, some, or none. The
structures of all other tables that it may have changed are unknown after it."""


@dataclass(frozen=True, slots=True)
class SchemaStatement:
    """A statement in the log that may change a structure.

    `begin`, `end`: positions of its transaction. `context`: its `StatementContext` as
    JSON values. `id`, `batch`: 0 until stored.
    """

    begin: Coordinates
    end: Coordinates
    gtid: str
    committed_at: datetime | None
    database: str
    text: str
    outcome: StatementOutcome
    effects: tuple[RecordedEffect, ...] = ()
    context: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    id: int = 0
    batch: int = 0

    def effects_on(self, table: TableName) -> tuple[str, ...]:
        """Return the statement's effects on a table, as sentences; all its effects if
        none names the table."""
        effects = [effect for effect in self.effects if effect.table == table]
        return tuple(map(str, effects or self.effects))


@dataclass(frozen=True, slots=True)
class BatchHistory:
    """The statements and versions that a run records."""

    statements: tuple[SchemaStatement, ...] = ()
    versions: tuple[SchemaVersion, ...] = ()
    databases: tuple[DatabaseVersion, ...] = ()

    def for_tables(self, tables: Container[TableName]) -> BatchHistory:
        """Return the versions of these tables and the statements that made them. The
        statements are numbered from 0 again."""
        versions = [version for version in self.versions if version.table in tables]
        numbers = sorted({v.statement_number for v in versions if v.statement_number is not None})
        new_numbers: dict[int | None, int | None] = {None: None}
        new_numbers |= {old: new for new, old in enumerate(numbers)}
        return BatchHistory(
            tuple(self.statements[number] for number in numbers),
            tuple(
                replace(version, statement_number=new_numbers[version.statement_number])
                for version in versions
            ),
        )


def is_out_of_order(versions: Sequence[SchemaVersion]) -> bool:
    """Return whether a version is recorded after one that starts at a later place of
    the log."""
    return any(not _is_before(version, other) for version, other in pairwise(versions))


def valid_versions(
    versions: Sequence[SchemaVersion], catching_up_batches: Collection[int]
) -> list[SchemaVersion]:
    """Return the `versions` of one table that are valid, in their order. A version is
    not valid if a batch that caught the table up overruled it, as the module's
    docstring says. The first one, which the mirror shows, is always valid."""
    valid = list(versions)
    for batch in sorted(catching_up_batches):
        first_of_batch = next((version for version in valid if version.batch == batch), None)
        if first_of_batch is not None and first_of_batch is not valid[0]:
            valid = [
                version
                for version in valid
                if version is valid[0]
                or version.batch >= batch
                or _is_valid_before(version, first_of_batch)
            ]
    return valid


def _is_valid_before(version: SchemaVersion, first_of_batch: SchemaVersion) -> bool:
    """Return whether a version comes before `first_of_batch`, the first version of a
    batch that caught the table up, and so is not overruled by it. A version that starts
    at the same place comes before it only if a person gave `first_of_batch`."""
    is_followed = (
        first_of_batch.origin is VersionOrigin.PERSON
        and version.schema is not None
        and version.since == first_of_batch.since
    )
    return is_followed or _is_before(version, first_of_batch)


def _is_before(version: SchemaVersion, other: SchemaVersion) -> bool:
    """Return whether a version starts before another. Return True if they are in
    different logs, whose positions cannot be compared."""
    is_same_log = version.since.file.base == other.since.file.base
    return not is_same_log or version.since < other.since
