"""What a lake in memory holds: files, and the commits of its tables.

Tables are pyarrow tables. Belongs here: the state that the ports' calls share (`segments`,
`changelog`, `mirrors`). Java, files and what can go wrong with them stay with
`resources.lake`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pyarrow as pa

from lockstep.pipeline.model.claim import Claim
from lockstep.pipeline.model.lake_commit import LakeCommit, LogSince


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    """One version of a Delta table: the transaction it recorded and what it shows."""

    app_id: str
    txn_version: int
    user_metadata: str
    rows: pa.Table
    files: tuple[str, ...] = ()
    restates: bool = False
    readers: str = ""
    operation: str = "WRITE"

    def told(self, version: int) -> LakeCommit:
        """As a log would tell it. Without an application it is somebody else's."""
        recorded = {self.app_id: self.txn_version} if self.app_id else {}
        return LakeCommit(version, self.operation, None, self.user_metadata, recorded)


@dataclass(slots=True)
class MemoryLake:
    """One lake's content: files by absolute path, tables by path relative to the lake.
    `vacuumed`: of a mirror, the first version that is all there; `begins`: that with which its log
    begins."""

    files: dict[str, pa.Table] = field(default_factory=dict)
    tables: dict[str, list[MemoryCommit]] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    structures: dict[str, str] = field(default_factory=dict)
    vacuumed: dict[str, int] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def log_since(self, folder: str, version: int) -> LogSince:
        commits = [one.told(at) for at, one in enumerate(self.tables.get(folder, []))]
        newest, begins = len(commits) - 1 if commits else None, self.begins.get(folder, 0)
        base = commits[version] if begins <= version < len(commits) else None
        if version + 1 < begins:
            return LogSince(newest, base, (), version + 1)
        return LogSince(newest, base, tuple(commits[version + 1 :]))

    def path(self, relative: str) -> str:
        return f"memory:/{relative}"
