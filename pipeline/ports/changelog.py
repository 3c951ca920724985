"""The port to changelogs, which are the Delta tables with all changes of source tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lockstep.pipeline.model.lake_commit import LogSince
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.values.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class Published:
    """A changelog's Delta version with a batch or a revision. `was_skipped`: an earlier
    commit had listed its files."""

    delta_version: int
    was_skipped: bool


@dataclass(frozen=True, slots=True)
class Restatement:
    """The result of `restate`. `removed_paths`: files that the changelog no longer
    lists. `added_files`: files that it lists again. `lost_paths`: recorded files that
    are missing or damaged. `delta_version`: the new version; None if there is no table,
    or if nothing was written."""

    delta_version: int | None
    removed_paths: tuple[str, ...] = ()
    added_files: tuple[SegmentFile, ...] = ()
    lost_paths: tuple[str, ...] = ()

    @classmethod
    def between(
        cls,
        listed: Collection[str] | None,
        files: Sequence[SegmentFile],
        damage_sentences: Callable[[Sequence[SegmentFile]], Collection[str]],
    ) -> Restatement:
        """Return what has to change so that a changelog that lists the files `listed`
        (None: there is no table) lists `files` and no others."""
        if listed is None:
            return cls(None, lost_paths=tuple(file.path for file in files))
        unlisted_files = [file for file in files if file.path not in listed]
        lost_paths = {file.path for file in unlisted_files if damage_sentences([file])}
        wanted_paths = {file.path for file in files}
        removed_paths = tuple(path for path in listed if path not in wanted_paths)
        added_files = tuple(file for file in unlisted_files if file.path not in lost_paths)
        return cls(None, removed_paths, added_files, tuple(sorted(lost_paths)))

    @property
    def removed_count(self) -> int:
        return len(self.removed_paths)

    @property
    def added_count(self) -> int:
        return len(self.added_files)

    @property
    def is_empty(self) -> bool:
        """True if the changelog lists the files already, and none is lost."""
        return not (self.removed_paths or self.added_files or self.lost_paths)


def is_revised(
    listed: Collection[str], removed_paths: Iterable[str], files: Iterable[SegmentFile]
) -> bool:
    """Return whether the files that a table lists include `files` and none of the other
    files in `removed_paths`."""
    wanted = {file.path for file in files}
    return wanted.issubset(listed) and wanted.issuperset(set(removed_paths).intersection(listed))


class Changelog(Protocol):
    """Commits to changelogs and to the system tables (`_transactions`, `_ddl`). A
    commit only lists files that exist or removes them from the list; no data is copied,
    and no JVM is needed.

    A method that commits reads the log, calls `require_held`, and commits. If another
    writer commits in between, it begins again, and raises `CommitConflict` after the
    last try; `restate` tries only once."""

    def newest_batch(self, folder: str, app_id: str) -> int | None:
        """Return the newest batch published under `app_id`; None before the first."""

    def publish(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> Published:
        """Add the files in one commit with the `txn` action (app_id, batch). Create the
        table at its first batch; add the columns of `schema` that it lacks in a commit
        of their own before that. Raise `TableError` if a column has another type (see
        `mirror.generations`), and `SegmentsLost` if a file is missing or damaged.

        If the log already records the batch, or a later one, nothing is committed: the
        batch is skipped if its commit has these files and the same metadata. Otherwise
        raise `ForeignCommit`."""

    def is_newest_version(self, folder: str, version: int) -> bool:
        """Return whether that version is the table's newest."""

    def listed_files(self, folder: str) -> dict[str, int] | None:
        """Return the files that the table lists, each with its size in bytes; None if
        there is no table."""

    def log_since(self, folder: str, version: int) -> LogSince:
        """Return the commit of the version and all commits after it."""

    def revise(
        self,
        folder: str,
        *,
        app_id: str,
        revision: int,
        schema: pa.Schema,
        removed_paths: Sequence[str],
        files: Sequence[SegmentFile],
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> Published:
        """List `files` and remove the files in `removed_paths` from the list, in one
        commit with the `txn` action (app_id, revision); all other files stay. Files in
        `removed_paths` that are not listed are ignored. Add the columns of `schema`
        that the table lacks in a commit of their own before that. Raise `SegmentsLost`
        if a file is missing or differs from its record.

        The revision is skipped if the table lists these files already (`is_revised`).
        Its number does not decide this, because a ledger that was restored from a
        backup can give a number twice."""

    def restore(
        self,
        folder: str,
        version: int,
        *,
        app_id: str,
        txn_version: int,
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> int:
        """Set the table back to an earlier version, with its columns, properties and
        reader features, in a commit with the `txn` action (app_id, txn_version), and
        return the new version. Raise `TableError` if the log or files of that version
        no longer exist."""

    def restate(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        files: Sequence[SegmentFile],
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> Restatement:
        """List these files and no others, in a commit with the `txn` action (app_id,
        batch). Leave out files that are missing or differ from their record. Do not
        create a table."""
