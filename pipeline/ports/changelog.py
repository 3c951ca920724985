"""Changelogs as Delta tables: publishing, revising and restoring them; and the folder of a source,
which says which ledger it belongs to, and has the structures that commits name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lockstep.pipeline.model.claim import Claim, Unclaimed
from lockstep.pipeline.model.lake_commit import LogAbove
from lockstep.pipeline.ports.held import RequireHeld, no_check
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class Published:
    """A changelog's Delta version after publishing; `skipped` if it had the batch already."""

    delta_version: int
    skipped: bool


@dataclass(frozen=True, slots=True)
class Restated:
    """The result of `restate`: numbers of files that the changelog no longer lists and lists again,
    and the files that are missing. `delta_version`: None if there is no table."""

    delta_version: int | None
    removed: int = 0
    added: int = 0
    lost: tuple[str, ...] = ()


def is_revised(listed: Collection[str], gone: Iterable[str], files: Iterable[SegmentFile]) -> bool:
    """Return whether a table that lists these files lists `files` and none that is `gone`."""
    names = {file.path for file in files}
    return names.issubset(listed) and names.issuperset(set(gone).intersection(listed))


class Changelog(Protocol):
    """Changelogs and the source's own tables, as Delta tables; only metadata commits, no data
    moves, no JVM."""

    def recorded(self, folder: str, app_id: str) -> int | None:
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
        held: RequireHeld = no_check,
    ) -> Published:
        """Add the files as application transaction (app_id, batch). Create the table at its first
        batch, and add the columns of `schema` that it lacks in a commit before. `TableError` for a
        column of another type: see `mirror.generations`. A recorded version ≥ batch means that the
        batch was published: it is skipped if that commit has these files and the same metadata,
        else `ForeignCommit`. `held` is called once the log was read; if somebody else has committed
        since, the log is read and tried again, and in the end `CommitConflict`."""

    def ends_at(self, folder: str, version: int) -> bool:
        """Return whether that is the newest version, as for mirrors."""

    def listed(self, folder: str) -> dict[str, int] | None:
        """Return the files that the table lists, each with its size in bytes; None if there is no
        table."""

    def look(self, folder: str, above: int) -> LogAbove:
        """Return the log above a version, as for mirrors."""

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
        held: RequireHeld = no_check,
    ) -> Published:
        """List `files` and no longer those that are `gone`, whichever of them the table lists, in
        one commit, the application transaction (app_id, revision); all other files stay. Add the
        columns of `schema` that the table lacks in a commit before. Skipped if the table lists that
        already (`is_revised`), whatever number is recorded: a ledger that was restored from a
        backup may give a number twice. `SegmentsLost` unless each file exists as recorded. `held`
        and `CommitConflict` as for `publish`."""

    def restore(
        self,
        folder: str,
        version: int,
        *,
        app_id: str,
        number: int,
        words: str,
        held: RequireHeld = no_check,
    ) -> int:
        """Set the table back to an earlier version, with its columns, properties and reader
        features, as application transaction (app_id, number), and return the new version.
        `TableError` if the log or the files do not reach back to it. `held` and `CommitConflict`
        as for `publish`."""

    def restate(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        files: Sequence[SegmentFile],
        words: str,
        held: RequireHeld = no_check,
    ) -> Restated:
        """List these files and no others, as application transaction (app_id, batch); files that do
        not exist as recorded are left out. If there is no table, none is created. `held` as for
        `publish`; `CommitConflict` if somebody else committed meanwhile."""


class Claims(Protocol):
    """What the folders of sources say of themselves."""

    def read(self, source: str) -> Claim | Unclaimed:
        """Return the claim in a source's folder."""

    def write(self, claim: Claim) -> None:
        """Write the claim durably and atomically; create the folder."""

    def tables(self, source: str) -> list[str]:
        """Return the folders of all Delta tables of a source, relative to the lake."""

    def move_away(self, folder: str, name: str) -> str:
        """Move a folder of the lake to `_before/<name>/<folder>` and return that path, relative to
        the lake. A folder that does not exist is no error."""

    def keep_structures(self, source: str, structures: Sequence[TableSchema]) -> str:
        """Keep structures durably, and return the key by which commits name them
        (`lake_commit.structures_key`). A key that exists keeps what it has."""

    def structures(self, source: str, key: str) -> list[TableSchema] | None:
        """Return what is kept under a key; None if it is missing or cannot be read."""

    def clear_structures(self, source: str, cleared: Callable[[TableSchema], TableSchema]) -> None:
        """Replace each kept structure by `cleared` of it, under the key it had."""
