"""A mirror's rows, read back: without Spark, but where only Spark reads the table.

Belongs here: which of the two. Does not: how each reads (`scan`, `writing`), writing (`mirror`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable

from pipeline.changes.strategy import Size, scale
from pipeline.proof.sampling import ValueRange
from resources.lake.columns import mirror_schema
from resources.lake.java_errors import spark_errors
from resources.lake.mirror_logs import MirrorLogs
from resources.lake.paths import LakePath
from resources.lake.scan import Nearness, needs_spark, scanned, staged_rows
from resources.lake.sessions import SparkSessions
from resources.lake.sizes import size_of
from resources.lake.staging import Staging
from resources.lake.storage import delta_table
from resources.lake.writing import copy_rows


class MirrorRows(MirrorLogs):
    """`few`: up to which size a mirror has few rows (`changes.strategy`)."""

    def __init__(
        self, lake: LakePath, *, staging: Staging, sessions: SparkSessions, few: Size
    ) -> None:
        super().__init__(lake)
        self._staging = staging
        self._sessions = sessions
        self._few = few

    def rows(self, mirror: str, columns: Sequence[str], version: int) -> Iterator[pa.RecordBatch]:
        with self._about(mirror) as path:
            if needs_spark(path, delta_table(path, version)):
                yield from self._rows_by_spark(mirror, columns, version)
            else:
                yield from scanned(path, columns, version)

    def rows_near(
        self,
        mirror: str,
        columns: Sequence[str],
        version: int,
        column: str,
        spans: Sequence[ValueRange],
    ) -> Iterator[pa.RecordBatch]:
        with self._about(mirror) as path:
            if needs_spark(path, delta_table(path, version)):
                yield from self._rows_by_spark(mirror, columns, version)
            else:
                yield from scanned(path, columns, version, Nearness(column, spans))

    def _rows_by_spark(
        self, mirror: str, columns: Sequence[str], version: int
    ) -> Iterator[pa.RecordBatch]:
        """By way of staged files: delta-rs reads no table whose columns were widened."""
        path = self._lake / mirror
        few = self._has_few(delta_table(path, version))
        with self._sessions.one(few=few) as session, self._staging.folder() as folder:
            with spark_errors(path):
                copy_rows(session, path, columns, version, folder)
            yield from staged_rows(folder, columns, mirror_schema(path, version))

    def _has_few(self, table: DeltaTable) -> bool:
        """Whether a mirror has few rows."""
        return scale(size_of(table), Size(0, 0), limit=self._few).few
