"""Revisions of batches, in memory: `pipeline.ports.revisions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.batch import BatchState
from pipeline.decisions import Lease
from pipeline.revision import RevisedSegment, Revision
from resources.postgres.refusals import refusal
from tests.twins.books import MemorySubject, RevisionEntry


class MemoryRevisions(MemorySubject):
    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        with self._step(lease) as books:
            if any(one.source == lease.source and one.open for one in books.revisions.values()):
                raise refusal("revisions_one_open")
            for one in segments:
                batch = books.batches.get(one.batch)
                known = books.segments.get(one.batch, ())
                if not any(one.is_of(one.batch, segment) for segment in known):
                    raise refusal("revised_files_segment")
                if batch is None or batch.state is not BatchState.ACKNOWLEDGED:
                    raise refusal("revised_files_of_acknowledged")
            revision = Revision(len(books.revisions) + 1, tuple(segments))
            books.revisions[revision.id] = RevisionEntry(lease.source, revision)
            return revision

    def open_revision(self, source: str) -> Revision | None:
        found = (o.revision for o in self.books.revisions.values() if o.source == source and o.open)
        return next(found, None)

    def last_revision(self, source: str) -> int:
        found = (one.revision.id for one in self.books.revisions.values() if one.source == source)
        return max(found, default=0)

    def settle_revision(self, lease: Lease, revision: Revision) -> None:
        with self._step(lease) as books:
            if not self._ended(lease, revision, "settled"):
                return
            for one in revision.segments:
                books.segments[one.batch] = tuple(
                    replace(segment, files=one.files) if one.is_of(one.batch, segment) else segment
                    for segment in books.segments[one.batch]
                )

    def give_up_revision(self, lease: Lease, revision: Revision) -> None:
        with self._step(lease):
            self._ended(lease, revision, "given up")

    def _ended(self, lease: Lease, revision: Revision, state: str) -> bool:
        """Whether it was open until now."""
        entry = self.books.revisions.get(revision.id)
        if entry is None or entry.source != lease.source:
            raise refusal("revisions_known")
        if entry.state == state:
            return False
        if not entry.open:
            raise refusal("revisions_end_once")
        self.books.revisions[revision.id] = replace(entry, state=state)
        return True
