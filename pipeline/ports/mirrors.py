"""Mirrors: Delta tables that are kept equal to tables of the source; their upkeep; and tables that
are built in a temporary place and appear in theirs complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias
from uuid import UUID

import pyarrow as pa

from lockstep.pipeline.model.lake_commit import LakeCommit, LogAbove
from lockstep.pipeline.ports.held import RequireHeld, no_check
from lockstep.pipeline.ports.mirror_writes import MirrorStep, MirrorWrite
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.upkeep.decide import FileTotal, MirrorFiles, UpkeepStep
from lockstep.pipeline.values.policies import Readers, Retention


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """A commit read back from a mirror's log. `scale`: the number of rows for which it was made,
    in words; "" if an earlier try made it. `table_id`: the `metaData.id` of its Delta table; None
    if nobody asked."""

    delta_version: int
    user_metadata: str
    scale: str = field(default="", compare=False)
    table_id: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MirrorSize:
    """A version of a mirror: rows that a reader sees, data files, their bytes. `rows` is None
    if counting them would take long."""

    rows: int | None
    files: int
    size: int


Near: TypeAlias = tuple[str, Sequence[ValueRange]]
"""A column of whole numbers or text, and the spans in one of which its value lies."""


class Mirrors(Protocol):
    """Mirror Delta tables, written by Spark, read back without it.

    `write` and `evolve` read the newest version, then call `held`, and commit directly after that
    version or not at all: `CommitConflict` if somebody else committed."""

    @property
    def client(self) -> UUID | None:
        """The id of this process at a Spark server, which continues a statement after its client
        died; None if statements end with this process."""

    def end_statements(self, client: UUID) -> None:
        """End a client's statements at the server, and refuse its later ones."""

    def require_ready(self) -> None:
        """Raise what would keep Spark from starting (`JavaMissing`, `SetupIncomplete`),
        without starting it."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin to start Spark in the background; repeating it changes nothing. `log_bytes`: the
        amount of log that this process will write, as far as it is known; a local Spark is sized
        for it."""

    def recorded(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        """Return the commit that recorded (app_id, txn_version), from the table's log, without a
        JVM; None if there is none. `ForeignCommit` if only a higher version is recorded."""

    def write(self, write: MirrorWrite, held: RequireHeld = no_check) -> MirrorCommit:
        """Apply the write once: create the mirror if necessary, commit with txnAppId/txnVersion
        and userMetadata, read the commit back and require that it is this one. Several threads may
        call it for different mirrors. A transaction that is already recorded is not applied again;
        its commit is returned."""

    def evolve(
        self,
        mirror: str,
        steps: Sequence[MirrorStep],
        *,
        app_id: str,
        txn_version: int,
        after: int,
        told: str = "",
        held: RequireHeld = no_check,
    ) -> tuple[MirrorCommit, ...]:
        """Carry the steps out in order, one commit each, and return the commits. Their userMetadata
        has the application, the transaction and the step's number, and the metadata of the write
        that they belong to (`told`).

        A step is done if and only if a commit after Delta version `after` says so, never because
        the columns look right. `ForeignCommit` if that commit did something else: the steps of a
        transaction are the same at every try. `CommitConflict` as in `write`. `Fill` and `Rewrite`
        also record (`<app_id>/evolve`, txn_version)."""

    def history(self, folder: str) -> Iterator[LakeCommit]:
        """Yield the commits of any Delta table's log, newest first, as far as its files reach;
        nothing if there is no table."""

    def lacking(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        """Return why that version cannot be read any more; None if all of it exists. A version of
        another Delta table than `table_id`, or one that shows a later batch than `batch`, cannot be
        read either."""

    def restore(self, mirror: str, version: int, said: str, held: RequireHeld = no_check) -> int:
        """Set the mirror back to that version in one commit with the metadata `said`, which moves
        no row, and return its Delta version. `CommitConflict` as in `write`; `TableError` if the
        version cannot be restored."""

    def cut(
        self,
        mirror: str,
        version: int,
        said: str,
        noted: Callable[[int], None],
        held: RequireHeld = no_check,
    ) -> None:
        """Make an empty commit directly after a version, with the metadata `said`, and call `noted`
        with its version; then delete all earlier versions, rows and log alike. Writes that were
        planned before that commit fail, and what others write after it stays. Repeating it makes
        another such commit. `CommitConflict` as in `write`; `held` is also called before files are
        deleted."""

    def remove(self, mirror: str, held: RequireHeld = no_check) -> None:
        """Delete the mirror with all its versions, also after an interrupted try; a missing mirror
        is no error. Only the mirror that existed when `held` was called is deleted, never one that
        was created in its place."""

    def schema(self, mirror: str, version: int) -> pa.Schema:
        """Return the mirror's columns at a Delta version, in its order, without a JVM;
        `_deleted_at` included if it exists."""

    def stage(self, name: str, changes: pa.Table) -> str:
        """Write folded changes to a staging file, and return its absolute path."""

    def unstage(self, path: str) -> None:
        """Delete a staging file; a missing one is no error."""

    def path(self, relative: str) -> str:
        """Return the absolute path of a path in the lake."""

    def version(self, mirror: str) -> int | None:
        """Return the mirror's newest Delta version; None if there is no table."""

    def retention(self, mirror: str) -> Retention | None:
        """Return how long the mirror's versions stay, by its properties; None if there is no table,
        or the properties are not understood."""

    def made_for(self, mirror: str) -> Readers | None:
        """Return the readers for which the mirror was made, by its newest version; None if there is
        no table, or its properties do not say."""

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        """Return a version's size from its log, without a JVM; None if the log does not have it."""

    def moved(self, looked: Mapping[str, int]) -> frozenset[str]:
        """Return the mirrors whose newest version is not the one in `looked`. This checks two file
        names of each, whatever the log's length."""

    def look(self, mirror: str, above: int) -> LogAbove:
        """Read the mirror's log above a version: that version's commit, and those since then."""

    def rows(
        self, mirror: str, columns: Sequence[str], version: int, near: Near | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the mirror at a version, or at least those that are `near`. Deletion
        vectors are honoured; only a mirror with widened columns needs a JVM."""


class Copies(Protocol):
    """Temporary places for tables. If a context fails or its process is killed, nothing of the
    place stays."""

    def begun(self, name: str, into: str) -> AbstractContextManager[Mirrors]:
        """Return the port that writes and reads tables there, by any name; its `path` still answers
        for the lake's own files, from which the tables are built. `into`: the absolute path to
        which the table `name` moves when the context ends, atomically and durably, creating the
        folder above it. `ConfigurationError` if that path exists, or exists by then."""


class MirrorUpkeep(Protocol):
    """The upkeep of mirrors, which are paths relative to the lake."""

    @property
    def keep(self) -> timedelta:
        """The time for which each version of a mirror stays readable."""

    def files(self, mirror: str) -> MirrorFiles:
        """Return the files of the newest version, and those left of older ones; starts no JVM."""

    def commit(self, mirror: str, version: int) -> LakeCommit | None:
        """Return a commit; None if the log has no file of it."""

    def carry_out(self, mirror: str, step: UpkeepStep, said: str, above: int) -> int | None:
        """Carry out a step that commits, and return the new Delta version; None if there was
        nothing to do. The commit has the metadata `said` and directly follows version `above`:
        `CommitConflict` if somebody else has committed since."""

    def thin_log(self, folder: str, now: datetime, *, delete: bool) -> FileTotal:
        """Return the checkpoints of a table's log that later ones replace, none without a table;
        with `delete`, delete them."""

    def vacuum(self, mirror: str) -> FileTotal:
        """Delete the files that no version needs which was current within the time `keep`, and
        return what was deleted. Repeating it continues an interrupted one."""
