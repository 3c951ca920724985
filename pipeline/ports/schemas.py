"""What the ledger answers about structures of then.

Belongs here: reading the history by place. Does not: writing it, which is part of
`Captures.record_capture`; what happened to tables in a batch (`ports.batches`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.position import Coordinates
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.table import TableName


class Schemas(Protocol):
    """The history of structures. Versions and statements of abandoned batches are not seen,
    except by their number; numbers are never given twice. Without a batch and a place, a question
    is about what is newest."""

    def has_history(self, source: str) -> bool:
        """Whether some live batch recorded a baseline."""

    def last_versions(self, source: str) -> dict[TableName, int]:
        """Each table's highest number so far, those of abandoned batches among them; the
        next version's is one more."""

    def schema_at(
        self, source: str, table: TableName, *, batch: int = ..., place: Coordinates = ...
    ) -> SchemaVersion | None:
        """What holds for the table at a place that the batch read: the newest version of
        this batch up to the place, or of a batch before it; also one that says dropped or
        unknown. None where nothing was recorded."""

    def schemas_at(
        self, source: str, *, batch: int = ..., place: Coordinates = ...
    ) -> list[SchemaVersion]:
        """What holds there for each table, by name; dropped ones left out."""

    def referring_schemas(self, source: str) -> list[SchemaVersion]:
        """The newest version of each table that has foreign keys; dropped ones left out."""

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        """The version of that number, whatever became of its batch; `LedgerRefused` where
        there is none."""

    def schema_versions(self, source: str, table: TableName) -> list[SchemaVersion]:
        """All versions of the table, in the order of their places."""

    def databases_at(
        self, source: str, *, batch: int = ..., place: Coordinates = ...
    ) -> list[DatabaseVersion]:
        """What holds there for each database, by name; dropped ones left out."""

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        """Statements with an id above `after`, in the order of the log as it was read."""

    def statement(self, source: str, number: int) -> SchemaStatement:
        """The statement of that id; `LedgerRefused` where there is none."""
