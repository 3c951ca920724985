"""Compares a mirror (the Delta table with the current rows) with its changelog (all
captured changes), for the keys that a span of batches touched, and corrects the mirror.

The newest change of a key is searched from the span's first batch to the newest merged
batch, so values of the span never overwrite later ones. As in any merge, changes before
a TRUNCATE or a full re-read of the table do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from lockstep.pipeline.mirror.fold import Fold, Hashes, bounds_literals, key_bounds
from lockstep.pipeline.mirror.layout import (
    DELETED_AT,
    application_id,
    changelog_path,
    changelog_spelling,
    keep_flag_names,
    scratch_path,
)
from lockstep.pipeline.mirror.lineage import ColumnLineage
from lockstep.pipeline.mirror.merging import MergePlan, plan_merge
from lockstep.pipeline.mirror.strategy import buckets_for
from lockstep.pipeline.model.batch import Batch, TableContent
from lockstep.pipeline.model.lake_commit import WriteKind
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import table_contents
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, FoldedChanges, Merge, MirrorTarget
from lockstep.pipeline.proof.hashes import membership, sorted_unique
from lockstep.pipeline.replay.rows import ReplayDifference, RowComparison
from lockstep.pipeline.run.agreement.lake_logs import checked_version, mirror_judgement
from lockstep.pipeline.run.commit_metadata import commit_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.replay.segment_comparison import Details, SegmentResult
from lockstep.pipeline.run.replay.settle import settle_replay_writes
from lockstep.pipeline.run.stop_errors import arrow_errors_as_table_error, reload_hint
from lockstep.pipeline.run.write.job import lineage_over, may_keep_rows, versions_between
from lockstep.pipeline.run.write.staged_fold import SegmentPart, image_count, unpacked_bytes
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import MirrorRefused, TableError
from lockstep.pipeline.values.intent import REPLAY, Intent
from lockstep.pipeline.values.policies import Deletes
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName


class _NotComparable(TableError):
    """The table has no mirror that could be compared by key."""


@dataclass(frozen=True, slots=True)
class MirrorCorrection:
    """The result for one mirror. `keys`: number of keys that were compared. `wrong`:
    how many of them differed from the changelog. `delta_version`: the version that
    corrects them; None if nothing was written. `not_compared`, `hint`: why the mirror
    was not compared, and what to do. `is_comparable`: False if no mirror of such a
    table can be compared by key. `rows`: some of the rows that differ."""

    json_keys: ClassVar = (
        "keys",
        "wrong",
        "delta_version",
        "not_compared",
        "hint",
        "rows as differences",
    )

    table: TableName
    keys: int = 0
    wrong: int = 0
    delta_version: int | None = None
    not_compared: str | None = None
    hint: str | None = None
    is_comparable: bool = True
    rows: tuple[ReplayDifference, ...] = ()


def correct_mirror(
    ports: RunPorts,
    lease: Lease,
    table: TableName,
    span: Sequence[Batch],
    *,
    new_segments: Sequence[SegmentResult],
    details: Details | None,
) -> MirrorCorrection:
    """Compare the keys that the batches of `span` touched with the mirror, and write
    those that differ. With `details`, only report them. `new_segments`: segments whose
    new files are still in the scratch folder. An error that concerns only this table is
    reported, not raised."""
    try:
        with arrow_errors_as_table_error("compare its rows"):
            segments_to_replace = [segment for segment in new_segments if segment.has_replacement]
            mirror = _MirrorComparison.of(ports, table, span, segments_to_replace)
            if mirror is None:
                return MirrorCorrection(table)
            keys, wrong = mirror.compare()
            if wrong is None:
                return MirrorCorrection(table, keys)
            if details is None:
                version = _write_changes(mirror, lease, wrong)
                return MirrorCorrection(table, keys, wrong.num_rows, delta_version=version)
            rows = tuple(mirror.differences(wrong, details))
            return MirrorCorrection(table, keys, wrong.num_rows, rows=rows)
    except TableError as error:
        settle_replay_writes(ports, lease)
        hint = reload_hint(table) if isinstance(error, MirrorRefused) else error.hint
        is_comparable = not isinstance(error, _NotComparable)
        return MirrorCorrection(
            table, not_compared=error.reason, hint=hint, is_comparable=is_comparable
        )


def _write_changes(mirror: _MirrorComparison, lease: Lease, changes: pa.Table) -> int:
    """Write changes to the mirror in one commit, and return its Delta version. If the
    process dies, the next run finds the commit by the recorded intent
    (`settle_replay_writes`)."""
    ports, fold = mirror.ports, mirror.fold
    spelled = changelog_spelling(fold.schema.names)
    key_names = {spelled[name]: name for name in fold.key}
    bounds = bounds_literals(key_bounds(changes, key_names), fold.schema)
    source, state, last = ports.source.name, mirror.state, mirror.last_batch
    app_id = application_id(source, state, "mirror")
    # The mirror shows the end of the batch `last`, before this write and after it. The
    # ledger gives the two numbers that are 0 here.
    newest_writes = ports.ledger.newest_writes(source, [app_id])[app_id]
    policies = ports.source.policies_of(state.table)
    planned_intent = Intent(
        0,
        state.table,
        app_id,
        0,
        last.id,
        last.id,
        REPLAY,
        may_have_kept_rows=may_keep_rows(policies, state, newest_writes.settled_intent),
    )
    intent = ports.ledger.intend(lease, [planned_intent])[state.table]
    files = [file for segment in mirror.plan.segments for file in segment.files]
    target = MirrorTarget(
        state.mirror,
        fold.schema,
        app_id=intent.app_id,
        txn_version=intent.txn_version,
        user_metadata=commit_metadata(
            ports, WriteKind.MERGE, state.table, [last], files, has_rows_without_log=True
        ),
        policies=policies,
    )
    path = ports.mirrors.stage(f"{source}-replay", changes)
    try:
        write = Merge(target, fold.key, FoldedChanges((path,), fold.kept_columns), bounds)
        commit = ports.mirrors.write(write, lambda: ports.ledger.require_held(lease))
    finally:
        ports.mirrors.unstage(path)
    reason = f"a replay: {pluralize(changes.num_rows, 'row')} differed from the changelog"
    ports.ledger.settle(
        lease, intent, commit.delta_version, reason=reason, table_id=commit.table_id
    )
    ports.ledger.note_examined_versions(lease, {state.mirror: commit.delta_version})
    return commit.delta_version


@dataclass(frozen=True, slots=True)
class _MirrorComparison:
    """One mirror and the changes that it must show.

    - `delta_version`: the mirror's version that is compared.
    - `last_batch`: the newest acknowledged batch; later changes do not count.
    - `stamp_columns`: the columns with the time, number and GTID of a row's last
      change, which are not compared.
    - `has_soft_deletes`: deleted rows stay and are marked.
    - `sequence_ranges`: the sequence numbers of the span's changes, as pairs (above, up
      to).
    """

    ports: RunPorts
    state: TableState
    delta_version: int
    last_batch: Batch
    plan: MergePlan
    parts: tuple[SegmentPart, ...]
    fold: Fold
    stamp_columns: tuple[str, ...]
    has_soft_deletes: bool
    sequence_ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls,
        ports: RunPorts,
        table: TableName,
        span: Sequence[Batch],
        new_segments: Sequence[SegmentResult],
    ) -> _MirrorComparison | None:
        """Return the comparison; None if no change of the span counts for the mirror
        any more. Raise `TableError` if the mirror cannot be compared."""
        state = ports.ledger.table_states(ports.source.name)[table]
        delta_version, mirror_schema, has_soft_deletes = _examine_mirror(ports, state)
        newest = ports.ledger.cursors(ports.source.name).acknowledged
        assert newest is not None, "the span is acknowledged"
        contents = table_contents(ports.ledger, ports.source.name, table, span[0].id, newest.batch)
        plan = plan_merge([_with_new_files(content, new_segments) for content in contents])
        sequence_ranges = tuple(
            (batch.sequence_before, batch.sequence_before + batch.changes)
            for batch in span
            if batch.sequence_before + batch.changes > plan.above
        )
        if not plan.segments or not sequence_ranges or plan.is_dropped:
            return None
        lineage = _lineage_of(ports, state, plan)
        key = lineage.key_of(plan.versions)
        if not key:
            raise _NotComparable(
                "no key tells its rows apart, so its newest changes cannot be merged again",
                hint=f"`lockstep verify {table.word}` compares it with MySQL",
            )
        scratch_files = frozenset(file for segment in new_segments for file in segment.new_files)
        parts = tuple(_parts_of(ports, plan, lineage, mirror_schema, table, scratch_files))
        marks = ("_committed_at",) if has_soft_deletes else ()
        ignores_deletes = ports.source.policies_of(table).deletes is Deletes.IGNORE
        fold = Fold(
            mirror_schema,
            key,
            tuple(part.mapping for part in parts),
            marks,
            ignores_deletes=ignores_deletes,
        )
        [last] = ports.ledger.live_batches(ports.source.name, newest.batch, newest.batch)
        return cls(
            ports=ports,
            state=state,
            delta_version=delta_version,
            last_batch=last,
            plan=plan,
            parts=parts,
            fold=fold,
            stamp_columns=lineage.policies.stamps,
            has_soft_deletes=has_soft_deletes,
            sequence_ranges=sequence_ranges,
        )

    def compare(self) -> tuple[int, pa.Table | None]:
        """Return the number of compared keys, and the newest changes of those that
        differ in the mirror, under the mirror's column names."""
        self._require_undamaged()
        touched_keys = self._touched_keys()
        key_count = 0
        wrong_changes = []
        size = unpacked_bytes(self.ports.segments, self.parts)
        buckets = buckets_for(image_count(self.parts), size)
        for bucket in range(buckets):
            changes = self._newest_changes(touched_keys, bucket, buckets)
            key_count += changes.num_rows
            if changes.num_rows:
                flags = self._comparison.wrong_flags(
                    self._with_mirror_names(changes), self._mirror_rows()
                )
                wrong_changes.append(changes.filter(pa.array(flags)))
        wrong = pa.concat_tables(wrong_changes) if wrong_changes else None
        if wrong is not None and not wrong.num_rows:
            wrong = None
        return key_count, wrong

    def _require_undamaged(self) -> None:
        for part in self.parts:
            damages = self.ports.segments.damage_sentences(part.folder, part.files)
            if damages:
                raise TableError(
                    f"its changelog is damaged: {damages[0]}",
                    hint="replay the span of that batch too, or restore the file",
                )

    def _images(self, part_index: int) -> Iterator[pa.Table]:
        return self.parts[part_index].pieces(self.ports.segments, self.fold.marks)

    def _touched_keys(self) -> Hashes:
        """Return the hashes of all keys with changes in the span, sorted."""
        hashes = [np.zeros(0, np.uint64)]
        for part_index in range(len(self.parts)):
            for images in self._images(part_index):
                images_in_span = self._images_in_span(images)
                if images_in_span.num_rows:
                    hashes.append(sorted_unique(self.fold.hashes(part_index, images_in_span)))
        return sorted_unique(np.concatenate(hashes))

    def _images_in_span(self, images: pa.Table) -> pa.Table:
        sequence = images.column("_sequence").to_numpy()
        inside = np.zeros(len(sequence), np.bool_)
        for above, end in self.sequence_ranges:
            inside |= (sequence > above) & (sequence <= end)
        return images.filter(pa.array(inside))

    def _newest_changes(self, touched_keys: Hashes, bucket: int, buckets: int) -> pa.Table:
        """Return the newest changes of one bucket's touched keys, under the mirror's
        names."""
        images = []
        for part_index in range(len(self.parts)):
            pieces = []
            for piece in self._images(part_index):
                hashes = self.fold.hashes(part_index, piece)
                is_in_bucket = membership(hashes, touched_keys) & (
                    hashes % np.uint64(buckets) == bucket
                )
                pieces.append(piece.filter(pa.array(is_in_bucket)))
            images.append(pa.concat_tables(pieces))
        changes, _ = self.fold.table(images)
        return self._with_dropped_columns_marked(changes)

    def _with_dropped_columns_marked(self, changes: pa.Table) -> pa.Table:
        """Mark dropped columns, so that the merge keeps the mirror's values in them."""
        marks = keep_flag_names(self.fold.schema.names)
        for name in self.fold.kept_columns:
            mark = marks[name]
            index = changes.schema.get_field_index(mark)
            flags = pa.repeat(pa.scalar(True), changes.num_rows)
            changes = changes.set_column(index, mark, pa.chunked_array([flags]))
        return changes

    def differences(self, wrong: pa.Table, details: Details) -> Iterator[ReplayDifference]:
        changes = self._with_mirror_names(wrong.slice(0, details.most_rows))
        return self._comparison.differences(
            changes, self._mirror_rows(), show_values=details.show_values
        )

    @property
    def _uncompared_columns(self) -> frozenset[str]:
        """The mirror's columns that are not compared."""
        return frozenset((*self.fold.kept_columns, *self.stamp_columns))

    @property
    def _comparison(self) -> RowComparison:
        names = [name for name in self.fold.schema.names if name not in self._uncompared_columns]
        return RowComparison(self.fold.key, names, self.has_soft_deletes)

    def _with_mirror_names(self, changes: pa.Table) -> pa.Table:
        spelled = changelog_spelling(self.fold.schema.names)
        mirror_names = {spelled[name]: name for name in self.fold.schema.names}
        # A stamp column, also one that the mirror only keeps, has the name of a mark of
        # the fold, so it must not appear twice.
        names = [
            name
            for name in changes.column_names
            if mirror_names.get(name) not in self._uncompared_columns
        ]
        return changes.select(names).rename_columns(
            [mirror_names.get(name, name) for name in names]
        )

    def _mirror_rows(self) -> Iterator[pa.Table]:
        marks = [DELETED_AT] if self.has_soft_deletes else []
        schema = pa.schema([*map(self.fold.schema.field, self._comparison.names), *marks])
        for batch in self.ports.mirrors.rows(self.state.mirror, schema.names, self.delta_version):
            yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)


