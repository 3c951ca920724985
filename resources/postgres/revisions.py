"""Revisions of batches, on Postgres: `pipeline.ports.revisions`."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.decisions import Lease
from pipeline.revision import RevisedSegment, Revision
from pipeline.segment import SegmentFile
from resources.postgres.rows import Row, of_table, table
from resources.postgres.session import Books


class PostgresRevisions(Books):
    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        with self._step(lease) as step:
            row = step.only("begin_revision", source=lease.source, token=lease.token)
            for segment in segments:
                of = {
                    "revision": row["id"],
                    "source": lease.source,
                    "batch": segment.batch,
                    "schema_version": segment.schema_version,
                    **of_table(segment.table),
                }
                for ordinal, file in enumerate(segment.files):
                    told = {
                        "path": file.path,
                        "images": file.images,
                        "size": file.size,
                        "sha256": file.sha256,
                    }
                    step.must("revise_file", "revised_files_segment", **of, ordinal=ordinal, **told)
            return Revision(row["id"], tuple(segments))

    def open_revision(self, source: str) -> Revision | None:
        rows = self._all("open_revision", source=source)
        return Revision(rows[0]["id"], tuple(map(_segment, rows))) if rows else None

    def last_revision(self, source: str) -> int:
        number: int = self._only("last_revision", source=source)["id"]
        return number

    def settle_revision(self, lease: Lease, revision: Revision) -> None:
        """Settling again changes nothing."""
        self._end(lease, revision, "settled")

    def give_up_revision(self, lease: Lease, revision: Revision) -> None:
        self._end(lease, revision, "given up")

    def _end(self, lease: Lease, revision: Revision, state: str) -> None:
        values = {"source": lease.source, "id": revision.id, "state": state}
        with self._step(lease) as step:
            if step.run("end_revision", **values) == 0:
                step.must("revision_ended", "revisions_known", **values)


def _segment(row: Row) -> RevisedSegment:
    found = zip(row["paths"], row["images"], row["sizes"], row["digests"], strict=True)
    files = tuple(SegmentFile(*file) for file in found)
    return RevisedSegment(row["batch"], table(row), row["schema_version"], files)
