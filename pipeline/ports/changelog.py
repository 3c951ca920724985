"""Publishing segments in a changelog.

Belongs here: the port to changelog tables. Does not: mirrors (`ports.mirrors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pipeline.ports.held import Held, unasked
from pipeline.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class Published:
    """A changelog's Delta version after publishing; `skipped` when the batch was there."""

    delta_version: int
    skipped: bool


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
        version ≥ batch means it was done: skipped. `held` is asked once the log was read; a
        commit that somebody made since is read again and retried, then `CommitConflict`."""
