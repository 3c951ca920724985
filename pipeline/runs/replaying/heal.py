"""A mirror held against its changelog: keys that a span touched show their newest change.

Belongs here: one table's comparison and the write of what it finds, told as one answer. Does not:
what is compared (`mirror_comparison`), committing (`mirror_commit`), the changelog's files
(`revise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Batch
from pipeline.changes.key_bounds import bounds_literals, key_bounds
from pipeline.changes.layout import changelog_names
from pipeline.decisions import Lease
from pipeline.errors import MirrorRefused, TableError
from pipeline.lake_commit import WriteKind
from pipeline.ports.mirror_writes import FoldedChanges, Merge
from pipeline.replay.rows import ReplayDifference
from pipeline.runs.context import Workplace
from pipeline.runs.cures import reload_hint
from pipeline.runs.replaying.mirror_commit import MirrorCommitting
from pipeline.runs.replaying.mirror_comparison import MirrorComparison
from pipeline.runs.replaying.segments_found import Details, SegmentFound
from pipeline.runs.replaying.settle import settle_writes
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Healed:
    """One table's mirror: how many of the keys that were looked at it showed otherwise, some of
    those, and the Delta version that shows them right; None where nothing was written.
    `not_compared`, `hint`: why it was not looked at, and what to do."""

    json_keys: ClassVar = ("keys", "wrong", "delta_version", "not_compared", "hint", "rows")

    table: TableName
    keys: int = 0
    wrong: int = 0
    delta_version: int | None = None
    not_compared: str | None = None
    hint: str | None = None
    rows: tuple[ReplayDifference, ...] = ()


def heal(
    work: Workplace,
    lease: Lease,
    table: TableName,
    span: Sequence[Batch],
    *,
    fresh: Sequence[SegmentFound] = (),
    details: Details | None = None,
) -> Healed:
    """Compare the keys that these batches touched with the mirror, and write those that it shows
    otherwise; or, with `details`, only tell of them. `fresh`: segments whose files are in the
    scratch folder still. What concerns the table alone is told and never raised."""
    try:
        with for_one_table("compare its rows"):
            replaced = [segment for segment in fresh if segment.replaced]
            mirror = MirrorComparison.of(work, table, span, replaced)
            if mirror is None:
                return Healed(table)
            found = mirror.compared(details)
            if found.wrong is None or details is not None:
                return Healed(table, found.keys, found.count, rows=found.rows)
            return Healed(table, found.keys, found.count, _written(mirror, lease, found.wrong))
    except TableError as error:
        tuple(settle_writes(work, lease))
        hint = reload_hint(table) if isinstance(error, MirrorRefused) else error.hint
        return Healed(table, not_compared=error.reason, hint=hint)


def _written(mirror: MirrorComparison, lease: Lease, changes: pa.Table) -> int:
    """One commit."""
    work, fold = mirror.work, mirror.fold
    committing = MirrorCommitting.begun(work, lease, mirror.state, mirror.last)
    target = committing.target(fold.schema, WriteKind.MERGE, mirror.files)
    spelled = dict(zip(changelog_names(fold.schema.names), fold.schema.names, strict=True))
    names = {one: name for one, name in spelled.items() if name in fold.key}
    bounds = bounds_literals(key_bounds(changes, names), fold.schema)
    path = work.mirrors.stage(f"{work.source.name}-{target.txn_version}", changes)
    try:
        return committing.settled(
            Merge(target, fold.key, FoldedChanges((path,), fold.kept), bounds),
            f"a replay: {changes.num_rows} keys were not what the changelog says",
        )
    finally:
        work.mirrors.unstage(path)
