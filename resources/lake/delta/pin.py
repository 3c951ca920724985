"""The pin, which binds a commit by Spark to the version on which it was planned.

A write reads the table's head (its newest commit), then checks that no other run has
taken over the source, and then commits. Session settings tell our log store
(`PinnedLogStore.java`, `log_store`) to refuse every commit except the one directly
after the head.

Without the pin, Delta would commit as a later version if the next one is taken. A run
that was suspended while another run took over could then commit after that run, and
undo its work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.values.errors import LakeUnavailable, TableError
from lockstep.resources.lake.delta.checksums import delete_stray_checksum
from lockstep.resources.lake.delta.delta_log import commit_file, newest_version
from lockstep.resources.lake.spark.java_errors import commit_conflict, spark_errors
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import lake_errors

_VERSION_SETTING: Final = "spark.lockstep.commit.version"
_PARENT_SETTING: Final = "spark.lockstep.commit.parent"
"""Session settings: the version of the only commit that may be made, and the SHA-256 of
the commit file before it."""


@dataclass(frozen=True, slots=True)
class Head:
    """A table's newest commit: its version and the SHA-256 of its file; -1 and None if
    there is no table. The digest changes if the folder's table is replaced by another
    one."""

    version: int
    digest: str | None

    @property
    def exists(self) -> bool:
        return self.version >= 0

    def pin_settings(self) -> dict[str, str]:
        """Return the session settings with which only the next commit can be made."""
        parent = {} if self.digest is None else {_PARENT_SETTING: self.digest}
        return {_VERSION_SETTING: str(self.version + 1), **parent}


def head_of(path: LakePath) -> Head:
    """Return the table's present head. A checksum file that does not belong to it is
    deleted, so that Spark plans by the log."""
    version = newest_version(path)
    if version is None:
        return Head(-1, None)
    file = commit_file(path, version)
    with lake_errors(file):
        commit = file.read_bytes()
        delete_stray_checksum(file, commit)
        return Head(version, hashlib.sha256(commit).hexdigest())


@contextmanager
def pinned_errors(path: LakePath, head: Head) -> Iterator[None]:
    """Turn errors of Spark inside the context into our errors about `path`. Every
    error becomes `CommitConflict` if another commit came after `head`, because that
    commit may be the cause. For example, Spark reports that a column exists already if
    that commit has added the column."""
    try:
        with spark_errors(path):
            yield
    except (LakeUnavailable, TableError) as error:
        if head_of(path) == head:
            raise
        raise commit_conflict(path) from error
