"""A mirror held against its changelog: keys that a span touched show their newest change.

The newest change of a key is looked for from the span's first batch up to what is merged, so the
values of a span never come back over later ones. What happened to all rows of the table (it was
emptied, read from the source) counts as in any merge: nothing before it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Batch, TableContent
from pipeline.changes.clustering import clustered_by
from pipeline.changes.fold import Fold, Hashes, bounds_literals, key_bounds
from pipeline.changes.layout import (
    DELETED_AT,
    application_id,
    changelog_names,
    changelog_path,
    keep_names,
    scratch_path,
)
from pipeline.changes.lineage import ColumnLineage
from pipeline.changes.merging import MergePlan, plan_merge
from pipeline.changes.strategy import buckets_for
from pipeline.decisions import Lease
from pipeline.errors import MirrorRefused, TableError
from pipeline.intent import REPLAY, Intent
from pipeline.lake_commit import WriteKind
from pipeline.policies import Deletes
from pipeline.ports.ledger import contents_of
from pipeline.ports.mirror_writes import FoldedChanges, Merge, MirrorTarget, PartColumn
from pipeline.replay.rows import ReplayDifference, among, ordered, row_differences, wrong_rows
from pipeline.runs.agreement.lake_logs import look_at
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.runs.cures import reload_hint
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.runs.merging.mirror_write import SegmentPart
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
            keys, wrong = mirror.compared()
            if wrong is None:
                return Healed(table, keys)
            if details is None:
                return Healed(table, keys, wrong.num_rows, _written(mirror, lease, wrong))
            rows = tuple(mirror.differences(wrong, details))
            return Healed(table, keys, wrong.num_rows, rows=rows)
    except TableError as error:
        tuple(settle_writes(work, lease))
        hint = reload_hint(table) if isinstance(error, MirrorRefused) else error.hint
        return Healed(table, not_compared=error.reason, hint=hint)


def _written(mirror: MirrorComparison, lease: Lease, changes: pa.Table) -> int:
    """Write changes to the mirror in one commit, and return its Delta version. If the process dies,
    the next one finds the commit by the intent (`settle_writes`)."""
    work, fold = mirror.work, mirror.fold
    spelled = dict(zip(changelog_names(fold.schema.names), fold.schema.names, strict=True))
    names = {changed: name for changed, name in spelled.items() if name in fold.key}
    bounds = bounds_literals(key_bounds(changes, names), fold.schema)
    # The newest acknowledged batch, whose end the mirror shows before this write and after it.
    source, state, last = work.source.name, mirror.state, mirror.last
    app_id = application_id(source, state, "mirror")
    planned = Intent(0, state.table, app_id, 0, last.id, last.id, REPLAY)
    intent = work.ledger.intend(lease, [planned])[state.table]
    files = [file for segment in mirror.plan.segments for file in segment.files]
    policies = work.source.policies_of(state.table)
    target = MirrorTarget(
        mirror=state.mirror,
        schema=fold.schema,
        app_id=intent.app_id,
        txn_version=intent.txn_version,
        user_metadata=commit_metadata(work, WriteKind.MERGE, state.table, [last], files),
        deletes=policies.deletes,
        readers=policies.readers,
        truncates=policies.truncates,
        cluster=clustered_by(policies.cluster_by, fold.schema),
    )
    path = work.mirrors.stage(f"{source}-replay", changes)
    try:
        write = Merge(target, fold.key, FoldedChanges((path,), fold.kept), bounds)
        done = work.mirrors.write(write, lambda: work.ledger.require_held(lease))
    finally:
        work.mirrors.unstage(path)
    reason = f"a replay: {changes.num_rows} keys were not what the changelog says"
    work.ledger.settle(lease, intent, done.delta_version, reason=reason, table_id=done.table_id)
    work.ledger.note_looked(lease, {state.mirror: done.delta_version})
    return done.delta_version


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """`version`: the mirror's that is looked at. `last`: the newest acknowledged batch, up to
    which changes count. `stamps`: columns that are written, and not compared. `ranges`: the
    numbers of the span's changes, each (above, up to)."""

    work: Workplace
    state: TableState
    version: int
    last: Batch
    plan: MergePlan
    parts: tuple[SegmentPart, ...]
    fold: Fold
    stamps: tuple[str, ...]
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
        version, own, soft = mirror_shown(work, state)
        newest = work.ledger.cursors(work.source.name).acknowledged
        assert newest is not None, "the span is acknowledged"
        contents = contents_of(work.ledger, work.source.name, table, span[0].id, newest.batch)
        if not contents:
            return None
        plan = plan_merge([with_fresh(content, fresh) for content in contents])
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
        waiting = frozenset(file for segment in fresh for file in segment.fresh)
        parts = tuple(parts_of(work, plan, line, own, table, waiting))
        marks = ("_committed_at",) if soft else ()
        ignored = work.source.policies_of(table).deletes is Deletes.IGNORE
        fold = Fold(own, key, tuple(part.part for part in parts), marks, ignored=ignored)
        [last] = work.ledger.live_batches(work.source.name, newest.batch, newest.batch)
        return cls(work, state, version, last, plan, parts, fold, line.stamps, soft, ranges)

    def compared(self) -> tuple[int, pa.Table | None]:
        """How many keys were looked at, and the folded changes of those that the mirror shows
        otherwise, by the mirror's own names."""
        self._require_whole()
        wanted = self._touched()
        keys, wrong = 0, []
        files = [file for part in self.parts for file in part.files]
        unpacked = sum(self.work.segments.unpacked(p.folder, p.files) for p in self.parts)
        buckets = max(1, buckets_for(sum(file.images for file in files), unpacked))
        for bucket in range(buckets):
            changes = self._folded(wanted, bucket, buckets)
            keys += changes.num_rows
            if changes.num_rows:
                wrong.append(changes.filter(pa.array(self._wrong(changes))))
        found = pa.concat_tables(wrong) if wrong else None
        return keys, found if found is not None and found.num_rows else None

    def _require_whole(self) -> None:
        for part in self.parts:
            damaged = self.work.segments.damaged(part.folder, part.files)
            if damaged:
                raise TableError(
                    f"its changelog is damaged: {damaged[0]}",
                    hint="replay the span of that batch too, or restore the file",
                )

    def _images(self, number: int) -> Iterator[pa.Table]:
        return self.parts[number].pieces(self.work.segments, self.fold.marks)

    def _touched(self) -> Hashes:
        """The keys of the span's changes, as numbers."""
        found = [np.zeros(0, np.uint64)]
        for number in range(len(self.parts)):
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
        for number in range(len(self.parts)):
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
            mark = marks[name]
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

    def differences(self, wrong: pa.Table, details: Details) -> Iterator[ReplayDifference]:
        compared = self._compared_columns
        return row_differences(
            self._named(wrong.slice(0, details.most)),
            self._rows(compared),
            key=self.fold.key,
            compared=compared,
            soft=self.soft,
            show_values=details.show_values,
        )

    @property
    def _compared_columns(self) -> list[str]:
        left_out = {*self.fold.kept, *self.stamps}
        return [name for name in self.fold.schema.names if name not in left_out]

    def _named(self, changes: pa.Table) -> pa.Table:
        own = self.fold.schema.names
        spelled = dict(zip(changelog_names(own), own, strict=True))
        # A stamp is called as one of the marks.
        names = [n for n in changes.column_names if spelled.get(n) not in self.stamps]
        return changes.select(names).rename_columns([spelled.get(n, n) for n in names])

    def _rows(self, compared: Sequence[str]) -> Iterator[pa.Table]:
        marks = [DELETED_AT] if self.soft else []
        schema = pa.schema([*map(self.fold.schema.field, compared), *marks])
        for batch in self.work.mirrors.rows(self.state.mirror, schema.names, self.version):
            yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)


