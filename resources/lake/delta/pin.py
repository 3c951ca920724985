"""The pin of a Spark commit to the version that it was planned on.

A write reads the table's head, then asks whether it still holds the source (`mirror`), and commits
with settings by which our log store refuses any commit but the next one (`PinnedLogStore.java`,
`log_store`).

Delta alone would try the next version when one is taken. Then a run that slept through a takeover
could still commit after those that took over, and bring back what they undid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.values.errors import LakeUnavailable, TableError
from lockstep.resources.lake.delta.delta_log import commit_file, drop_stray_checksum, newest_version
from lockstep.resources.lake.spark.java_errors import conflict, spark_errors
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import lake_errors

VERSION: Final = "spark.lockstep.commit.version"
PARENT: Final = "spark.lockstep.commit.parent"


@dataclass(frozen=True, slots=True)
class Head:
    """A table's newest commit: its version and its file's SHA-256; -1 and None without a table. The
    digest distinguishes tables that were created in one folder one after the other."""

    version: int
    digest: str | None

    @property
    def exists(self) -> bool:
        return self.version >= 0

    def pin(self) -> dict[str, str]:
        """Return the session's settings under which only the next commit can be made."""
        parent = {} if self.digest is None else {PARENT: self.digest}
        return {VERSION: str(self.version + 1), **parent}


def head_of(table: LakePath) -> Head:
    """Return the table's present head. A stray checksum file is deleted, so that Spark plans by the
    log."""
    version = newest_version(table)
    if version is None:
        return Head(-1, None)
    file = commit_file(table, version)
    with lake_errors(file):
        commit = file.read_bytes()
        drop_stray_checksum(file, commit)
        return Head(version, hashlib.sha256(commit).hexdigest())


@contextmanager
def pinned_errors(table: LakePath, head: Head) -> Iterator[None]:
    """Turn what Spark raises inside into an error of ours about `table`. It is `CommitConflict`,
    whatever Spark says, if `head` is no longer the head: that a column exists already, for example,
    is then the other writer's doing."""
    try:
        with spark_errors(table):
            yield
    except (LakeUnavailable, TableError) as error:
        if head_of(table) == head:
            raise
        raise conflict(table) from error
