"""Images folded as a run folds them, out of segments in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.run.write.staged_fold import SegmentPart, StagedFold, staged_fold
from lockstep.pipeline.values.segment import SegmentFile
from tests.twins.lake import MemoryLake
from tests.twins.segments import MemorySegments
from tests.twins.spool import MemorySpool


@dataclass(frozen=True, slots=True)
class Room:
    mirrors: Mirrors
    segments: MemorySegments = field(default_factory=lambda: MemorySegments(MemoryLake()))
    spool: MemorySpool = field(default_factory=MemorySpool)


@contextmanager
def staged_images(
    mirrors: Mirrors,
    fold: Fold,
    images: Sequence[Sequence[pa.Table]],
    buckets: int,
    spool: MemorySpool | None = None,
) -> Iterator[StagedFold]:
    """`images`: for each part of the fold, in pieces."""
    room = Room(mirrors, spool=spool or MemorySpool())
    with staged_fold(room, "test", fold, list(_parts(room, fold, images)), buckets) as staged:
        yield staged
    assert all(file.closed for file in room.spool.made)


def _parts(room: Room, fold: Fold, images: Sequence[Sequence[pa.Table]]) -> Iterator[SegmentPart]:
    """A piece is a file, and its columns are called as the part's files call them."""
    for number, (part, pieces) in enumerate(zip(fold.parts, images, strict=True)):
        files: list[SegmentFile] = []
        for at, piece in enumerate(pieces):
            writer = room.segments.open(
                f"part {number}", batch=at, schema_version=1, schema=piece.schema
            )
            writer.write(piece)
            files += writer.close()
        yield SegmentPart(f"part {number}", tuple(files), part)
