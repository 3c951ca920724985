"""Folds a table's row images (rows before and after each change) out of changelog files
to one change for each key, in staged files.

Images that do not fit into memory are sorted into buckets by key hash in a scratch
file, and folded bucket by bucket. This file and the staged files are temporary: after a
crash, the next run folds the changes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.mirror import coalescing
from lockstep.pipeline.mirror.fold import (
    Bounds,
    Fold,
    KeyChains,
    bounds_literals,
    key_bounds,
    union_of_bounds,
)
from lockstep.pipeline.mirror.layout import changelog_spelling, origin_names
from lockstep.pipeline.mirror.mapping import images_within, row_images
from lockstep.pipeline.mirror.strategy import MOST_IMAGES
from lockstep.pipeline.ports.mirror_writes import FoldedChanges, StagedFiles
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.ports.segments import NewEventFile, SegmentStore, Spool
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """Changelog files of one schema version. `mapping`: how the mirror's columns are
    made from the files."""

    folder: str
    files: tuple[SegmentFile, ...]
    mapping: StagedFiles

    def pieces(self, store: SegmentStore, marks: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the row images to merge, a piece at a time, with the columns of the
        mapping and `marks`."""
        sources = (column.source for column in self.mapping.columns)
        return self._read(store, [*marks, *sources, self.mapping.present_column])

    def keys(self, store: SegmentStore, fold: Fold) -> Iterator[pa.Table]:
        """Yield the same images with only their key columns."""
        indexes = map(fold.schema.get_field_index, fold.key)
        return self._read(store, [self.mapping.columns[index].source for index in indexes])

    def _read(self, store: SegmentStore, columns: Iterable[str | None]) -> Iterator[pa.Table]:
        distinct = dict.fromkeys(["_change_type", "_sequence", "_derived", *columns])
        names = [name for name in distinct if name is not None]
        for piece in store.pieces(self.folder, self.files, names):
            yield row_images(images_within(piece, self.mapping))


def image_count(parts: Iterable[SegmentPart]) -> int:
    return sum(file.images for part in parts for file in part.files)


def unpacked_bytes(store: SegmentStore, parts: Iterable[SegmentPart]) -> int:
    """Return how many bytes of memory the values of the files take, as an estimate."""
    return sum(store.unpacked_bytes(part.folder, part.files) for part in parts)


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


_FOLDING = Lock()
"""Held while a table is folded. Each fold has a memory limit. Only one table is folded
at a time, so that this is also the limit of the whole run."""


@contextmanager
def staged_fold(
    stores: FoldStores, name: str, fold: Fold, parts: Sequence[SegmentPart], bucket_count: int
) -> Iterator[StagedFold]:
    """Yield the folded images of these parts, in files that exist until the context
    ends. `bucket_count`: `buckets_for` these images; 0 if there are none."""
    files = _FoldFiles(stores.mirrors, name, fold)
    try:
        with _FOLDING:
            if bucket_count == 1:
                images = (part.pieces(stores.segments, fold.marks) for part in parts)
                files.add(*fold.table([pa.concat_tables(pieces) for pieces in images]))
            elif bucket_count:
                _fold_buckets(stores, fold, parts, bucket_count, files)
        yield files.staged_fold()
    finally:
        for path in files.paths:
            stores.mirrors.unstage(path)


def _fold_buckets(
    stores: FoldStores,
    fold: Fold,
    parts: Sequence[SegmentPart],
    bucket_count: int,
    files: _FoldFiles,
) -> None:
    """Sort the images into buckets of keys in a scratch file, then fold one bucket at a
    time."""
    # A first pass finds the chains: keys that must be folded together belong in one
    # bucket.
    chains = _chains(stores.segments, fold, parts)
    step_fold = fold.in_steps
    with closing(stores.spool.create_scratch_file()) as file:
        buckets = _Buckets(file, bucket_count)
        for part_index, part in enumerate(parts):
            for piece in part.pieces(stores.segments, fold.marks):
                step_index, images = fold.step(part_index, piece)
                keys = chains.roots(step_fold.hashes(step_index, images))
                bucket_numbers = (keys % np.uint64(bucket_count)).astype(np.int64)
                buckets.put(step_index, images, bucket_numbers)
        buckets.require_foldable()
        step_indexes = range(len(step_fold.parts))
        for images_by_step in buckets.read():
            files.add(*step_fold.table([images_by_step[index] for index in step_indexes]))


