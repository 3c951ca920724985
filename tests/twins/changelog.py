"""Changelogs in memory.

Belongs here: the port's calls, as the real one answers them. Does not: the files that are listed
(`segments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lockstep.pipeline.mirror.generations import can_take
from lockstep.pipeline.model.lake_commit import LogSince, has_published, is_same_write
from lockstep.pipeline.ports.changelog import Published, Restatement, is_revised
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.values.errors import ForeignCommit, SegmentsLost, TableError
from lockstep.pipeline.values.segment import SegmentFile
from tests.twins.lake import MemoryCommit, MemoryLake
from tests.twins.segments import damaged


class MemoryChangelog:
    """`pipeline.ports.Changelog`."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake

    def newest_batch(self, folder: str, app_id: str) -> int | None:
        commits = self._lake.tables.get(folder, [])
        found = (commit.txn_version for commit in reversed(commits) if commit.app_id == app_id)
        return next(found, None)

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
        with self._lake.lock:
            require_held()
            commits = self._lake.tables.setdefault(folder, [])
            told = [at for at, commit in enumerate(commits) if commit.app_id == app_id]
            if told and commits[told[-1]].txn_version >= batch:
                _refuse_another(folder, commits, app_id, batch, files, user_metadata)
                return Published(told[-1], was_skipped=True)
            others = [commit for commit in commits if commit.app_id != app_id]
            known = len(others) == len(commits) and _names(commits)
            if known and files and all(file.path in known for file in files):
                return Published(len(commits) - 1, was_skipped=True)
            wrong = damaged(self._lake, folder, files)
            if wrong:
                raise SegmentsLost(wrong[0], hint="restore them")
            before = commits[-1].rows if commits else schema.empty_table()
            if not can_take(before.schema, schema):
                raise TableError("the changelog has other columns", hint="begin another one")
            added = [
                _listed(self._lake.files[self._lake.path(f"{folder}/{file.path}")], schema)
                for file in files
            ]
            rows = pa.concat_tables([before, *added], promote_options="default")
            names = tuple(file.path for file in files)
            commits.append(MemoryCommit(app_id, batch, user_metadata, rows, names))
            return Published(len(commits) - 1, was_skipped=False)

    def is_newest_version(self, folder: str, version: int) -> bool:
        return len(self._lake.tables.get(folder, [])) == version + 1

    def listed_files(self, folder: str) -> dict[str, int] | None:
        commits = self._lake.tables.get(folder)
        return dict.fromkeys(sorted(_names(commits)), 0) if commits else None

    def log_since(self, folder: str, version: int) -> LogSince:
        return self._lake.log_since(folder, version)

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
        with self._lake.lock:
            require_held()
            commits = self._lake.tables[folder]
            if is_revised(_names(commits), removed_paths, files):
                return Published(len(commits) - 1, was_skipped=True)
            if wrong := damaged(self._lake, folder, files):
                raise SegmentsLost(wrong[0], hint="restore them")
            names = [file.path for file in files]
            kept = sorted(_names(commits) - set(removed_paths) - set(names))
            before = commits[-1].rows.schema
            if not can_take(before, schema):
                raise TableError("the changelog has other columns", hint="begin another one")
            shown = pa.unify_schemas([before, schema])
            tables = [
                _listed(self._lake.files[self._lake.path(f"{folder}/{name}")], shown)
                for name in (*kept, *names)
                if self._lake.path(f"{folder}/{name}") in self._lake.files
            ]
            rows = pa.concat_tables([shown.empty_table(), *tables], promote_options="default")
            files_now = (*kept, *names)
            commits.append(
                MemoryCommit(app_id, revision, user_metadata, rows, files_now, restates=True)
            )
            return Published(len(commits) - 1, was_skipped=False)

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
        with self._lake.lock:
            require_held()
            commits = self._lake.tables[folder]
            names = tuple(sorted(_names(commits[: version + 1])))
            commits.append(
                MemoryCommit(
                    app_id, txn_version, user_metadata, commits[version].rows, names, restates=True
                )
            )
            return len(commits) - 1

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
        with self._lake.lock:
            require_held()
            commits = self._lake.tables.get(folder)
            names = _names(commits) if commits else None
            change = Restatement.between(
                names, files, lambda some: damaged(self._lake, folder, some)
            )
            if not commits:
                return change
            wanted = [one.path for one in files if one.path not in change.lost_paths]
            schema = commits[-1].rows.schema
            found = [
                _listed(self._lake.files[self._lake.path(f"{folder}/{name}")], schema)
                for name in wanted
            ]
            rows = pa.concat_tables([schema.empty_table(), *found], promote_options="default")
            commits.append(MemoryCommit(app_id, batch, user_metadata, rows, tuple(wanted), True))
            return replace(change, delta_version=len(commits) - 1)


def _refuse_another(
    folder: str,
    commits: Sequence[MemoryCommit],
    app_id: str,
    batch: int,
    files: Sequence[SegmentFile],
    user_metadata: str,
) -> None:
    """A number alone does not say that it is the same batch."""
    for commit in commits:
        if (commit.app_id, commit.txn_version) == (app_id, batch):
            names = {file.path for file in files}
            if is_same_write(commit.user_metadata, user_metadata) and has_published(
                commit.user_metadata, commit.files, names
            ):
                return
    raise ForeignCommit(f"{folder} has batch {batch} with other files", hint="compare them")


def _listed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Without columns that only the file has."""
    return table.select([name for name in table.column_names if name in schema.names])


def _names(commits: Sequence[MemoryCommit]) -> set[str]:
    """The files that a changelog lists: what was restated last, and what came since."""
    found: set[str] = set()
    for commit in commits:
        found = set(commit.files) if commit.restates else found | set(commit.files)
    return found
