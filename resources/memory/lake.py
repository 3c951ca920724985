"""The lake in memory: segments, changelogs and mirrors that answer as the real ones do.

Tables are pyarrow tables. Belongs here: the three ports' calls and the state they share.
Java, files and what can go wrong with them stay with `resources.lake`.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pyarrow as pa

from pipeline.changes.generations import joins
from pipeline.changes.layout import DELETED_AT
from pipeline.claim import Claim
from pipeline.errors import ForeignCommit, SegmentsLost, TableError
from pipeline.keeping import KEEP, Retention
from pipeline.lake_commit import (
    LakeCommit,
    Look,
    WriteKind,
    restamped,
    said_of,
    same_files,
    same_write,
)
from pipeline.policies import Readers
from pipeline.ports.changelog import Published, Restated
from pipeline.ports.held import Held, unasked
from pipeline.ports.mirror_writes import MirrorStep, MirrorWrite, Recount, Replace, Target
from pipeline.ports.mirrors import MirrorCommit, MirrorSize
from pipeline.proof.sampling import Span
from pipeline.revision import written_as
from pipeline.segment import ENDINGS, UPDATED, SegmentFile, SourceTable
from resources.lake.statement import refuse_columns
from resources.memory.mirrors import evolved, written


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

    def told(self, version: int) -> LakeCommit:
        """As a log would tell it. Without an application it is somebody else's."""
        recorded = {self.app_id: self.txn_version} if self.app_id else {}
        return LakeCommit(version, "WRITE", None, self.user_metadata, recorded)


@dataclass(slots=True)
class MemoryLake:
    """One lake's content: files by absolute path, tables by path relative to the lake.
    `vacuumed`: of a mirror, the first version that is all there."""

    files: dict[str, pa.Table] = field(default_factory=dict)
    tables: dict[str, list[MemoryCommit]] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    structures: dict[str, str] = field(default_factory=dict)
    vacuumed: dict[str, int] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def look(self, folder: str, above: int) -> Look:
        commits = [one.told(at) for at, one in enumerate(self.tables.get(folder, []))]
        base = commits[above] if 0 <= above < len(commits) else None
        newest = len(commits) - 1 if commits else None
        return Look(newest, base, tuple(commits[above + 1 :]))

    def path(self, relative: str) -> str:
        return f"memory:/{relative}"


