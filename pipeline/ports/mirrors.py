"""Ports to mirrors: Delta tables that are kept equal to tables of the source. `Mirrors`
writes and reads them, `MirrorUpkeep` compacts them and deletes old files, and `Copies`
builds a table in a temporary place, from which it moves to its own place atomically."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias
from uuid import UUID

import pyarrow as pa

from lockstep.pipeline.model.lake_commit import LakeCommit, LogSince
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.ports.mirror_writes import MirrorStep, MirrorWrite
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.upkeep.decide import FileTotal, MirrorFiles, UpkeepStep
from lockstep.pipeline.values.policies import Readers
from lockstep.pipeline.values.retention import Retention


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """A commit read back from a mirror's log. `scale_reason`: why the write was carried
    out as one of few rows or as one of many, in words; "" if an earlier try made the
    commit. `table_id`: the `metaData.id` of its Delta table, or None if it was not
    read."""

    delta_version: int
    user_metadata: str
    scale_reason: str = field(default="", compare=False)
    table_id: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MirrorSize:
    """The size of a version of a mirror. `row_count`: number of rows that a reader
    sees; None if counting them would take long. `file_count`, `byte_count`: number and
    bytes of its data files."""

    row_count: int | None
    file_count: int
    byte_count: int


ColumnRanges: TypeAlias = tuple[str, Sequence[ValueRange]]
"""A condition on rows: a column (of whole numbers or text) has a value in one of these
ranges."""


class Mirrors(Protocol):
    """Mirrors, which Spark writes; most methods that read need no Spark.

    A method that commits reads the newest version, then calls `require_held`, and
    commits directly after that version. If another writer has committed in between, it
    raises `CommitConflict`. Mirrors are paths relative to the lake."""

    @property
    def client_id(self) -> UUID | None:
        """The id of this process at a Spark Connect server, or None without one. Such a
        server continues a statement after its client died, so the next run must end
        it."""

    def end_statements(self, client_id: UUID) -> None:
        """End a client's statements at the server, and refuse its later ones."""

    def require_ready(self) -> None:
        """Raise `JavaMissing` or `SetupIncomplete` if Spark cannot start; does not
        start it."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin to start Spark in the background; repeating it changes nothing.
        `log_bytes`: the size of the log whose changes this process will write, as far
        as it is known; if it is large, a local Spark uses Java's compiler C2."""

    def find_commit(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        """Return the commit with the `txn` action (app_id, txn_version), read from the
        table's log without a JVM, or None. Raise `ForeignCommit` if only a higher
        version is recorded."""

    def write(self, write: MirrorWrite, require_held: RequireHeld = no_check) -> MirrorCommit:
        """Apply the write exactly once: create the mirror if necessary, commit with
        txnAppId/txnVersion and userMetadata, read the commit back, and check that it is
        this one. If the transaction is already recorded, do not apply it again, but
        return its commit. Several threads may call it for different mirrors."""

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
        """Carry the steps out in order, one commit each, and return the commits. Their
        userMetadata has the application, the transaction, the step's number, and
        `write_metadata`: the metadata of the write to which the steps belong.

        A step counts as done only if a commit after `after_version` names it; the
        present columns prove nothing. The steps of a transaction are the same at every
        try, so raise `ForeignCommit` if that commit did something else. `Fill` and
        `Rewrite` also have the `txn` action (`<app_id>/evolve`, txn_version)."""

    def history(self, folder: str) -> Iterator[LakeCommit]:
        """Yield the commits of any Delta table's log, newest first, as far as its files
        reach; nothing if there is no table."""

    def reason_unreadable(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        """Return why that version cannot be read any more, or None if its log and files
        exist. A version of another Delta table than `table_id` is unreadable, too, and
        so is one that has changes of a batch after `batch`. Raise `LakeUnavailable` if
        the storage fails."""

    def restore(
        self, mirror: str, version: int, user_metadata: str, require_held: RequireHeld = no_check
    ) -> int:
        """Set the mirror back to that version in one commit, which copies no data, and
        return the new Delta version. Raise `TableError` if the version cannot be
        restored."""

    def delete_history(
        self,
        mirror: str,
        version: int,
        user_metadata: str,
        on_commit: Callable[[int], None],
        require_held: RequireHeld = no_check,
    ) -> None:
        """Make all versions up to `version`, the newest one, unreadable; the mirror
        keeps its rows. First make an empty commit directly after it, with this
        metadata, and call `on_commit` with the number of that commit; then delete the
        log before it, and the data files that it does not need. Writes that were
        planned before the commit fail; later ones stay. Repeating it makes another such
        commit. `require_held` is also called before files are deleted."""

    def remove(self, mirror: str, require_held: RequireHeld = no_check) -> None:
        """Delete the mirror with all its versions; it may be repeated after an
        interruption, and a missing mirror is no error. A mirror that is created in its
        place after `require_held` was called is not deleted."""

    def schema(self, mirror: str, version: int) -> pa.Schema:
        """Return the mirror's columns at a Delta version, in their order, including
        `_deleted_at` if it exists; needs no JVM."""

    def stage(self, name: str, changes: pa.Table) -> str:
        """Write folded changes to a staging file, and return its absolute path."""

    def unstage(self, path: str) -> None:
        """Delete a staging file; a missing one is no error."""

    def path(self, relative: str) -> str:
        """Return the absolute path of a path in the lake."""

    def version(self, mirror: str) -> int | None:
        """Return the mirror's newest Delta version; None if there is no table."""

    def retention(self, mirror: str) -> Retention | None:
        """Return the time for which the mirror's properties keep its versions, or None
        if there is no table or the properties cannot be parsed."""

    def readers(self, mirror: str) -> Readers | None:
        """Return the readers for which the mirror was made, by its newest version; None
        if there is no table, or its properties do not say."""

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        """Return a version's size from its log, without a JVM; None if the log does not
        have it."""

    def changed_since(self, examined_versions: Mapping[str, int]) -> frozenset[str]:
        """Return the mirrors, or changelogs, whose newest version is not the one in
        `examined_versions`. Each lookup asks for two file names, however long the log
        is."""

    def log_since(self, mirror: str, version: int) -> LogSince:
        """Return the commit of the version and all commits after it."""

    def rows(
        self,
        mirror: str,
        columns: Sequence[str],
        version: int,
        column_ranges: ColumnRanges | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the mirror at a version. With `column_ranges`, rows that do
        not fulfil that condition may be left out. Deletion vectors are applied; only a
        mirror with widened columns needs a JVM."""


class Copies(Protocol):
    """Temporary places in which tables are built. If a context fails or its process is
    killed, its files are deleted."""

    def build(self, name: str, target: str) -> AbstractContextManager[Mirrors]:
        """Return a context with a port that writes and reads tables in a temporary
        place, by any name. Its method `path` still returns paths of the lake, from
        whose files the tables are built. When the context ends, the table `name` moves
        to the absolute path `target`, atomically and durably; missing folders above it
        are created. Raise `ConfigurationError` if that path exists at the beginning or
        at the end."""


class MirrorUpkeep(Protocol):
    """The upkeep of mirrors, which are paths relative to the lake."""

    @property
    def keep(self) -> timedelta:
        """The time for which each version of a mirror stays readable."""

    def files(self, mirror: str) -> MirrorFiles:
        """Return the files of the newest version, and files left by older ones; needs
        no JVM."""

    def carry_out(
        self, mirror: str, step: UpkeepStep, user_metadata: str, after_version: int
    ) -> int | None:
        """Carry out a step that commits, and return the new Delta version, or None if
        there was nothing to do. The commit has this metadata and directly follows
        `after_version`. Raise `CommitConflict` if another writer has committed
        since."""

    def thin_log(self, folder: str, now: datetime, *, delete: bool) -> FileTotal:
        """Return the number and size of a log's checkpoints that later checkpoints
        replace; with `delete`, delete them. A missing table has none."""

    def vacuum(self, mirror: str) -> FileTotal:
        """Delete the files of versions that were replaced longer ago than `keep`, and
        return their number and size. Repeat it after an interruption."""
