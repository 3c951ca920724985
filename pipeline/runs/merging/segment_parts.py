"""A job's segment files, by what their images have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.changes.fold import Fold
from pipeline.changes.layout import changelog_names
from pipeline.changes.mapping import images_within, row_images
from pipeline.ports.mirror_writes import StagedFiles
from pipeline.ports.segments import SegmentStore
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import Job
from pipeline.segment import SegmentFile


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """Files of one version in their folder, and what they are to the mirror; `names`: the table's
    own columns in that version."""

    folder: str
    files: tuple[SegmentFile, ...]
    names: tuple[str, ...]
    part: StagedFiles

    def pieces(self, store: SegmentStore, marks: Sequence[str]) -> Iterator[pa.Table]:
        """Their images that count, some at a time."""
        present = [] if self.part.present is None else [self.part.present]
        return self._read(store, [*marks, *changelog_names(list(self.names)), *present])

    def keys(self, store: SegmentStore, fold: Fold) -> Iterator[pa.Table]:
        """The same without any column but the key."""
        places = map(fold.schema.get_field_index, fold.key)
        sources = [self.part.columns[at].source for at in places]
        return self._read(store, [source for source in sources if source is not None])

    def _read(self, store: SegmentStore, columns: Sequence[str]) -> Iterator[pa.Table]:
        wanted = ["_change_type", "_sequence", *columns]
        for piece in store.pieces(self.folder, self.files, wanted):
            yield row_images(images_within(piece, self.part))


def segment_parts(work: Workplace, job: Job) -> tuple[SegmentPart, ...]:
    """The segments' files by the version they were written under, those apart whose images leave
    columns out."""
    return tuple(
        SegmentPart(
            job.folders[version],
            files,
            job.lineage.names[version],
            job.lineage.part(
                version,
                tuple(work.mirrors.path(f"{job.folders[version]}/{file.path}") for file in files),
                above=job.task.plan.above,
                through=job.task.plan.through,
                partial=partial,
            ),
        )
        for version, partial, files in _by_kind(job)
    )


def _by_kind(job: Job) -> Iterator[tuple[int, bool, tuple[SegmentFile, ...]]]:
    for version in job.task.plan.versions:
        segments = (
            segment for segment in job.task.plan.segments if segment.schema_version == version
        )
        files = [file for segment in segments for file in segment.files]
        for partial in (False, True):
            some = tuple(file for file in files if file.partial is partial)
            if some:
                yield version, partial, some