class MemorySegments:
    """`pipeline.ports.SegmentStore`: a file is a table, its checksum its content's."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        updated: bool = False,
    ) -> MemorySegmentWriter:
        mark = UPDATED if updated else ""
        name = f"batch-{batch:012d}-v{schema_version}-00000{mark}.parquet"
        return MemorySegmentWriter(self._lake, folder, name, schema)

    def open_chunk(
        self, folder: str, *, load: int, chunk: int, schema: pa.Schema
    ) -> MemorySegmentWriter:
        name = f"load-{load:012d}-{chunk:06d}-00000.parquet"
        return MemorySegmentWriter(self._lake, folder, name, schema)

    def damaged(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        return _damaged(self._lake, folder, files)

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        for file in files:
            table = self._lake.files[self._lake.path(f"{folder}/{file.path}")]
            yield table if columns is None else table.select(list(columns))

    def unpacked(self, folder: str, files: Iterable[SegmentFile]) -> int:
        found = (self._lake.files[self._lake.path(f"{folder}/{file.path}")] for file in files)
        return sum(table.nbytes for table in found)

    def discard(self, source: str, batch: int) -> int:
        below = tuple(
            self._lake.path(f"{source}/{folder}/") for folder in ("_changes", *SourceTable)
        )
        gone = [
            path
            for path in self._lake.files
            if path.startswith(below) and f"/batch-{batch:012d}-v" in path
        ]
        for path in gone:
            del self._lake.files[path]
        return len(gone)

    def give_up_uploads(self, source: str) -> None:
        """What was on its way went with its process."""

    def discard_load(self, folder: str, load: int) -> int:
        begin = self._lake.path(f"{folder}/load-{load:012d}-")
        gone = [path for path in self._lake.files if path.startswith(begin)]
        for path in gone:
            del self._lake.files[path]
        return len(gone)

    def bring(self, origin: str, folder: str, files: Iterable[SegmentFile]) -> None:
        for file in files:
            moved = self._lake.files.pop(self._lake.path(f"{origin}/{written_as(file.path)}"), None)
            if moved is not None:
                self._lake.files[self._lake.path(f"{folder}/{file.path}")] = moved

    def clear(self, folder: str) -> None:
        below = self._lake.path(f"{folder}/")
        for path in [path for path in self._lake.files if path.startswith(below)]:
            del self._lake.files[path]

    def remove(self, folder: str, files: Iterable[SegmentFile]) -> None:
        for file in files:
            self._lake.files.pop(self._lake.path(f"{folder}/{file.path}"), None)


class MemorySegmentWriter:
    """`pipeline.ports.SegmentWriter`: one file, however large; others for images that leave
    columns out."""

    def __init__(self, lake: MemoryLake, folder: str, name: str, schema: pa.Schema) -> None:
        self._lake = lake
        self._folder = folder
        self._name = name
        self._schema = schema
        self._tables: list[pa.Table] = []

    def write(self, changes: pa.Table) -> None:
        self._tables.append(changes)

    def cut(self) -> int:
        return len(self._tables)

    def drop(self, files: int) -> None:
        del self._tables[files:]

    def close(self) -> tuple[SegmentFile, ...]:
        found = []
        for more, ending in enumerate(ENDINGS):
            whole = [t for t in self._tables if len(t.schema) == len(self._schema) + more]
            if sum(table.num_rows for table in whole):
                name = self._name.replace(".parquet", ending)
                table = pa.concat_tables(whole)
                self._lake.files[self._lake.path(f"{self._folder}/{name}")] = table
                found.append(SegmentFile(name, table.num_rows, *_print(table)))
        return tuple(found)


class MemoryChangelog:
    """`pipeline.ports.Changelog`."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake

    def recorded(self, folder: str, app_id: str) -> int | None:
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
        held: Held = unasked,
    ) -> Published:
        with self._lake.lock:
            held()
            commits = self._lake.tables.setdefault(folder, [])
            for version, commit in reversed(list(enumerate(commits))):
                if commit.app_id == app_id and commit.txn_version >= batch:
                    _refuse_another(folder, commits, app_id, batch, files, user_metadata)
                    return Published(version, skipped=True)
            others = [commit for commit in commits if commit.app_id != app_id]
            known = len(others) == len(commits) and _names(commits)
            if known and files and all(file.path in known for file in files):
                return Published(len(commits) - 1, skipped=True)
            wrong = _damaged(self._lake, folder, files)
            if wrong:
                raise SegmentsLost(wrong[0], hint="restore them")
            before = commits[-1].rows if commits else schema.empty_table()
            if not joins(before.schema, schema):
                raise TableError("the changelog has other columns", hint="begin another one")
            added = [
                _listed(self._lake.files[self._lake.path(f"{folder}/{file.path}")], schema)
                for file in files
            ]
            rows = pa.concat_tables([before, *added], promote_options="default")
            names = tuple(file.path for file in files)
            commits.append(MemoryCommit(app_id, batch, user_metadata, rows, names))
            return Published(len(commits) - 1, skipped=False)

    def ends_at(self, folder: str, version: int) -> bool:
        return len(self._lake.tables.get(folder, [])) == version + 1

    def listed(self, folder: str) -> dict[str, int] | None:
        commits = self._lake.tables.get(folder)
        return dict.fromkeys(sorted(_names(commits)), 0) if commits else None

    def look(self, folder: str, above: int) -> Look:
        return self._lake.look(folder, above)

    def revise(
        self,
        folder: str,
        *,
        app_id: str,
        revision: int,
        schema: pa.Schema,
        gone: Sequence[str],
        files: Sequence[SegmentFile],
        words: str,
        held: Held = unasked,
    ) -> Published:
        with self._lake.lock:
            held()
            commits = self._lake.tables[folder]
            for version, commit in enumerate(commits):
                if (commit.app_id, commit.txn_version) == (app_id, revision):
                    return Published(version, skipped=True)
            if wrong := _damaged(self._lake, folder, files):
                raise SegmentsLost(wrong[0], hint="restore them")
            names = [file.path for file in files]
            kept = sorted(_names(commits) - set(gone) - set(names))
            before = commits[-1].rows.schema
            if not joins(before, schema):
                raise TableError("the changelog has other columns", hint="begin another one")
            shown = pa.unify_schemas([before, schema])
            tables = [
                _listed(self._lake.files[self._lake.path(f"{folder}/{name}")], shown)
                for name in (*kept, *names)
                if self._lake.path(f"{folder}/{name}") in self._lake.files
            ]
            rows = pa.concat_tables([shown.empty_table(), *tables], promote_options="default")
            files_now = (*kept, *names)
            commits.append(MemoryCommit(app_id, revision, words, rows, files_now, restates=True))
            return Published(len(commits) - 1, skipped=False)

    def restate(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        files: Sequence[SegmentFile],
        words: str,
        held: Held = unasked,
    ) -> Restated:
        with self._lake.lock:
            held()
            commits = self._lake.tables.get(folder)
            if not commits:
                return Restated(None, lost=tuple(file.path for file in files))
            listed = _names(commits)
            lost = {one.path for one in files if _damaged(self._lake, folder, [one])}
            wanted = [one.path for one in files if one.path in listed or one.path not in lost]
            schema = commits[-1].rows.schema
            found = [
                _listed(self._lake.files[self._lake.path(f"{folder}/{name}")], schema)
                for name in wanted
            ]
            rows = pa.concat_tables([schema.empty_table(), *found], promote_options="default")
            commits.append(MemoryCommit(app_id, batch, words, rows, tuple(wanted), True))
            gone, back = listed - set(wanted), set(wanted) - listed
            return Restated(
                len(commits) - 1, len(gone), len(back), tuple(sorted(lost - set(wanted)))
            )


