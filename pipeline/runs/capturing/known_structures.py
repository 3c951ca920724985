"""Structures as the ledger knows them, for whoever follows statements from there on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.ports.ledger import Ledger
from pipeline.schema.history import DatabaseVersion, Knowledge, SchemaVersion
from pipeline.table import TableName


class Newest:
    """`KnownStructures`: where a chain goes on."""

    def __init__(self, ledger: Ledger, source: str) -> None:
        self._ledger, self._source = ledger, source

    def one(self, table: TableName) -> SchemaVersion | None:
        return self._ledger.schema_at(self._source, table)

    def all(self) -> Sequence[SchemaVersion]:
        return self._ledger.schemas_at(self._source)

    def referring(self) -> Sequence[SchemaVersion]:
        return self._ledger.referring_schemas(self._source)

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self._ledger.schema_versions(self._source, table)

    def databases(self) -> Sequence[DatabaseVersion]:
        return self._ledger.databases_at(self._source)

    def last_number(self, table: TableName) -> int:
        return self._numbers.get(table, 0)

    @cached_property
    def _numbers(self) -> dict[TableName, int]:
        return self._ledger.last_versions(self._source)


@dataclass(frozen=True, slots=True)
class Given:
    """`KnownStructures`: what holds at hand, the rest in the ledger."""

    ledger: Ledger
    source: str
    holds: dict[TableName, SchemaVersion]
    schemas: tuple[DatabaseVersion, ...]
    numbers: dict[TableName, int] = field(default_factory=dict)

    def one(self, table: TableName) -> SchemaVersion | None:
        return self.holds.get(table)

    def all(self) -> Sequence[SchemaVersion]:
        return [hold for hold in self.holds.values() if hold.knowledge is not Knowledge.DROPPED]

    def referring(self) -> Sequence[SchemaVersion]:
        return [
            version
            for version in self.all()
            if version.schema is not None and version.schema.foreign_keys
        ]

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self.ledger.schema_versions(self.source, table)

    def databases(self) -> Sequence[DatabaseVersion]:
        return self.schemas

    def last_number(self, table: TableName) -> int:
        return self.numbers.get(table, 0)