def _chains(store: SegmentStore, fold: Fold, parts: Sequence[SegmentPart]) -> KeyChains:
    """Return which keys must be folded together. These are keys that an UPDATE changed
    into each other, if images lack columns. Otherwise each key is folded alone."""
    chains = KeyChains()
    if not fold.has_partial_images:
        return chains
    for part_index, part in enumerate(parts):
        for piece in part.keys(store, fold):
            chains.add(piece, fold.hashes(part_index, piece))
    return chains


TOO_MANY_IMAGES = (
    "more of its row images belong together than can be folded in memory: changes of one row, or "
    "of rows whose keys changed into each other"
)


@dataclass(slots=True)
class _Buckets:
    """Row images of several parts in a scratch file, sorted into buckets. `size`: bytes
    in the file. `pieces`: by bucket, the part, offset and size of each of its pieces.
    `image_counts`: number of images in each bucket."""

    file: NewEventFile
    bucket_count: int
    size: int = 0
    schemas: dict[int, pa.Schema] = field(default_factory=dict)
    pieces: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    image_counts: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.image_counts = np.zeros(self.bucket_count, np.int64)

    def put(self, part_index: int, images: pa.Table, bucket_numbers: npt.NDArray[np.int64]) -> None:
        """Append images to the file. `bucket_numbers`: the bucket of each image."""
        self.schemas[part_index] = images.schema
        order = np.argsort(bucket_numbers, kind="stable")
        sorted_images = images.take(pa.array(order)).combine_chunks()
        counts = np.bincount(bucket_numbers, minlength=self.bucket_count)
        self.image_counts += counts
        ends = np.cumsum(counts)
        for bucket in np.flatnonzero(counts):
            bucket_images = sorted_images.slice(ends[bucket] - counts[bucket], counts[bucket])
            for batch in bucket_images.to_batches():
                self._write(int(bucket), part_index, batch.serialize())

    def _write(self, bucket: int, part_index: int, content: pa.Buffer) -> None:
        self.file.write(memoryview(content))
        self.pieces.setdefault(bucket, []).append((part_index, self.size, content.size))
        self.size += content.size

    def require_foldable(self) -> None:
        if self.image_counts.max(initial=0) > MOST_IMAGES:
            raise TableError(TOO_MANY_IMAGES, hint=coalescing.RESUME_HINT)

    def read(self) -> Iterator[Mapping[int, pa.Table]]:
        """Yield the images of each bucket that has any, as one table for each part; a
        part without images has an empty table."""
        for bucket in sorted(self.pieces):
            batches: dict[int, list[pa.RecordBatch]] = {index: [] for index in self.schemas}
            for part_index, offset, size in self.pieces[bucket]:
                content = pa.py_buffer(self.file.read(offset, size))
                batch = pa.ipc.read_record_batch(content, self.schemas[part_index])
                batches[part_index].append(batch)
            yield {
                part_index: pa.Table.from_batches(part_batches, self.schemas[part_index])
                for part_index, part_batches in batches.items()
            }


@dataclass(slots=True)
class _FoldFiles:
    """The files that are staged so far, with changes of `fold`. `bounds`: the bounds of
    the changes' keys. `lacking_columns`: columns that some changes lack."""

    mirrors: Mirrors
    name: str
    fold: Fold
    paths: list[str] = field(default_factory=list)
    bounds: Bounds = field(default_factory=dict)
    lacking_columns: set[str] = field(default_factory=set)

    def add(self, changes: pa.Table, lacking_columns: Sequence[str]) -> None:
        """Stage the result of `Fold.table` as a file."""
        self.lacking_columns.update(lacking_columns)
        self.bounds = union_of_bounds(self.bounds, self._bounds(changes, bool(lacking_columns)))
        self.paths.append(self.mirrors.stage(self.name, changes))

    def _bounds(self, changes: pa.Table, lacks_columns: bool) -> Bounds:
        names = self.fold.schema.names
        spelled = changelog_spelling(names)
        bounds = key_bounds(changes, {spelled[name]: name for name in self.fold.key})
        if not lacks_columns:
            return bounds
        # What the changes lack is looked up in the mirror by the keys of these columns.
        origins = origin_names(names)
        return union_of_bounds(
            bounds, key_bounds(changes, {origins[name]: name for name in self.fold.key})
        )

    def staged_fold(self) -> StagedFold:
        fold = self.fold
        lacking_columns = tuple(name for name in fold.schema.names if name in self.lacking_columns)
        changes = FoldedChanges(tuple(self.paths), fold.kept_columns, lacking_columns)
        return StagedFold(changes, bounds_literals(self.bounds, fold.schema))
