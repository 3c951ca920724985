"""Mirrors: Delta tables that hold what the source holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from uuid import UUID

import pyarrow as pa

from pipeline.keeping import Retention
from pipeline.lake_commit import LakeCommit, LogAbove
from pipeline.policies import Readers
from pipeline.ports.held import Held, unasked
from pipeline.ports.mirror_writes import MirrorStep, MirrorWrite
from pipeline.proof.sampling import ValueRange


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """A commit read back from a mirror's log. `scale`: for how many rows it was made, in words;
    "" where an earlier try had made it. `table_id`: of the Delta table that it is a version of,
    its `metaData.id`; None where nobody asked."""

    delta_version: int
    user_metadata: str
    scale: str = field(default="", compare=False)
    table_id: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MirrorSize:
    """A version of a mirror: rows that a reader sees, data files, their bytes. `rows` is None
    where counting them would take long."""

    rows: int | None
    files: int
    size: int


Near: TypeAlias = tuple[str, Sequence[ValueRange]]
"""A column of whole numbers or text, and the spans in one of which its value lies."""


class Mirrors(Protocol):
    """Mirror Delta tables, written by Spark, read back without it.

    `write` and `evolve` read the newest version there is, then ask `held`, and commit directly
    behind that version or not at all: `CommitConflict` where somebody else did."""

    @property
    def client(self) -> UUID | None:
        """Who asks a server of Spark's, which goes on with a statement when who asked is dead; None
        where statements end with this process."""

    def end_statements(self, client: UUID) -> None:
        """What a client asked for ends at the server, and it gets nothing there any more."""

    def require_ready(self) -> None:
        """Raise what would keep Spark from starting (`JavaMissing`, `SetupIncomplete`),
        without starting it."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin starting Spark in the background; repeating it changes nothing. `log_bytes`: from
        how much of the log this process will write, as far as it is known: a Spark of our own is
        started for that."""

    def recorded(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        """The commit that recorded (app_id, txn_version), from the table's log, no JVM;
        None if there is none. A higher recorded version without ours is
        `ForeignCommit`."""

    def write(self, write: MirrorWrite, held: Held = unasked) -> MirrorCommit:
        """Apply the write once: create the mirror if need be, commit with
        txnAppId/txnVersion and userMetadata, read the commit back and require it to be
        ours. Safe to call from several threads for different mirrors. A transaction
        already recorded is not applied again; the commit that recorded it is returned."""

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
        """Carry the steps out in their order, a commit each, whose userMetadata names it
        by application, transaction and number, besides what the write says that they belong
        to (`told`); the commits.

        A step is done iff a commit behind Delta version `after` says so, never because the
        columns look right. `ForeignCommit` where that commit did something else: the steps
        of a transaction are the same at every try. `CommitConflict` as in `write`. `Fill`
        and `Rewrite` record (`<app_id>/evolve`, txn_version) besides."""

    def history(self, folder: str) -> Iterator[LakeCommit]:
        """The commits of any Delta table's log, newest first, as far as its files reach; nothing
        where there is no table."""

    def lacking(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        """Why that version cannot be read any more; None where all of it is there. So is one of
        another Delta table than `table_id`, or that shows something behind `batch`."""

    def restore(self, mirror: str, version: int, said: str, held: Held = unasked) -> int:
        """The mirror shows that version once more, in one commit, which moves no row and says
        that; its Delta version. `CommitConflict` as in `write`, `TableError` where it cannot
        be."""

    def cut(
        self,
        mirror: str,
        version: int,
        said: str,
        noted: Callable[[int], None],
        held: Held = unasked,
    ) -> None:
        """Make an empty commit directly after a version, with `said` as its words, and hand `noted`
        its version; then let nothing be left of the versions before it, neither rows nor what the
        log said of them. Whatever was planned before that commit can be committed no more, and what
        others write from then on stays. Repeating it makes another such commit. `CommitConflict` as
        in `write`; `held` is also asked before files go."""

    def remove(self, mirror: str, held: Held = unasked) -> None:
        """The mirror is gone when this returns, with all its versions; also where an earlier
        try was cut off. None there is no error. It is the one that was there when `held` was
        asked, never one that was made in its place."""

    def schema(self, mirror: str, version: int) -> pa.Schema:
        """The mirror's columns at a Delta version, in its order, no JVM; `_deleted_at`
        included where there is one."""

    def stage(self, name: str, changes: pa.Table) -> str:
        """Write folded changes to a staging file; its absolute path."""

    def unstage(self, path: str) -> None:
        """Delete a staging file; missing is no error."""

    def path(self, relative: str) -> str:
        """A lake path as an absolute one."""

    def version(self, mirror: str) -> int | None:
        """The mirror's newest Delta version; None where there is no table."""

    def retention(self, mirror: str) -> Retention | None:
        """How long the mirror's versions stay, by its properties; None where there is no table,
        or they are not understood."""

    def made_for(self, mirror: str) -> Readers | None:
        """Whom the mirror was made for, by its newest version; None where there is no table, or
        neither was ever said of it."""

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        """By the version's log, no JVM; None where it does not tell."""

    def moved(self, looked: Mapping[str, int]) -> frozenset[str]:
        """Of mirrors with the version at which each was looked at, those that do not end there, as
        far as two file names tell, whatever the log's length."""

    def look(self, mirror: str, above: int) -> LogAbove:
        """The mirror's log above a version: reads the commits since then, and the version's."""

    def rows(
        self, mirror: str, columns: Sequence[str], version: int, near: Near | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All rows of the mirror at a version, or at least those that are `near`, deletion vectors
        honoured; no JVM, except for a mirror with widened columns."""
