"""A mirror held against its changelog: keys that a span touched show their newest change.

The newest change of a key is looked for from the span's first batch up to what is merged, so the
values of a span never come back over later ones. What happened to all rows of the table (it was
emptied, read from the source) counts as in any merge: nothing before it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Batch
from pipeline.changes.fold import Fold
from pipeline.changes.key_bounds import bounds_literals, key_bounds
from pipeline.changes.key_hashes import Hashes
from pipeline.changes.layout import DELETED_AT, changelog_names, keep_names
from pipeline.changes.mapping import images_within, row_images
from pipeline.changes.merging import MergePlan, plan_merge
from pipeline.changes.strategy import buckets_for
from pipeline.decisions import Lease
from pipeline.errors import MirrorRefused, TableError
from pipeline.lake_commit import WriteKind
from pipeline.policies import Deletes
from pipeline.ports.mirror_writes import FoldedChanges, Merge
from pipeline.replay.rows import ReplayDifference, among, ordered, row_differences, wrong_rows
from pipeline.runs.agreement.lake_logs import look_at
from pipeline.runs.context import Workplace
from pipeline.runs.cures import reload_hint
from pipeline.runs.merging.table_parts import parts_within
from pipeline.runs.replaying.counted_changes import (
    Kind,
    kinds_of,
    lineage_of,
    require_mirror,
    with_fresh,
)
from pipeline.runs.replaying.mirror_commit import MirrorCommitting
from pipeline.runs.replaying.segments_found import Details, SegmentFound
from pipeline.runs.replaying.settle import settle_writes
from pipeline.segment import SegmentFile
from pipeline.table import TableName
from pipeline.table_state import TableState


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


@dataclass(frozen=True, slots=True)
class KeysCompared:
    """How many keys were looked at, the folded changes of those that the mirror shows otherwise,
    by the mirror's own names, and some of the differences."""

    keys: int
    wrong: pa.Table | None
    rows: tuple[ReplayDifference, ...] = ()

    @property
    def count(self) -> int:
        return 0 if self.wrong is None else self.wrong.num_rows


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """`version`: the mirror's that is looked at. `last`: the newest acknowledged batch, up to
    which changes count. `ranges`: the numbers of the span's changes, each (above, up to)."""

    work: Workplace
    state: TableState
    version: int
    last: Batch
    plan: MergePlan
    kinds: tuple[Kind, ...]
    fold: Fold
    soft: bool
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls,
        work: Workplace,
        table: TableName,
        span: Sequence[Batch],
        fresh: Sequence[SegmentFound],
    ) -> MirrorComparison | None:
        """None where nothing of the span counts for the mirror any more."""
        state = work.ledger.table_states(work.source.name)[table]
        require_mirror(state)
        version = look_at(work, state, work.ledger.looked(work.source.name).get(state.mirror))
        if version is None:
            raise TableError("its mirror is not there", hint=reload_hint(table))
        newest = work.ledger.acknowledged_cursor(work.source.name)
        assert newest is not None, "the span is acknowledged"
        parts = parts_within(work, table, span[0].id, newest.batch)
        if not parts:
            return None
        plan = plan_merge([with_fresh(part, fresh) for part in parts])
        ranges = tuple(
            (batch.base, batch.base + batch.changes)
            for batch in span
            if batch.base + batch.changes > plan.above
        )
        if not plan.segments or not ranges or plan.dropped:
            return None
        line = lineage_of(work, state, plan)
        key = line.key_of(plan.versions)
        if not key:
            raise TableError(
                "no key tells its rows apart, so its newest changes cannot be merged again",
                hint=reload_hint(table),
            )
        shown = work.mirrors.schema(state.mirror, version)
        soft = work.source.lake.deletes == Deletes.SOFT
        if soft is not (DELETED_AT.name in shown.names):
            raise TableError(
                "its mirror was made with another `deletes` than is configured now",
                hint=reload_hint(table),
            )
        own = pa.schema([field for field in shown if not (soft and field.name == DELETED_AT.name)])
        waiting = frozenset(file for segment in fresh for file in segment.fresh)
        kinds = tuple(kinds_of(work, plan, line, own, table, waiting))
        marks = ("_committed_at",) if soft else ()
        fold = Fold(own, key, tuple(kind.part for kind in kinds), marks)
        [last] = work.ledger.live_batches(work.source.name, newest.batch, newest.batch)
        return cls(work, state, version, last, plan, kinds, fold, soft, ranges)

    @property
    def files(self) -> list[SegmentFile]:
        return [file for segment in self.plan.segments for file in segment.files]

    def compared(self, details: Details | None = None) -> KeysCompared:
        """With `details` it is told of rows which columns differ."""
        self._require_whole()
        wanted = self._touched()
        keys, wrong = 0, []
        files = [file for kind in self.kinds for file in kind.files]
        unpacked = sum(self.work.segments.unpacked(k.folder, k.files) for k in self.kinds)
        buckets = max(1, buckets_for(sum(file.images for file in files), unpacked))
        for bucket in range(buckets):
            changes = self._folded(wanted, bucket, buckets)
            keys += changes.num_rows
            if changes.num_rows:
                wrong.append(changes.filter(pa.array(self._wrong(changes))))
        found = pa.concat_tables(wrong) if wrong else None
        if found is None or not found.num_rows:
            return KeysCompared(keys, None)
        if details is None:
            return KeysCompared(keys, found)
        some = self._differences(found.slice(0, details.most), show_values=details.show_values)
        return KeysCompared(keys, found, tuple(some))

    def _require_whole(self) -> None:
        for kind in self.kinds:
            damaged = self.work.segments.damaged(kind.folder, kind.files)
            if damaged:
                raise TableError(
                    f"its changelog is damaged: {damaged[0]}",
                    hint="replay the span of that batch too, or restore the file",
                )

    def _images(self, number: int) -> Iterator[pa.Table]:
        kind = self.kinds[number]
        names = ["_change_type", "_sequence", *self.fold.marks, *changelog_names(list(kind.names))]
        for piece in self.work.segments.pieces(kind.folder, kind.files, names):
            yield row_images(images_within(piece, kind.part))

    def _touched(self) -> Hashes:
        """The keys of the span's changes, as numbers."""
        found = [np.zeros(0, np.uint64)]
        for number in range(len(self.kinds)):
            for images in self._images(number):
                inside = self._inside(images)
                if inside.num_rows:
                    found.append(ordered(self.fold.hashes(number, inside)))
        return ordered(np.concatenate(found))

    def _inside(self, images: pa.Table) -> pa.Table:
        sequence = images.column("_sequence").to_numpy()
        inside = np.zeros(len(sequence), np.bool_)
        for above, end in self.ranges:
            inside |= (sequence > above) & (sequence <= end)
        return images.filter(pa.array(inside))

    def _folded(self, wanted: Hashes, bucket: int, buckets: int) -> pa.Table:
        """The newest changes of the wanted keys of one bucket, by the mirror's own names."""
        images = []
        for number in range(len(self.kinds)):
            pieces = []
            for piece in self._images(number):
                hashes = self.fold.hashes(number, piece)
                here = among(hashes, wanted) & (hashes % np.uint64(buckets) == bucket)
                pieces.append(piece.filter(pa.array(here)))
            images.append(pa.concat_tables(pieces))
        changes, _ = self.fold.table(images)
        return self._keeping(changes)

    def _keeping(self, changes: pa.Table) -> pa.Table:
        """A column that the table has no more keeps what the mirror has of it."""
        marks = keep_names(self.fold.schema.names)
        for name in self.fold.kept:
            mark = marks[self.fold.schema.get_field_index(name)]
            at = changes.schema.get_field_index(mark)
            kept = pa.repeat(pa.scalar(True), changes.num_rows)
            changes = changes.set_column(at, mark, pa.chunked_array([kept]))
        return changes

    def _wrong(self, changes: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        compared = self._compared_columns
        return wrong_rows(
            self._named(changes),
            self._rows(compared),
            key=self.fold.key,
            compared=compared,
            soft=self.soft,
        )

    def _differences(self, wrong: pa.Table, *, show_values: bool) -> Iterator[ReplayDifference]:
        compared = self._compared_columns
        return row_differences(
            self._named(wrong),
            self._rows(compared),
            key=self.fold.key,
            compared=compared,
            soft=self.soft,
            show_values=show_values,
        )

    @property
    def _compared_columns(self) -> list[str]:
        return [name for name in self.fold.schema.names if name not in self.fold.kept]

    def _named(self, changes: pa.Table) -> pa.Table:
        own = self.fold.schema.names
        spelled = dict(zip(changelog_names(own), own, strict=True))
        return changes.rename_columns([spelled.get(n, n) for n in changes.column_names])

    def _rows(self, compared: Sequence[str]) -> Iterator[pa.Table]:
        names = [*compared, *([DELETED_AT.name] if self.soft else [])]
        fields = [*(self.fold.schema.field(name) for name in compared)]
        schema = pa.schema([*fields, *([DELETED_AT] if self.soft else [])])
        mirrors = self.work.mirrors
        for batch in mirrors.rows(self.state.mirror, names, self.version):
            yield pa.Table.from_batches([batch]).select(names).cast(schema)
