"""A job's row images, folded to the last one per key, in files for the lake to merge.

Belongs here: reading the images, keeping those of a bucket together until it is its turn, staging
what is left. Does not: the fold (`pipeline.changes.fold`), in how many buckets
(`pipeline.changes.strategy`).

A bucket waits in a scratch file, which is gone with this process, however that ends. So is what
was staged; a run that was cut off folds once more, and the commit is made once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.changes.coalescing import HINT
from pipeline.changes.fold import Fold
from pipeline.changes.key_bounds import Bounds, bounds_literals, joined_bounds, key_bounds
from pipeline.changes.key_hashes import KeyChains
from pipeline.changes.layout import changelog_names, origin_names
from pipeline.changes.strategy import MOST_IMAGES
from pipeline.errors import TableError
from pipeline.policies import Deletes
from pipeline.ports.mirror_writes import FoldedChanges
from pipeline.ports.mirrors import Mirrors
from pipeline.ports.segments import SegmentStore
from pipeline.ports.spool import EventFile, Spool
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import Job
from pipeline.runs.merging.segment_parts import SegmentPart

_FOLDING = Lock()
"""One table is folded at a time: what that takes is bounded per table."""

TOGETHER = (
    "more of its row images belong together than can be folded in memory: changes of one row, or "
    "of rows whose keys changed into each other"
)


@dataclass(frozen=True, slots=True)
class Staged:
    """Folded changes in files, and the bounds of the keys that they are about in the mirror."""

    changes: FoldedChanges
    bounds: tuple[tuple[str, str, str], ...]


class Stores(Protocol):
    """Where images are read, wait and are staged."""

    @property
    def segments(self) -> SegmentStore: ...
    @property
    def spool(self) -> Spool: ...
    @property
    def mirrors(self) -> Mirrors: ...


def folded_changes(
    work: Workplace, job: Job, parts: Sequence[SegmentPart], buckets: int
) -> AbstractContextManager[Staged]:
    """The images of a job's parts, folded."""
    fold = Fold(
        schema=job.lineage.schema,
        key=job.key,
        parts=tuple(part.part for part in parts),
        marks=("_committed_at",) if job.lineage.policies.deletes == Deletes.SOFT else (),
        numbered=bool(job.lineage.asked),
        doubtful=sys.maxsize if job.again else job.task.plan.read_until,
    )
    name = f"{work.source.name}-{job.task.intent.txn_version}"
    return staged_fold(work, name, fold, parts, buckets)


@contextmanager
def staged_fold(
    stores: Stores, name: str, fold: Fold, parts: Sequence[SegmentPart], buckets: int
) -> Iterator[Staged]:
    """What `fold` leaves of the parts' images, in files that last as long as the context."""
    files = _Files(stores.mirrors, name, fold)
    try:
        with _FOLDING:
            if buckets == 1:
                pieces = (part.pieces(stores.segments, fold.marks) for part in parts)
                files.add(fold, [pa.concat_tables(piece) for piece in pieces])
            elif buckets:
                _fold_buckets(stores, parts, fold, buckets, files)
        yield files.staged()
    finally:
        for path in files.paths:
            stores.mirrors.unstage(path)


def _fold_buckets(
    stores: Stores, parts: Sequence[SegmentPart], fold: Fold, buckets: int, files: _Files
) -> None:
    chains, steps = _chains(stores.segments, parts, fold), fold.in_steps
    with closing(stores.spool.scratch()) as file:
        waiting = _Buckets(file, buckets)
        for number, part in enumerate(parts):
            for piece in part.pieces(stores.segments, fold.marks):
                into, images = fold.step(number, piece)
                keys = chains.roots(steps.hashes(into, images))
                waiting.put(into, images, (keys % np.uint64(buckets)).astype(np.int64))
        waiting.require_foldable()
        for images in waiting.taken():
            files.add(steps, [images[number] for number in range(len(steps.parts))])


def _chains(store: SegmentStore, parts: Sequence[SegmentPart], fold: Fold) -> KeyChains:
    """Which keys belong together; each has its own number unless images leave columns out."""
    chains = KeyChains()
    for number, part in enumerate(parts if fold.partial else ()):
        for piece in part.keys(store, fold):
            chains.add(piece, fold.hashes(number, piece))
    return chains


@dataclass(slots=True)
class _Buckets:
    """Row images of several parts that wait in a file, by the bucket they are for."""

    file: EventFile
    count: int
    size: int = 0
    schemas: dict[int, pa.Schema] = field(default_factory=dict)
    places: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    images: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.images = np.zeros(self.count, np.int64)

    def put(self, part: int, images: pa.Table, buckets: npt.NDArray[np.int64]) -> None:
        """`buckets`: of each image."""
        self.schemas[part] = images.schema
        order = np.argsort(buckets, kind="stable")
        ordered = images.take(pa.array(order)).combine_chunks()
        counts = np.bincount(buckets, minlength=self.count)
        self.images += counts
        ends = np.cumsum(counts)
        for bucket in np.flatnonzero(counts):
            some = ordered.slice(ends[bucket] - counts[bucket], counts[bucket])
            for batch in some.to_batches():
                self._write(int(bucket), part, batch.serialize())

    def _write(self, bucket: int, part: int, content: pa.Buffer) -> None:
        self.file.write(memoryview(content))
        self.places.setdefault(bucket, []).append((part, self.size, content.size))
        self.size += content.size

    def require_foldable(self) -> None:
        if self.images.max(initial=0) > MOST_IMAGES:
            raise TableError(TOGETHER, hint=HINT)

    def taken(self) -> Iterator[Mapping[int, pa.Table]]:
        """The images of each bucket that has any, by their parts, which are all there."""
        for bucket in sorted(self.places):
            found: dict[int, list[pa.RecordBatch]] = {part: [] for part in self.schemas}
            for part, at, size in self.places[bucket]:
                content = pa.py_buffer(self.file.read(at, size))
                found[part].append(pa.ipc.read_record_batch(content, self.schemas[part]))
            yield {
                part: pa.Table.from_batches(batches, self.schemas[part])
                for part, batches in found.items()
            }


@dataclass(slots=True)
class _Files:
    """Folded images staged so far."""

    mirrors: Mirrors
    name: str
    fold: Fold
    paths: list[str] = field(default_factory=list)
    bounds: Bounds = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)

    def add(self, fold: Fold, images: Sequence[pa.Table]) -> None:
        """Fold images and stage what is left of them."""
        changes, lacking = fold.table(images)
        self.lacking.update(lacking)
        self.bounds = joined_bounds(self.bounds, self._bounds(changes, bool(lacking)))
        self.paths.append(self.mirrors.stage(self.name, changes))

    def _bounds(self, changes: pa.Table, looked_up: bool) -> Bounds:
        names = self.fold.schema.names
        spelled = dict(zip(names, changelog_names(names), strict=True))
        found = key_bounds(changes, {spelled[name]: name for name in self.fold.key})
        if not looked_up:
            return found
        origins = dict(zip(names, origin_names(names), strict=True))
        return joined_bounds(
            found, key_bounds(changes, {origins[name]: name for name in self.fold.key})
        )

    def staged(self) -> Staged:
        fold = self.fold
        lacking = tuple(name for name in fold.schema.names if name in self.lacking)
        changes = FoldedChanges(tuple(self.paths), fold.kept, lacking)
        return Staged(changes, bounds_literals(self.bounds, fold.schema))