def _examine_mirror(ports: RunPorts, state: TableState) -> tuple[int, pa.Schema, bool]:
    """Return the mirror's version, its columns except the one that marks deleted rows,
    and whether it has this column. Raise `TableError` unless the mirror exists, is as
    configured, and shows all changes of its changelog."""
    table = state.table
    if not state.is_complete:
        raise TableError(
            f"it is {state.in_words}", hint="`lockstep status` says what brings it back"
        )
    if state.missing_since is not None:
        raise TableError("its mirror lacks batches that others show", hint="`lockstep run`")
    if state.adopted_version is not None or state.mirror_schema_version is None:
        raise TableError(
            "its mirror was adopted with rows that its changelog does not have",
            hint=f"`lockstep verify {table.word}`",
        )
    examined_version = ports.ledger.examined_versions(ports.source.name).get(state.mirror)
    version = checked_version(ports, state, mirror_judgement(ports, state, examined_version))
    if version is None:
        raise TableError("its mirror is missing", hint=reload_hint(state.table))
    mirror_schema = ports.mirrors.schema(state.mirror, version)
    has_soft_deletes = ports.source.policies_of(state.table).marks_deleted
    if has_soft_deletes is not (DELETED_AT.name in mirror_schema.names):
        raise TableError(
            "its mirror was written under another `deletes` policy than is configured now",
            hint=reload_hint(state.table),
        )
    own_fields = [
        field for field in mirror_schema if not (has_soft_deletes and field.name == DELETED_AT.name)
    ]
    return version, pa.schema(own_fields), has_soft_deletes


