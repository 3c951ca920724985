"""Commits one table's write to its mirror (the Delta table with the current rows):
first the changes of columns, then all changes of rows in one commit.

Changes of rows are folded first: of all images of a key, one is left. If they do not
fit into memory, they are sorted into buckets by key hash in a scratch file. This file
and the staged files are temporary: after a crash, the next run folds the changes again,
or finds that the commit was made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.mirror import coalescing
from lockstep.pipeline.mirror.clustering import clustered_by
from lockstep.pipeline.mirror.fold import (
    Bounds,
    Fold,
    KeyChains,
    bounds_literals,
    key_bounds,
    union_of_bounds,
)
from lockstep.pipeline.mirror.layout import (
    MARKS,
    changelog_names,
    changelog_path,
    changelog_schema,
    origin_names,
)
from lockstep.pipeline.mirror.mapping import images_within, row_images
from lockstep.pipeline.mirror.strategy import (
    MOST_IMAGES,
    Strategy,
    Way,
    WriteFacts,
    buckets_for,
    choose,
    only_inserts,
)
from lockstep.pipeline.mirror.widening import TypeChange, type_change
from lockstep.pipeline.model.claim import recovery_hint
from lockstep.pipeline.model.lake_commit import is_same_write
from lockstep.pipeline.ports.lease_check import RequireHeld
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    FoldedChanges,
    Merge,
    MirrorRows,
    MirrorTarget,
    MirrorWrite,
    Replace,
    Snapshot,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import MirrorCommit, Mirrors
from lockstep.pipeline.ports.segments import NewEventFile, SegmentStore, Spool
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.write.job import Job, Task, snapshot_paths
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.values.errors import ForeignCommit, TableError
from lockstep.pipeline.values.policies import Deletes, LakePolicies
from lockstep.pipeline.values.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """Changelog files of one schema version. `names`: the table's own columns in that
    version; `mapping`: how the mirror's columns are made from the files."""

    folder: str
    files: tuple[SegmentFile, ...]
    names: tuple[str, ...]
    mapping: StagedFiles

    def pieces(self, store: SegmentStore, marks: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the row images to merge, a piece at a time, with `marks` as further
        columns."""
        present = [] if self.mapping.present_column is None else [self.mapping.present_column]
        return self._read(store, [*marks, *changelog_names(list(self.names)), *present])

    def keys(self, store: SegmentStore, fold: Fold) -> Iterator[pa.Table]:
        """Yield the same images with only their key columns."""
        places = map(fold.schema.get_field_index, fold.key)
        sources = [self.mapping.columns[at].source for at in places]
        return self._read(store, [source for source in sources if source is not None])

    def _read(self, store: SegmentStore, columns: Sequence[str]) -> Iterator[pa.Table]:
        sources = {column.source for column in self.mapping.columns}
        stamps = [name for name in MARKS.names if name in sources]
        columns_to_read = [*dict.fromkeys(["_change_type", "_sequence", *stamps, *columns])]
        for piece in store.pieces(self.folder, self.files, columns_to_read):
            yield row_images(images_within(piece, self.mapping))


def segment_parts(ports: RunPorts, job: Job) -> tuple[SegmentPart, ...]:
    """Return the files of the job's segments, grouped by schema version. Files whose
    row images lack columns (`binlog_row_image=MINIMAL`) are groups of their own."""
    return tuple(
        SegmentPart(
            job.folders[version],
            files,
            job.lineage.own_names[version],
            job.lineage.part(
                version,
                tuple(ports.mirrors.path(f"{job.folders[version]}/{file.path}") for file in files),
                # Versions of former names have numbers up to 0; they get the RENAME's
                # stamp.
                stamp=None if version > 0 else job.read_stamp,
                above=job.above,
                through=job.task.plan.through,
                partial=lacks_columns,
            ),
        )
        for version, lacks_columns, files in _files_by_version(job)
    )


def _files_by_version(job: Job) -> Iterator[tuple[int, bool, tuple[SegmentFile, ...]]]:
    """Yield the files of each version, and whether their images lack columns."""
    for version in job.versions:
        segments = (segment for segment in job.segments if segment.schema_version == version)
        files = [file for segment in segments for file in segment.files]
        for lacks_columns in (False, True):
            files_alike = tuple(file for file in files if file.has_present is lacks_columns)
            if files_alike:
                yield version, lacks_columns, files_alike


FOUND_REASON: Final = "an earlier try had made the commit"
"""The reason of a write whose commit was in the log already."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A job's commit, and why it was written in that way: append, merge or replace."""

    commit: MirrorCommit
    reason: str


def find_commit_of(ports: RunPorts, task: Task) -> MirrorCommit | None:
    """Return the task's commit if it is in the mirror's log, else None. Raise
    `ForeignCommit` if a commit has the same transaction number but other batches: the
    ledger was restored from a backup, or a new ledger writes to an old lake."""
    intent = task.intent
    commit = ports.mirrors.find_commit(task.state.mirror, intent.app_id, intent.txn_version)
    if commit is not None and not is_same_write(commit.user_metadata, task.metadata):
        raise ForeignCommit(
            f"version {commit.delta_version} of {task.state.mirror} carries write "
            f"{intent.txn_version} of {intent.app_id}, but for another range of the log",
            hint=recovery_hint(ports.source.name),
        )
    return commit


def write_once(ports: RunPorts, job: Job, require_held: RequireHeld) -> WriteResult:
    """Make the job's commit, or find it. Raise `CommitConflict` if another writer
    committed first, and any error of `require_held`, such as `LeaseLost`. Each commit
    reads the mirror's newest version before it calls `require_held`; so if another run
    takes the lease and commits after that call, this commit conflicts."""
    commit = find_commit_of(ports, job.task)
    if commit is not None:
        return WriteResult(commit, FOUND_REASON)
    if job.task.structure is not None:
        ports.claims.store_structures(ports.source.name, [job.task.structure])
    if job.steps:
        ports.mirrors.evolve(
            job.task.state.mirror,
            job.steps,
            app_id=job.task.intent.app_id,
            txn_version=job.task.intent.txn_version,
            after_version=job.last_written_version,
            write_metadata=job.task.metadata,
            require_held=require_held,
        )
    parts = segment_parts(ports, job)
    strategy = choose(_strategy_facts(ports, job, parts))
    with _mirror_write(ports, job, parts, strategy) as write:
        commit = ports.mirrors.write(write, require_held)
    return WriteResult(commit, f"{strategy.reason}; {commit.scale_reason or FOUND_REASON}")


def _strategy_facts(ports: RunPorts, job: Job, parts: Sequence[SegmentPart]) -> WriteFacts:
    policies = job.lineage.policies
    return WriteFacts(
        has_key=bool(job.key),
        keeps_deleted=policies.keeps_rows,
        replaces=job.task.plan.replaces_rows,
        copy_reason="" if job.task.copied_rows is None else job.task.copied_rows.sentence,
        has_partial_images=any(part.mapping.present_column is not None for part in parts),
        image_count=sum(file.images for part in parts for file in part.files),
        unpacked_bytes=sum(
            ports.segments.unpacked_bytes(part.folder, part.files) for part in parts
        ),
        inserts_only=only_inserts(segment.counts for segment in job.task.plan.segments),
        inserts_are_new=job.all_new,
        may_have_kept_rows=job.lineage.has_deleted_at or policies.ignores_truncates,
        fills_columns=bool(job.lineage.columns_by_key),
        has_stamps=bool(job.lineage.stamps),
    )


@contextmanager
def _mirror_write(
    ports: RunPorts, job: Job, parts: Sequence[SegmentPart], strategy: Strategy
) -> Iterator[MirrorWrite]:
    """Yield the write; its staged files exist until the context ends."""
    target, images = _target(job), tuple(part.mapping for part in parts)
    match strategy.way:
        case Way.APPEND:
            yield Append(target, images)
        case Way.COUNT:
            yield CountedMerge(target, images)
        case Way.RECOUNT:
            yield CountedReplace(target, images, _snapshot(ports, job))
        case Way.MERGE:
            with folded_changes(ports, job, parts, strategy.bucket_count) as fold:
                # New columns are filled in for rows of any key.
                bounds = () if job.lineage.columns_by_key else fold.bounds
                yield Merge(target, job.key, fold.changes, bounds, _completion(ports, job))
        case Way.REPLACE:
            emptying_stamp = job.emptying_stamps[0] if job.emptying_stamps else None
            with (
                folded_changes(ports, job, parts, strategy.bucket_count) as fold,
                removed_rows(ports, job) as removed,
            ):
                snapshot = _snapshot(ports, job)
                if job.removes_kept_rows:
                    yield Replace(target, job.key, snapshot, fold.changes, drops_earlier_rows=True)
                else:
                    yield Replace(target, job.key, snapshot, fold.changes, emptying_stamp, removed)
        case _:
            assert_never(strategy.way)


def _target(job: Job) -> MirrorTarget:
    return mirror_target(
        job.lineage.policies,
        mirror=job.task.state.mirror,
        schema=job.lineage.schema,
        app_id=job.task.intent.app_id,
        txn_version=job.task.intent.txn_version,
        user_metadata=job.task.metadata,
        stamps=job.lineage.stamps,
    )


def mirror_target(
    policies: LakePolicies,
    *,
    mirror: str,
    schema: pa.Schema,
    app_id: str,
    txn_version: int,
    user_metadata: str,
    stamps: tuple[str, ...] = (),
) -> MirrorTarget:
    """Return the target of a write by these policies. Every write of a table's mirror
    gets its target here, so none can forget a policy and use its default."""
    return MirrorTarget(
        mirror=mirror,
        schema=schema,
        app_id=app_id,
        txn_version=txn_version,
        user_metadata=user_metadata,
        deletes=policies.deletes,
        readers=policies.readers,
        truncates=policies.truncates,
        stamps=stamps,
        cluster_by=clustered_by(policies.cluster_by, schema),
    )


def _snapshot(ports: RunPorts, job: Job) -> Snapshot:
    part, copied_rows = job.task.plan.snapshot, job.task.copied_rows
    if copied_rows is not None and copied_rows.copied_version is not None:
        path, version = (
            ports.mirrors.path(copied_rows.copied_version.mirror),
            copied_rows.copied_version.delta_version,
        )
        columns = job.lineage.mirror
        if job.read_stamp is not None:
            columns = job.lineage.with_stamp(columns, job.read_stamp)
        return (MirrorRows(path, version, columns),)
    if part is None:
        return ()
    return (job.lineage.part(part.version, snapshot_paths(ports, part), read=job.read_stamp),)


def _completion(ports: RunPorts, job: Job) -> StagedFiles | None:
    part = job.task.plan.completion
    if part is None or not job.lineage.columns_by_key:
        return None
    return job.lineage.completion(part.version, snapshot_paths(ports, part), part.low_sequence)


@contextmanager
def removed_rows(ports: RunPorts, job: Job) -> Iterator[FoldedChanges]:
    """Yield the rows that were removed when the table was emptied, as far as the job's
    images tell. They are deletions or rows that stay (`Fold.losses`), in files that
    exist until the context ends. Yield no changes if some images lack columns: then
    these rows stay as the mirror has them."""
    parts = _parts_with_removed_rows(ports, job) if job.emptying_stamps else []
    if not parts:
        yield FoldedChanges()
        return
    fold = Fold(
        schema=job.lineage.schema,
        key=job.key,
        parts=tuple(part.mapping for part in parts),
        marks=_mark_columns(job),
        losses=job.emptying_stamps,
        ignores_deletes=job.ignores_deletes,
        stamps=job.lineage.stamps,
    )
    images = sum(file.images for part in parts for file in part.files)
    unpacked_bytes = sum(ports.segments.unpacked_bytes(part.folder, part.files) for part in parts)
    name = f"{ports.source.name}-{job.task.intent.txn_version}"
    with staged_fold(
        ports, name, fold, parts, buckets_for(images, unpacked_bytes)
    ) as staged_fold_files:
        yield staged_fold_files.changes


def _mark_columns(job: Job) -> tuple[str, ...]:
    """Return the mark columns that a fold keeps. Soft deletes need the time of the
    deletion."""
    return ("_committed_at",) if job.lineage.policies.deletes is Deletes.SOFT else ()


def _parts_with_removed_rows(ports: RunPorts, job: Job) -> Sequence[SegmentPart]:
    """Return the files with images of rows that were removed when the table was
    emptied; none if some images lack columns."""
    plan, table = job.task.plan, job.task.state.table
    if any(file.has_present for segment in plan.segments_of_lost_rows for file in segment.files):
        return ()
    versions = ports.ledger.schema_versions(ports.source.name, table)
    version_numbers = {segment.schema_version for segment in plan.segments_of_lost_rows}
    parts = []
    for version in (version for version in versions if version.version in version_numbers):
        segments = [
            segment
            for segment in plan.segments_of_lost_rows
            if segment.schema_version == version.version
        ]
        files = tuple(file for segment in segments for file in segment.files)
        if files and (part := _mapping_of_removed_rows(job, version)) is not None:
            folder = changelog_path(ports.source.name, table, version.generation)
            names = tuple(column.name for column in version.shown_structure.columns)
            parts.append(SegmentPart(folder, files, names, part))
    return parts


def _mapping_of_removed_rows(job: Job, version: SchemaVersion) -> StagedFiles | None:
    """Return how the mirror's columns are made from the images of a version; None if
    the images lack its key. If the table was created again since, the lineage does not
    have this version: its columns are then matched by name."""
    line, above = job.lineage, job.task.plan.above
    if version.version in line.versions:
        return line.part(version.version, through=above)
    changelog_fields = changelog_schema(version.shown_structure)
    changelog_names_by_name = dict(
        zip(
            (comparable_name(column.name) for column in version.shown_structure.columns),
            changelog_names([column.name for column in version.shown_structure.columns]),
            strict=True,
        )
    )
    columns = []
    for column in line.schema:
        if column.name in line.stamps:
            columns.append(ColumnOrigin(column.name, column.type))
            continue
        source = changelog_names_by_name.get(comparable_name(column.name))
        source_type = None if source is None else changelog_fields.field(source).type
        is_castable = (
            source_type is not None
            and type_change(source_type, column.type) is not TypeChange.REREAD
        )
        columns.append(ColumnOrigin(source, source_type) if is_castable else ColumnOrigin())
    pairs = zip(line.schema, columns, strict=True)
    absent = {field.name for field, column in pairs if column.is_absent}
    if not absent.isdisjoint(job.key):
        return None
    return StagedFiles((), tuple(columns), through=above)


_FOLDING = Lock()
"""Held while a table is folded. Each fold has a memory limit; only one table is folded
at a time, so that it is the limit of the whole run."""

TOO_MANY_IMAGES = (
    "more of its row images belong together than can be folded in memory: changes of one row, or "
    "of rows whose keys changed into each other"
)


@dataclass(frozen=True, slots=True)
class StagedFold:
    """Folded changes in files. `bounds`: the least and the greatest value of each key
    column, as literals; only the mirror's files within these are read."""

    changes: FoldedChanges
    bounds: tuple[tuple[str, str, str], ...]


class FoldStores(Protocol):
    """The stores of a fold: `segments` has the images, `spool` the scratch file,
    `mirrors` the staged files."""

    @property
    def segments(self) -> SegmentStore: ...
    @property
    def spool(self) -> Spool: ...
    @property
    def mirrors(self) -> Mirrors: ...


def folded_changes(
    ports: RunPorts, job: Job, parts: Sequence[SegmentPart], buckets: int
) -> AbstractContextManager[StagedFold]:
    """Return a context with the job's changes, folded to one for each key."""
    fold = Fold(
        schema=job.lineage.schema,
        key=job.key,
        parts=tuple(part.mapping for part in parts),
        marks=_mark_columns(job),
        keeps_sequence=bool(job.lineage.columns_by_key),
        doubtful_through=sys.maxsize if job.may_repeat else job.task.plan.read_until,
        ignores_deletes=job.ignores_deletes,
        unmarked_through=0 if job.task.copied_rows is None else job.task.copied_rows.through,
    )
    name = f"{ports.source.name}-{job.task.intent.txn_version}"
    return staged_fold(ports, name, fold, parts, buckets)


@contextmanager
def staged_fold(
    stores: FoldStores, name: str, fold: Fold, parts: Sequence[SegmentPart], buckets: int
) -> Iterator[StagedFold]:
    """Yield the folded images of these parts, in files that exist until the context
    ends."""
    files = _StagedFiles(stores.mirrors, name, fold)
    try:
        with _FOLDING:
            if buckets == 1:
                pieces = (part.pieces(stores.segments, fold.marks) for part in parts)
                files.add(fold, [pa.concat_tables(piece) for piece in pieces])
            elif buckets:
                _fold_buckets(stores, parts, fold, buckets, files)
        yield files.staged_fold()
    finally:
        for path in files.paths:
            stores.mirrors.unstage(path)


def _fold_buckets(
    stores: FoldStores, parts: Sequence[SegmentPart], fold: Fold, buckets: int, files: _StagedFiles
) -> None:
    """Sort the images into buckets of keys in a scratch file, then fold one bucket at a
    time."""
    # A first pass finds the chains: keys that must be folded together belong in one
    # bucket.
    chains, steps = _chains(stores.segments, parts, fold), fold.in_steps
    with closing(stores.spool.create_scratch_file()) as file:
        buckets_on_disk = _Buckets(file, buckets)
        for part_index, part in enumerate(parts):
            for piece in part.pieces(stores.segments, fold.marks):
                step_index, images = fold.step(part_index, piece)
                keys = chains.roots(steps.hashes(step_index, images))
                buckets_on_disk.put(
                    step_index, images, (keys % np.uint64(buckets)).astype(np.int64)
                )
        buckets_on_disk.require_foldable()
        for images in buckets_on_disk.read_buckets():
            files.add(steps, [images[part_index] for part_index in range(len(steps.parts))])


def _chains(store: SegmentStore, parts: Sequence[SegmentPart], fold: Fold) -> KeyChains:
    """Return which keys must be folded together. These are keys that an UPDATE changed
    into each other, if images lack columns. Otherwise each key is folded alone."""
    chains = KeyChains()
    for part_index, part in enumerate(parts if fold.has_partial_images else ()):
        for piece in part.keys(store, fold):
            chains.add(piece, fold.hashes(part_index, piece))
    return chains


@dataclass(slots=True)
class _Buckets:
    """Row images of several parts in a scratch file, sorted into buckets. `size`: bytes
    in the file. `places`: by bucket, part, offset and length of each piece.
    `image_counts`: number of images in each bucket."""

    file: NewEventFile
    bucket_count: int
    size: int = 0
    schemas: dict[int, pa.Schema] = field(default_factory=dict)
    places: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    image_counts: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.image_counts = np.zeros(self.bucket_count, np.int64)

    def put(self, part: int, images: pa.Table, buckets: npt.NDArray[np.int64]) -> None:
        """Append images to the file. `buckets`: the number of each image's bucket."""
        self.schemas[part] = images.schema
        order = np.argsort(buckets, kind="stable")
        sorted_images = images.take(pa.array(order)).combine_chunks()
        counts = np.bincount(buckets, minlength=self.bucket_count)
        self.image_counts += counts
        ends = np.cumsum(counts)
        for bucket in np.flatnonzero(counts):
            bucket_images = sorted_images.slice(ends[bucket] - counts[bucket], counts[bucket])
            for batch in bucket_images.to_batches():
                self._write(int(bucket), part, batch.serialize())

    def _write(self, bucket: int, part: int, content: pa.Buffer) -> None:
        self.file.write(memoryview(content))
        self.places.setdefault(bucket, []).append((part, self.size, content.size))
        self.size += content.size

    def require_foldable(self) -> None:
        if self.image_counts.max(initial=0) > MOST_IMAGES:
            raise TableError(TOO_MANY_IMAGES, hint=coalescing.RESUME_HINT)

    def read_buckets(self) -> Iterator[Mapping[int, pa.Table]]:
        """Yield the images of each bucket that has any, as one table for each part; a
        part without images has an empty table."""
        for bucket in sorted(self.places):
            batches: dict[int, list[pa.RecordBatch]] = {part: [] for part in self.schemas}
            for part, at, size in self.places[bucket]:
                content = pa.py_buffer(self.file.read(at, size))
                batches[part].append(pa.ipc.read_record_batch(content, self.schemas[part]))
            yield {
                part: pa.Table.from_batches(part_batches, self.schemas[part])
                for part, part_batches in batches.items()
            }


@dataclass(slots=True)
class _StagedFiles:
    """The files with folded images that are staged so far. `bounds`: of their keys.
    `lacking_columns`: columns that some images lack."""

    mirrors: Mirrors
    name: str
    fold: Fold
    paths: list[str] = field(default_factory=list)
    bounds: Bounds = field(default_factory=dict)
    lacking_columns: set[str] = field(default_factory=set)

    def add(self, fold: Fold, images: Sequence[pa.Table]) -> None:
        """Fold images, and stage the result as a file."""
        changes, lacking_columns = fold.table(images)
        self.lacking_columns.update(lacking_columns)
        self.bounds = union_of_bounds(self.bounds, self._bounds(changes, bool(lacking_columns)))
        self.paths.append(self.mirrors.stage(self.name, changes))

    def _bounds(self, changes: pa.Table, has_lookups: bool) -> Bounds:
        names = self.fold.schema.names
        changelog_names_by_name = dict(zip(names, changelog_names(names), strict=True))
        bounds = key_bounds(
            changes, {changelog_names_by_name[name]: name for name in self.fold.key}
        )
        if not has_lookups:
            return bounds
        origins = origin_names(names)
        return union_of_bounds(
            bounds, key_bounds(changes, {origins[name]: name for name in self.fold.key})
        )

    def staged_fold(self) -> StagedFold:
        fold = self.fold
        lacking_columns = tuple(name for name in fold.schema.names if name in self.lacking_columns)
        changes = FoldedChanges(tuple(self.paths), fold.kept_columns, lacking_columns)
        return StagedFold(changes, bounds_literals(self.bounds, fold.schema))
