"""Commits of Spark's, bound to the version that they were planned for.

Belongs here: what is planned on (a table's head), and telling it to the log store, which refuses
every other commit (`PinnedLogStore.java`, `log_store`). Does not: whether the source is still
ours, which whoever plans asks between reading the head and committing (`mirror`).

Delta alone would try the next version when one is taken, so that whoever slept through a takeover
could commit behind those who took over, what they undid among it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pipeline.errors import LakeUnavailable, TableError
from resources.lake.delta_log import commit_file, drop_stray_checksum, newest_version
from resources.lake.java_errors import conflict, spark_errors
from resources.lake.paths import LakePath
from resources.lake.storage import lake_errors

VERSION: Final = "spark.lockstep.commit.version"
PARENT: Final = "spark.lockstep.commit.parent"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest commit of a table: its version and its file's SHA-256; -1 and none where there
    is no table. Tables that followed each other in one folder have different ones."""

    version: int
    digest: str | None

    @property
    def exists(self) -> bool:
        return self.version >= 0

    def pin(self) -> dict[str, str]:
        """The session's settings under which nothing but the next commit can be made."""
        parent = {} if self.digest is None else {PARENT: self.digest}
        return {VERSION: str(self.version + 1), **parent}


def head_of(table: LakePath) -> Head:
    """As it is now; what is planned on it goes by its log and by no stray checksum file."""
    version = newest_version(table)
    if version is None:
        return Head(-1, None)
    file = commit_file(table, version)
    with lake_errors(file):
        commit = file.read_bytes()
        drop_stray_checksum(file, commit)
        return Head(version, hashlib.sha256(commit).hexdigest())


@contextmanager
def behind(table: LakePath, head: Head) -> Iterator[None]:
    """What Spark raises inside becomes an error of ours about `table`: `CommitConflict`, whatever
    it says, where `head` is not the head any more; a column that somebody else added already is
    no fault of the table's."""
    try:
        with spark_errors(table):
            yield
    except (LakeUnavailable, TableError) as error:
        if head_of(table) == head:
            raise
        raise conflict(table) from error