def _lineage_of(ports: RunPorts, state: TableState, plan: MergePlan) -> ColumnLineage:
    """Return how the columns of the merged changes map to those of the mirror."""
    table, shown_version = state.table, state.mirror_schema_version
    assert shown_version is not None, "`_examine_mirror` requires it"
    version_numbers = [
        version.version for version in ports.ledger.schema_versions(ports.source.name, table)
    ]
    first = min((*plan.versions, shown_version), key=version_numbers.index)
    lineage = lineage_over(ports, versions_between(ports, table, first, shown_version))
    if lineage.reasons_to_reread:
        raise TableError(
            lineage.reasons_to_reread[0],
            hint=f"`lockstep verify {table.word} --repair` reads it again",
        )
    return lineage


def _with_new_files(content: TableContent, new_segments: Sequence[SegmentResult]) -> TableContent:
    """Return the content with new files in place of those that they will replace."""
    replacements = {
        (segment.table, segment.schema_version): segment.new_files
        for segment in new_segments
        if segment.batch == content.batch
    }
    segments = (
        replace(
            segment, files=replacements.get((segment.table, segment.schema_version), segment.files)
        )
        for segment in content.segments
    )
    return replace(content, segments=tuple(segments))


def _parts_of(
    ports: RunPorts,
    plan: MergePlan,
    lineage: ColumnLineage,
    mirror_schema: pa.Schema,
    table: TableName,
    scratch_files: frozenset[SegmentFile],
) -> Iterator[SegmentPart]:
    """Yield the changes of each structure version, by folder. `scratch_files`: the
    files that lie in the scratch folder."""
    for version in plan.versions:
        segments = (segment for segment in plan.segments if segment.schema_version == version)
        files = tuple(file for segment in segments for file in segment.files)
        if any(file.has_present for file in files):
            raise _NotComparable(
                "its row images omit columns, so its newest changes lack values",
                hint=f"`lockstep verify {table.word} --repair` compares it with MySQL",
            )
        part = lineage.part(version, above=plan.above)
        columns = dict(zip(lineage.schema.names, part.columns, strict=True))
        part_columns = tuple(columns.get(name, ColumnOrigin()) for name in mirror_schema.names)
        generation = ports.ledger.schema_version(ports.source.name, table, version).generation
        folder = changelog_path(ports.source.name, table, generation)
        for path, is_scratch in ((folder, False), (scratch_path(ports.source.name, folder), True)):
            files_in_folder = tuple(file for file in files if (file in scratch_files) is is_scratch)
            if files_in_folder:
                yield SegmentPart(path, files_in_folder, replace(part, columns=part_columns))
