"""Mirrors in memory.

Belongs here: the port's calls, as the real one answers them. Does not: what a write does to the
rows (`mirror_writes`).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pyarrow as pa

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.model.lake_commit import (
    LakeCommit,
    LogSince,
    WriteKind,
    is_same_write,
    metadata_of_kind,
    read_metadata,
)
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.ports.mirror_writes import (
    CountedReplace,
    MirrorStep,
    MirrorTarget,
    MirrorWrite,
    Replace,
    copied_mirrors,
)
from lockstep.pipeline.ports.mirrors import ColumnRanges, MirrorCommit, MirrorSize
from lockstep.pipeline.values.errors import CommitConflict, ForeignCommit, MirrorRefused, TableError
from lockstep.pipeline.values.policies import Readers
from lockstep.pipeline.values.retention import DEFAULT_KEEP, Retention
from tests.twins.lake import MemoryCommit, MemoryLake
from tests.twins.mirror_writes import evolved, written


class MemoryMirrors:
    """`pipeline.ports.Mirrors`."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake
        self._staged = 0

    @property
    def client_id(self) -> UUID | None:
        return None

    def end_statements(self, client_id: UUID) -> None:
        """There are none."""

    def require_ready(self) -> None:
        """There is nothing that could be missing."""

    def prepare(self, log_bytes: int = 0) -> None:
        """There is nothing to start."""

    def find_commit(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        newest = None
        for version, commit in enumerate(self._lake.tables.get(mirror, [])):
            if commit.app_id == app_id:
                if commit.txn_version == txn_version:
                    made = _made(mirror, self._lake.tables[mirror])
                    return MirrorCommit(version, commit.user_metadata, table_id=made)
                newest = commit.txn_version
        if newest is not None and newest > txn_version:
            raise ForeignCommit(
                f"{mirror} recorded transaction {newest}, not {txn_version}", hint="compare them"
            )
        return None

    def write(self, write: MirrorWrite, require_held: RequireHeld = no_check) -> MirrorCommit:
        target = write.target
        with self._lake.lock:
            require_held()
            done = self.find_commit(target.mirror, target.app_id, target.txn_version)
            if done is not None and not is_same_write(done.user_metadata, target.user_metadata):
                raise ForeignCommit(f"{target.mirror} holds another's commit", hint="compare them")
            if done is not None:
                return done
            commits = self._lake.tables.setdefault(target.mirror, [])
            before = commits[-1].rows if commits else None
            if before is not None and not isinstance(write, Replace | CountedReplace):
                _refuse_other_columns(before, target)
            others = dict[str, pa.Table]()
            for part in copied_mirrors(write):
                mirror = part.path.removeprefix(self._lake.path(""))
                others[f"{part.path}@{part.version}"] = self._lake.tables[mirror][part.version].rows
            rows = written(ChainMap(others, self._lake.files), before, write)
            of = commits[0].readers if commits else target.policies.readers
            commits.append(
                MemoryCommit(
                    target.app_id, target.txn_version, target.user_metadata, rows, readers=of
                )
            )
            made = self.find_commit(target.mirror, target.app_id, target.txn_version)
            assert made is not None
            return made

    def retention(self, mirror: str) -> Retention | None:
        return Retention.for_keep(DEFAULT_KEEP) if self._lake.tables.get(mirror) else None

    def readers(self, mirror: str) -> Readers | None:
        commits = self._lake.tables.get(mirror)
        return Readers(commits[0].readers) if commits and commits[0].readers else None

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        rows = self._lake.tables[mirror][version].rows
        return MirrorSize(rows.num_rows, 1, rows.nbytes)

    def changed_since(self, examined_versions: Mapping[str, int]) -> frozenset[str]:
        return frozenset(
            one for one, version in examined_versions.items() if self.version(one) != version
        )

    def log_since(self, mirror: str, version: int) -> LogSince:
        return self._lake.log_since(mirror, version)

    def evolve(
        self,
        mirror: str,
        steps: Sequence[MirrorStep],
        *,
        app_id: str,
        txn_version: int,
        after_version: int,
        write_metadata: str = "",
        require_held: RequireHeld = no_check,
    ) -> tuple[MirrorCommit, ...]:
        with self._lake.lock:
            require_held()
            commits = self._lake.tables[mirror]
            found = []
            for number, step in enumerate(steps, start=1):
                name = {"app_id": app_id, "txn_version": txn_version, "step": number}
                does = metadata_of_kind(write_metadata, WriteKind.ALTER, **name, does=str(step))
                done = [
                    MirrorCommit(version, commit.user_metadata)
                    for version, commit in enumerate(commits)
                    if version > after_version
                    and name.items() <= (read_metadata(commit.user_metadata) or {}).items()
                ]
                if done and (read_metadata(done[0].user_metadata) or {})["does"] != str(step):
                    raise ForeignCommit(f"{mirror}: {done[0].user_metadata}", hint="compare them")
                if not done:
                    rows = evolved(commits[-1].rows, step)
                    commits.append(MemoryCommit(f"{app_id}/evolve", txn_version, does, rows))
                    done = [MirrorCommit(len(commits) - 1, does)]
                found.append(done[0])
            return tuple(found)

    def history(self, folder: str) -> Iterator[LakeCommit]:
        begins = self._lake.begins.get(folder, 0)
        yield from reversed(self._lake.log_since(folder, begins - 1).commits)

    def reason_unreadable(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        commits = self._lake.tables.get(mirror, [])
        if version >= len(commits):
            return "there is no such version"
        if version < self._lake.vacuumed.get(mirror, 0):
            return "its files were deleted, as VACUUM does"
        if table_id is not None and table_id != _made(mirror, commits):
            return "another table was created in its folder later"
        said = read_metadata(commits[version].user_metadata) or {}
        later = batch is not None and max(said.get("batches", [0])) > batch
        return "the version was written again" if later else None

    def restore(
        self, mirror: str, version: int, user_metadata: str, require_held: RequireHeld = no_check
    ) -> int:
        with self._lake.lock:
            require_held()
            commits = self._lake.tables[mirror]
            commits.append(MemoryCommit("", 0, user_metadata, commits[version].rows))
            return len(commits) - 1

    def delete_history(
        self,
        mirror: str,
        version: int,
        user_metadata: str,
        on_commit: Callable[[int], None],
        require_held: RequireHeld = no_check,
    ) -> None:
        with self._lake.lock:
            require_held()
            commits = self._lake.tables[mirror]
            if len(commits) != version + 1:
                raise CommitConflict(f"{mirror} has another version", hint="run again")
            empty = MemoryCommit(
                "", 0, user_metadata, commits[version].rows, operation="Empty Commit"
            )
            commits.append(empty)
        on_commit(version + 1)
        for number, commit in enumerate(commits[: version + 1]):
            commits[number] = replace(commit, rows=commit.rows.slice(0, 0), user_metadata="")
        self._lake.vacuumed[mirror] = self._lake.begins[mirror] = version + 1

    def schema(self, mirror: str, version: int) -> pa.Schema:
        if version < self._lake.begins.get(mirror, 0):
            raise MirrorRefused(f"its log does not have version {version}", hint="rewrite it")
        rows: pa.Table = self._lake.tables[mirror][version].rows
        return rows.schema

    def stage(self, name: str, changes: pa.Table) -> str:
        with self._lake.lock:
            self._staged += 1
            path = f"memory:/_staging/{name}-{self._staged}"
            self._lake.files[path] = changes
            return path

    def unstage(self, path: str) -> None:
        self._lake.files.pop(path, None)

    def path(self, relative: str) -> str:
        return self._lake.path(relative)

    def version(self, mirror: str) -> int | None:
        commits = self._lake.tables.get(mirror)
        return len(commits) - 1 if commits else None

    def remove(self, mirror: str, require_held: RequireHeld = no_check) -> None:
        require_held()
        self._lake.tables.pop(mirror, None)

    def rows(
        self,
        mirror: str,
        columns: Sequence[str],
        version: int,
        column_ranges: ColumnRanges | None = None,
    ) -> Iterator[pa.RecordBatch]:
        table: pa.Table = self._lake.tables[mirror][version].rows
        yield from table.select(list(columns)).to_batches()


def _refuse_other_columns(before: pa.Table, target: MirrorTarget) -> None:
    shown = [DELETED_AT] if target.policies.marks_deleted else []
    have = {field.name: field.type for field in before.schema}
    if have != {field.name: field.type for field in [*target.schema, *shown]}:
        raise TableError("the lake's table has other columns", hint="evolve it first")


def _made(mirror: str, commits: Sequence[MemoryCommit]) -> str:
    """Which table is in the folder."""
    return f"{mirror} by {commits[0].app_id}, {commits[0].txn_version}"