def require_mirror(state: TableState) -> None:
    """`TableError` unless the mirror shows all that its changelog says."""
    table = state.table
    if not state.complete:
        raise TableError(
            f"it is {state.in_words}", hint="`lockstep status` says what brings it back"
        )
    if state.behind is not None:
        raise TableError("its mirror lacks batches that others have", hint="`lockstep run`")
    if state.adopted is not None or state.mirror_version is None:
        raise TableError(
            "its mirror came with rows that its changelog does not have",
            hint=f"`lockstep verify {table}`",
        )


def mirror_shown(work: Workplace, state: TableState) -> tuple[int, pa.Schema, bool]:
    """The mirror's version; its columns, without the one that marks deleted rows; and whether there
    is one. `TableError` unless it is there as configured, and shows all that its changelog says."""
    require_mirror(state)
    version = look_at(work, state, work.ledger.looked(work.source.name).get(state.mirror))
    if version is None:
        raise TableError("its mirror is not there", hint=reload_hint(state.table))
    shown = work.mirrors.schema(state.mirror, version)
    soft = work.source.policies_of(state.table).deletes == Deletes.SOFT
    if soft is not (DELETED_AT.name in shown.names):
        raise TableError(
            "its mirror was made with another `deletes` than is configured now",
            hint=reload_hint(state.table),
        )
    own = [field for field in shown if not (soft and field.name == DELETED_AT.name)]
    return version, pa.schema(own), soft


def lineage_of(work: Workplace, state: TableState, plan: MergePlan) -> ColumnLineage:
    """From the structures of the changes that count to that of the mirror."""
    table, final = state.table, state.mirror_version
    assert final is not None
    history = [version.version for version in work.ledger.schema_versions(work.source.name, table)]
    first = min((*plan.versions, final), key=history.index)
    line = lineage_over(work, versions_between(work, table, first, final))
    if line.reread:
        raise TableError(line.reread[0], hint=f"`lockstep verify {table} --repair` reads it again")
    return line


def with_fresh(content: TableContent, fresh: Sequence[SegmentFound]) -> TableContent:
    """With the files that are to stand in the place of others."""
    told = {
        (segment.table, segment.schema_version): segment.fresh
        for segment in fresh
        if segment.batch == content.batch
    }
    segments = (
        replace(segment, files=told.get((segment.table, segment.schema_version), segment.files))
        for segment in content.segments
    )
    return replace(content, segments=tuple(segments))


def parts_of(
    work: Workplace,
    plan: MergePlan,
    line: ColumnLineage,
    own: pa.Schema,
    table: TableName,
    waiting: frozenset[SegmentFile],
) -> Iterator[SegmentPart]:
    """`waiting`: files that are in the scratch folder."""
    for version in plan.versions:
        segments = (segment for segment in plan.segments if segment.schema_version == version)
        files = tuple(file for segment in segments for file in segment.files)
        if any(file.partial for file in files):
            raise TableError(
                "row images leave columns out, so its newest changes lack values",
                hint=f"`lockstep verify {table} --repair` compares it with MySQL",
            )
        part = line.part(version, above=plan.above)
        columns = dict(zip(line.schema.names, part.columns, strict=True))
        shown = tuple(columns.get(name, PartColumn()) for name in own.names)
        generation = work.ledger.schema_version(work.source.name, table, version).generation
        folder = changelog_path(work.source.name, table, generation)
        for path, inside in ((folder, False), (scratch_path(work.source.name, folder), True)):
            some = tuple(file for file in files if (file in waiting) is inside)
            if some:
                yield SegmentPart(path, some, line.names[version], replace(part, columns=shown))
