"""Publishing segments in a changelog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pipeline.lake_commit import LogAbove
from pipeline.ports.held import Held, unasked
from pipeline.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class Published:
    """A changelog's Delta version after publishing; `skipped` when the batch was there."""

    delta_version: int
    skipped: bool


@dataclass(frozen=True, slots=True)
class Restated:
    """What a changelog was told anew: files that it lists no more, files that it lists again,
    and those that nobody has. `delta_version`: None where there is no table."""

    delta_version: int | None
    removed: int = 0
    added: int = 0
    lost: tuple[str, ...] = ()


def is_revised(listed: Collection[str], gone: Iterable[str], files: Iterable[SegmentFile]) -> bool:
    """Whether a table that lists these files shows `files` and none that is `gone`."""
    names = {file.path for file in files}
    return names.issubset(listed) and names.issuperset(set(gone).intersection(listed))


class Changelog(Protocol):
    """Changelogs and the source's own tables, as Delta tables; only metadata commits, no data
    moves, no JVM."""

    def recorded(self, folder: str, app_id: str) -> int | None:
        """The newest batch published under `app_id`; None before the first."""

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
        """Add the files as application transaction (app_id, batch); creates the table
        at its first batch, and adds the columns of `schema` that it lacks (a commit before).
        `TableError` for a column of another type: see `changes.generations`. A recorded
        version ≥ batch means that it was done and is skipped, if the commit that did it has
        these files and says the same; else `ForeignCommit`. `held` is asked once the log was
        read; a commit that somebody made since is read again and retried, then
        `CommitConflict`."""

    def ends_at(self, folder: str, version: int) -> bool:
        """As for mirrors: whether that is the newest version."""

    def listed(self, folder: str) -> dict[str, int] | None:
        """The files that the table lists, each with its size in bytes; None where there is no
        table."""

    def look(self, folder: str, above: int) -> LogAbove:
        """As for mirrors: the log above a version."""

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
        """In one commit, the application transaction (app_id, revision), the table shows `files`
        and no longer those that are `gone`, whatever it showed of either; all others stay. Adds
        the columns of `schema` that it lacks (a commit before). Skipped where it shows that
        already (`is_revised`), whatever number is recorded: that of a ledger which was restored
        may have been given before. `SegmentsLost` unless each of the files is there as it was
        recorded. `held` and `CommitConflict` as for `publish`."""

    def restore(
        self,
        folder: str,
        version: int,
        *,
        app_id: str,
        number: int,
        words: str,
        held: Held = unasked,
    ) -> int:
        """The table shows an earlier version again, with its columns, its properties and what it
        asks of readers, as its application transaction (app_id, number); the version that does.
        `TableError` where the log or the files do not reach back to it. `held` and
        `CommitConflict` as for `publish`."""

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
        """The table lists these files and no others, as its application transaction
        (app_id, batch); files that are not there as they were recorded are left out. Where
        there is no table, none is made. `held` as for `publish`; `CommitConflict` where
        somebody else committed meanwhile."""
