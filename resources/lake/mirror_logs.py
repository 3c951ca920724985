"""What the logs of mirrors tell, without Spark.

Belongs here: versions, commits, sizes and properties, by a mirror's folder. Does not: a mirror's
rows, and writing any (`mirror`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import DeltaError

from pipeline.keeping import Retention
from pipeline.lake_commit import LakeCommit, LogAbove
from pipeline.policies import Readers
from pipeline.ports.mirrors import MirrorCommit, MirrorSize
from resources.lake.columns import VECTORS, mirror_schema
from resources.lake.delta_log import commits_back, ends_at, look, newest_version, recorded, table_id
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.sizes import shown_by
from resources.lake.storage import delta_table, mirror_errors
from resources.lake.versions import lacking

_FOR_SPARK = frozenset({"deletionVectors", "columnMapping", "typeWidening"})
"""What no table has that any reader reads."""

_ASKED_AT_ONCE = 16
"""Mirrors of a store: an answer takes some milliseconds, and a source may have thousands."""


class MirrorLogs:
    """Those of the lake's mirrors, as `pipeline.ports.Mirrors` asks for them."""

    def __init__(self, lake: LakePath) -> None:
        self._lake = lake

    def recorded(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        with self._about(mirror) as path:
            found = recorded(path, app_id, txn_version)
            if found is None:
                return None
            said = found.user_metadata or ""
            return MirrorCommit(found.delta_version, said, table_id=table_id(path))

    def version(self, mirror: str) -> int | None:
        with self._about(mirror) as path:
            return newest_version(path)

    def retention(self, mirror: str) -> Retention | None:
        with self._about(mirror) as path:
            if newest_version(path) is None:
                return None
            return Retention.of(delta_table(path).metadata().configuration)

    def made_for(self, mirror: str) -> Readers | None:
        with self._about(mirror) as path:
            if newest_version(path) is None:
                return None
            table = delta_table(path)
            if _FOR_SPARK & {*(table.protocol().reader_features or ())}:
                return Readers.SPARK
            vectors = table.metadata().configuration.get(VECTORS)
            return Readers.ANY if vectors == "false" else None

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        try:
            return shown_by(delta_table(self._lake / mirror, version))
        except (DeltaError, OSError):  # a figure for a page is no reason to stop a run
            return None

    def moved(self, looked: Mapping[str, int]) -> frozenset[str]:
        ends: Iterable[bool]
        if isinstance(self._lake, ObjectPath) and len(looked) > 1:
            with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="lockstep-logs") as pool:
                ends = [*pool.map(self._ends_at, looked, looked.values())]
        else:
            ends = map(self._ends_at, looked, looked.values())
        return frozenset(mirror for mirror, there in zip(looked, ends, strict=True) if not there)

    def _ends_at(self, mirror: str, version: int) -> bool:
        with self._about(mirror) as path:
            return ends_at(path, version)

    def look(self, mirror: str, above: int) -> LogAbove:
        with self._about(mirror) as path:
            return look(path, above)

    def history(self, folder: str) -> Iterator[LakeCommit]:
        return commits_back(self._lake / folder)

    def lacking(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        return lacking(self._lake / mirror, version, table_id=table_id, batch=batch)

    def schema(self, mirror: str, version: int) -> pa.Schema:
        with self._about(mirror) as path:
            return mirror_schema(path, version)

    @contextmanager
    def _about(self, mirror: str) -> Iterator[LakePath]:
        """The mirror's folder, for what concerns that mirror alone."""
        path = self._lake / mirror
        with mirror_errors(self._lake, path):
            yield path
