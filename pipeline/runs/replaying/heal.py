"""A mirror held against its changelog: keys that a span touched show their newest change.

Belongs here: which changes count, and the one write of those that the mirror shows otherwise. Does
not: the comparison itself (`pipeline.replay.rows`), the changelog's files (`revise`).

The newest change of a key is looked for from the span's first batch up to what is merged, so the
values of a span never come back over later ones. What happened to all rows of the table (it was
emptied, read from the source) counts as in any merge: nothing before it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Batch
from pipeline.changes.fold import Fold
from pipeline.changes.key_bounds import bounds_literals, key_bounds
from pipeline.changes.key_hashes import Hashes
from pipeline.changes.layout import (
    DELETED_AT,
    application_id,
    changelog_names,
    keep_names,
)
from pipeline.changes.mapping import images_above, row_images
from pipeline.changes.merging import MergePlan, plan_merge
from pipeline.changes.strategy import buckets_for
from pipeline.decisions import Lease
from pipeline.errors import MirrorRefused, TableError
from pipeline.intent import REPLAY
from pipeline.lake_commit import WriteKind
from pipeline.ports.mirror_writes import FoldedChanges, Merge, Target
from pipeline.replay.rows import among, ordered, wrong_rows
from pipeline.runs.agreement.lake_logs import look_at
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import part_of
from pipeline.runs.replaying.counted_changes import (
    Kind,
    kinds_of,
    lineage_of,
    require_merged,
    with_fresh,
)
from pipeline.runs.replaying.revise import SegmentFound
from pipeline.runs.replaying.settle import settle_writes
from pipeline.runs.schema_choice import reload_hint
from pipeline.table import TableName
from pipeline.table_state import TableState


@dataclass(frozen=True, slots=True)
class Healed:
    """One table's mirror: how many of the keys that were looked at it showed otherwise, and the
    Delta version that shows them right; None where nothing was written. `why`, `hint`: where it
    was not looked at."""

    table: TableName
    keys: int = 0
    wrong: int = 0
    delta_version: int | None = None
    why: str | None = None
    hint: str | None = None


def heal(
    work: Workplace,
    lease: Lease,
    table: TableName,
    span: Sequence[Batch],
    *,
    commit: bool,
    fresh: Sequence[SegmentFound] = (),
) -> Healed:
    """Compare the keys that these batches touched with the mirror, and with `commit` write those
    that it shows otherwise. `fresh`: segments whose files are in the scratch folder still. What
    concerns the table alone is told and never raised."""
    try:
        with for_one_table("compare its rows"):
            mirror = _Mirror.of(work, table, span, [one for one in fresh if one.replaced])
            return Healed(table) if mirror is None else mirror.healed(lease, commit=commit)
    except TableError as error:
        tuple(settle_writes(work, lease))
        hint = reload_hint(table) if isinstance(error, MirrorRefused) else error.hint
        return Healed(table, why=error.reason, hint=hint)


@dataclass(frozen=True, slots=True)
class _Mirror:
    """`ranges`: the numbers of the span's changes, each (above, up to)."""

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
    ) -> _Mirror | None:
        """None where nothing of the span counts for the mirror any more."""
        state = work.ledger.table_states(work.source.name)[table]
        require_merged(state)
        version = look_at(work, state, work.ledger.looked(work.source.name).get(state.mirror))
        if version is None:
            raise TableError("its mirror is not there", hint=reload_hint(table))
        known = work.ledger.batches_of(work.source.name, table)
        batches = [one for one in known if one.id >= span[0].id]
        if not batches:
            return None
        plan = plan_merge([with_fresh(part_of(work, batch, table), fresh) for batch in batches])
        ranges = tuple(
            (one.base, one.base + one.changes)
            for one in span
            if one.base + one.changes > plan.above
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
        soft = work.source.lake.deletes == "soft"
        if soft is not (DELETED_AT.name in shown.names):
            raise TableError(
                "its mirror was made with another `deletes` than is configured now",
                hint=reload_hint(table),
            )
        own = pa.schema([one for one in shown if not (soft and one.name == DELETED_AT.name)])
        waiting = frozenset(file for one in fresh for file in one.fresh)
        kinds = tuple(kinds_of(work, plan, line, own, table, waiting))
        marks = ("_committed_at",) if soft else ()
        fold = Fold(own, key, tuple(kind.part for kind in kinds), marks)
        newest = work.ledger.acknowledged_cursor(work.source.name)
        assert newest is not None, "the span is acknowledged"
        [last] = work.ledger.live_batches(work.source.name, newest.batch, newest.batch)
        return cls(work, state, version, last, plan, kinds, fold, soft, ranges)

    def healed(self, lease: Lease, *, commit: bool) -> Healed:
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
        count = sum(one.num_rows for one in wrong)
        table = self.state.table
        if not count or not commit:
            return Healed(table, keys, count)
        return Healed(table, keys, count, self._write(lease, pa.concat_tables(wrong)))

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
            yield row_images(images_above(piece, kind.part.above))

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
        own = self.fold.schema
        compared = [name for name in own.names if name not in self.fold.kept]
        spelled = dict(zip(changelog_names(own.names), own.names, strict=True))
        named = changes.rename_columns([spelled.get(n, n) for n in changes.column_names])
        return wrong_rows(
            named, self._rows(compared), key=self.fold.key, compared=compared, soft=self.soft
        )

    def _rows(self, compared: Sequence[str]) -> Iterator[pa.Table]:
        names = [*compared, *([DELETED_AT.name] if self.soft else [])]
        fields = [*(self.fold.schema.field(name) for name in compared)]
        schema = pa.schema([*fields, *([DELETED_AT] if self.soft else [])])
        mirrors = self.work.mirrors
        for batch in mirrors.rows(self.state.mirror, names, self.version):
            yield pa.Table.from_batches([batch]).select(names).cast(schema)

    def _write(self, lease: Lease, changes: pa.Table) -> int:
        """One commit, as an intent that a cut-off replay's successor finds."""
        work, state, fold = self.work, self.state, self.fold
        files = [file for segment in self.plan.segments for file in segment.files]
        intent = work.ledger.open_intent(
            lease,
            state.table,
            app_id=application_id(work.source.name, state, "mirror"),
            first_batch=self.last.id,
            last_batch=self.last.id,
            step=REPLAY,
        )
        target = Target(
            mirror=state.mirror,
            schema=fold.schema,
            app_id=intent.app_id,
            txn_version=intent.txn_version,
            user_metadata=commit_metadata(work, WriteKind.MERGE, state.table, [self.last], files),
            deletes=work.source.lake.deletes,
            readers=work.source.lake.readers,
        )
        spelled = dict(zip(changelog_names(fold.schema.names), fold.schema.names, strict=True))
        names = {one: name for one, name in spelled.items() if name in fold.key}
        bounds = bounds_literals(key_bounds(changes, names), fold.schema)
        path = work.mirrors.stage(f"{work.source.name}-{intent.txn_version}", changes)
        try:
            done = work.mirrors.write(
                Merge(target, fold.key, FoldedChanges((path,), fold.kept), bounds),
                lambda: work.ledger.require_held(lease),
            )
        finally:
            work.mirrors.unstage(path)
        reason = f"a replay: {changes.num_rows} keys were not what the changelog says"
        version = done.delta_version
        work.ledger.settle(lease, intent, version, reason=reason, table_id=done.table_id)
        work.ledger.note_looked(lease, {state.mirror: version})
        return version