class MemoryMirrors:
    """`pipeline.ports.Mirrors`."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake
        self._staged = 0

    @property
    def client(self) -> UUID | None:
        return None

    def end_statements(self, client: UUID) -> None:
        """There are none."""

    def require_ready(self) -> None:
        """There is nothing that could be missing."""

    def prepare(self) -> None:
        """There is nothing to start."""

    def recorded(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
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

    def write(self, write: MirrorWrite, held: Held = unasked) -> MirrorCommit:
        target = write.target
        with self._lake.lock:
            held()
            done = self.recorded(target.mirror, target.app_id, target.txn_version)
            if done is not None and not same_write(done.user_metadata, target.user_metadata):
                raise ForeignCommit(f"{target.mirror} holds another's commit", hint="compare them")
            if done is not None:
                return done
            refuse_columns(target.schema.names)
            commits = self._lake.tables.setdefault(target.mirror, [])
            before = commits[-1].rows if commits else None
            if before is not None and not isinstance(write, Replace | Recount):
                _refuse_other_columns(before, target)
            rows = written(self._lake.files, before, write)
            of = commits[0].readers if commits else target.readers
            commits.append(
                MemoryCommit(
                    target.app_id, target.txn_version, target.user_metadata, rows, readers=of
                )
            )
            made = self.recorded(target.mirror, target.app_id, target.txn_version)
            assert made is not None
            return made

    def retention(self, mirror: str) -> Retention | None:
        return Retention.promising(KEEP) if self._lake.tables.get(mirror) else None

    def made_for(self, mirror: str) -> Readers | None:
        commits = self._lake.tables.get(mirror)
        return Readers(commits[0].readers) if commits and commits[0].readers else None

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        rows = self._lake.tables[mirror][version].rows
        return MirrorSize(rows.num_rows, 1, rows.nbytes)

    def ends_at(self, mirror: str, version: int) -> bool:
        return self.version(mirror) == version

    def look(self, mirror: str, above: int) -> Look:
        return self._lake.look(mirror, above)

    def evolve(
        self,
        mirror: str,
        steps: Sequence[MirrorStep],
        *,
        app_id: str,
        txn_version: int,
        after: int,
        told: str = "",
        held: Held = unasked,
    ) -> tuple[MirrorCommit, ...]:
        with self._lake.lock:
            held()
            commits = self._lake.tables[mirror]
            found = []
            for number, step in enumerate(steps, start=1):
                name = {"app_id": app_id, "txn_version": txn_version, "step": number}
                does = restamped(told, WriteKind.ALTER, **name, does=str(step))
                done = [
                    MirrorCommit(version, commit.user_metadata)
                    for version, commit in enumerate(commits)
                    if version > after
                    and name.items() <= (said_of(commit.user_metadata) or {}).items()
                ]
                if done and (said_of(done[0].user_metadata) or {})["does"] != str(step):
                    raise ForeignCommit(f"{mirror}: {done[0].user_metadata}", hint="compare them")
                if not done:
                    rows = evolved(commits[-1].rows, step)
                    commits.append(MemoryCommit(f"{app_id}/evolve", txn_version, does, rows))
                    done = [MirrorCommit(len(commits) - 1, does)]
                found.append(done[0])
            return tuple(found)

    def history(self, folder: str) -> Iterator[LakeCommit]:
        yield from reversed(self._lake.look(folder, -1).commits)

    def lacking(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        commits = self._lake.tables.get(mirror, [])
        if version >= len(commits):
            return "there is no such version"
        if version < self._lake.vacuumed.get(mirror, 0):
            return "its files were deleted, as VACUUM does"
        if table_id is not None and table_id != _made(mirror, commits):
            return "another table was made in its folder since"
        said = said_of(commits[version].user_metadata) or {}
        later = batch is not None and max(said.get("batches", [0])) > batch
        return "the version was made a second time" if later else None

    def restore(self, mirror: str, version: int, said: str, held: Held = unasked) -> int:
        with self._lake.lock:
            held()
            commits = self._lake.tables[mirror]
            commits.append(MemoryCommit("", 0, said, commits[version].rows))
            return len(commits) - 1

    def schema(self, mirror: str, version: int) -> pa.Schema:
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

    def remove(self, mirror: str, held: Held = unasked) -> None:
        held()
        self._lake.tables.pop(mirror, None)

    def rows(self, mirror: str, columns: Sequence[str], version: int) -> Iterator[pa.RecordBatch]:
        table: pa.Table = self._lake.tables[mirror][version].rows
        yield from table.select(list(columns)).to_batches()

    def rows_near(
        self,
        mirror: str,
        columns: Sequence[str],
        version: int,
        column: str,
        spans: Sequence[Span],
    ) -> Iterator[pa.RecordBatch]:
        yield from self.rows(mirror, columns, version)


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
            if same_write(commit.user_metadata, user_metadata) and same_files(
                commit.user_metadata, commit.files, names
            ):
                return
    raise ForeignCommit(f"{folder} has batch {batch} with other files", hint="compare them")


def _refuse_other_columns(before: pa.Table, target: Target) -> None:
    shown = [DELETED_AT] if target.soft else []
    have = {field.name: field.type for field in before.schema}
    if have != {field.name: field.type for field in [*target.schema, *shown]}:
        raise TableError("the lake's table has other columns", hint="evolve it first")


def _listed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Without columns that only the file has."""
    return table.select([name for name in table.column_names if name in schema.names])


def _names(commits: Sequence[MemoryCommit]) -> set[str]:
    """The files that a changelog lists: what was restated last, and what came since."""
    found: set[str] = set()
    for commit in commits:
        found = set(commit.files) if commit.restates else found | set(commit.files)
    return found


def _print(table: pa.Table) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a table's content."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content = sink.getvalue()
    return content.size, hashlib.sha256(content).hexdigest()


def _damaged(lake: MemoryLake, folder: str, files: Iterable[SegmentFile]) -> list[str]:
    found = []
    for file in files:
        path = lake.path(f"{folder}/{file.path}")
        table = lake.files.get(path)
        if table is None:
            found.append(f"{path} is missing")
        elif _print(table) != (file.size, file.sha256):
            found.append(f"{path} has another checksum than when it was written")
    return found


def _made(mirror: str, commits: Sequence[MemoryCommit]) -> str:
    """Which table is in the folder."""
    return f"{mirror} by {commits[0].app_id}, {commits[0].txn_version}"
