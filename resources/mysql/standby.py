"""A source's server, or its standby when that one cannot be reached.

Belongs here: which of the two is asked. Does not: whether a run may go on there, which is
decided by what the answering server says of itself (`pipeline.start`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from pipeline.batch import Xid
from pipeline.errors import HostUnknown, SourceUnavailable
from pipeline.gtid import GtidSet
from pipeline.ports.compared import ComparedRows, SourceHashes, SourceSample, SourceSum
from pipeline.ports.source import (
    Baseline,
    BinlogDump,
    ConditionSnapshot,
    CurrentSchemas,
    ListedTable,
    ServerFacts,
    SourceServer,
    TableSnapshot,
)
from pipeline.position import Coordinates
from pipeline.schema.model import TableSchema
from pipeline.snapshot.bounds import Bound, Range
from pipeline.snapshot.condition import Condition
from pipeline.snapshot.giving_way import PIECE_SECONDS
from pipeline.snapshot.pace import SourceLoad
from pipeline.survey import Survey
from pipeline.table import TableName, TableStructure

T = TypeVar("T")


class ServerOrStandby:
    """`pipeline.ports.SourceServer` over two of them.

    The first that answers is asked from then on: a run never changes its server half-way.
    When neither answers, the error is the first one's.
    """

    def __init__(self, primary: SourceServer, standby: SourceServer) -> None:
        self._both = (primary, standby)
        self._chosen: SourceServer | None = None

    def _ask(self, question: Callable[[SourceServer], T]) -> T:
        if self._chosen is not None:
            return question(self._chosen)
        primary, standby = self._both
        try:
            answer, self._chosen = question(primary), primary
        except (SourceUnavailable, HostUnknown) as error:
            try:
                answer, self._chosen = question(standby), standby
            except (SourceUnavailable, HostUnknown):
                raise error from None
        return answer

    def _facts(self) -> SourceServer:
        """The server to work with, found by asking for its facts."""
        if self._chosen is None:
            self._ask(lambda server: server.facts())
        assert self._chosen is not None, "one of them answered"
        return self._chosen

    def facts(self) -> ServerFacts:
        facts = self._ask(lambda server: server.facts())
        return replace(facts, standby=self._chosen is self._both[1])

    def survey(self) -> Survey:
        return self._ask(lambda server: server.survey())

    def dump(self, start: Coordinates) -> BinlogDump:
        return self._facts().dump(start)

    def dump_after(self, executed: GtidSet) -> BinlogDump:
        return self._facts().dump_after(executed)

    def prepared(self) -> frozenset[Xid]:
        return self._ask(lambda server: server.prepared())

    def tables(self) -> list[ListedTable]:
        return self._ask(lambda server: server.tables())

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        return self._ask(lambda server: server.comments(tables))

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        return self._ask(lambda server: server.table_comments(tables))

    def engines(self) -> dict[TableName, str]:
        return self._ask(lambda server: server.engines())

    def rows(self, structure: TableStructure) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        return self._facts().rows(structure)

    def structure(self, table: TableName) -> TableStructure:
        return self._ask(lambda server: server.structure(table))

    def structures(self) -> list[TableStructure]:
        return self._ask(lambda server: server.structures())

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        return self._facts().baseline(names)

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return self._facts().current_schemas(tables)

    def is_view(self, name: TableName) -> bool:
        return self._facts().is_view(name)

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        return self._facts().locked_schema(table)

    def empty(self, tables: Collection[TableName]) -> frozenset[TableName]:
        return self._facts().empty(tables)

    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> AbstractContextManager[TableSnapshot]:
        return self._facts().snapshot(table, columns, exact=exact)

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        return self._facts().next_bound(schema, after, rows, since=since)

    def chunk(
        self,
        schema: TableSchema,
        rows: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> AbstractContextManager[TableSnapshot]:
        source = self._facts()
        return source.chunk(schema, rows, exact=exact, most_seconds=most_seconds, since=since)

    def rows_where(
        self,
        schema: TableSchema,
        condition: Condition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> AbstractContextManager[ConditionSnapshot]:
        return self._facts().rows_where(schema, condition, most_seconds=most_seconds)

    def estimated_where(self, table: TableName, condition: Condition) -> int:
        return self._ask(lambda server: server.estimated_where(table, condition))

    def source_load(self) -> SourceLoad:
        return self._ask(lambda server: server.source_load())

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        return self._ask(lambda server: server.estimated_rows(tables))

    def row_sum(self, structure: TableStructure) -> SourceSum:
        return self._facts().row_sum(structure)

    def row_hashes(self, structure: TableStructure) -> AbstractContextManager[SourceHashes]:
        return self._facts().row_hashes(structure)

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        return self._facts().rows_by_hash(structure, keys)

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        return self._facts().sample(structure, starts)
