"""Files that were captured again, put in the place of those that the lake has.

Belongs here: which of them differ, and the order in which they become part of their changelogs.
Does not: reading the log (`recapture`), mirrors (`heal`).

First the ledger (an open revision), then the files at their place, then one commit per changelog,
then the ledger again. Whoever finds an open revision goes on with it: each step is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.batch import Batch
from pipeline.changes.generations import all_columns
from pipeline.changes.layout import application_id, changelog_path, published_schema
from pipeline.decisions import Lease
from pipeline.errors import SegmentsLost
from pipeline.replay.content import same_rows
from pipeline.revision import RevisedSegment, Revision, revised
from pipeline.runs.commit_records import revised_metadata
from pipeline.runs.context import Workplace
from pipeline.runs.replaying.recapture import AsRecorded, Recaptured
from pipeline.runs.replaying.scratch import ScratchStore, scratch_path
from pipeline.schema.history import SchemaVersion
from pipeline.segment import ENDINGS, Segment, SegmentFile
from pipeline.table import TableName


class Standing(StrEnum):
    """What a segment's files were found to be."""

    SAME = "same"
    """They hold what the log says."""
    DIFFERENT = "different"
    """They hold something else."""
    DAMAGED = "damaged"
    """They are not what was recorded, or the changelog does not list them."""
    UNTOLD = "untold"
    """They are what was recorded; the log was not read again."""


@dataclass(frozen=True, slots=True)
class SegmentFound:
    """One segment of a batch; `why`: what is wrong with its files, for DAMAGED. `fresh`: the
    files in the scratch folder that are to stand in their place."""

    batch: int
    table: TableName
    schema_version: int
    standing: Standing
    why: str | None = None
    fresh: tuple[SegmentFile, ...] = ()

    @property
    def replaced(self) -> bool:
        return bool(self.fresh)


def compare(
    work: Workplace, read: Recaptured | AsRecorded, only: frozenset[TableName] | None
) -> list[SegmentFound]:
    """What stands in the lake of a batch, held against what was read again. Files in the scratch
    folder that say nothing new go."""
    scratch = ScratchStore(work.segments, work.source.name)
    again: dict[tuple[TableName, int], Segment] = {}
    if isinstance(read, Recaptured):
        again = {(one.table, one.schema_version): one for one in read.segments}
    found = []
    for segment in work.ledger.segments(read.batch.id):
        fresh = again.get((segment.table, segment.schema_version))
        folder = _folder(work, segment)
        if only is None or segment.table in only:
            found.append(_found(work, scratch, read.batch, segment, fresh, folder))
        if fresh is not None and not (found and found[-1].fresh == fresh.files):
            scratch.remove(folder, fresh.files)
    return found


def _found(
    work: Workplace,
    scratch: ScratchStore,
    batch: Batch,
    segment: Segment,
    fresh: Segment | None,
    folder: str,
) -> SegmentFound:
    why = next(iter(work.segments.damaged(folder, segment.files)), None)
    if why is None:
        listed = work.changelog.listed(folder) or {}
        lacking = [file.path for file in segment.files if file.path not in listed]
        why = f"the changelog {folder} does not list {lacking[0]}" if lacking else None
    if why is not None:
        standing = Standing.DAMAGED
    elif fresh is None:
        standing = Standing.UNTOLD
    else:
        same = _same_content(work, scratch, folder, segment, fresh)
        standing = Standing.SAME if same else Standing.DIFFERENT
    files = () if fresh is None or standing is Standing.SAME else fresh.files
    return SegmentFound(batch.id, segment.table, segment.schema_version, standing, why, files)


def _same_content(
    work: Workplace, scratch: ScratchStore, folder: str, one: Segment, other: Segment
) -> bool:
    """Images that leave columns out are in files of their own."""
    return all(
        same_rows(
            work.segments.pieces(folder, _ending(one.files, ending)),
            scratch.pieces(folder, _ending(other.files, ending)),
        )
        for ending in range(len(ENDINGS))
    )


def _ending(files: Iterable[SegmentFile], more: int) -> list[SegmentFile]:
    return [file for file in files if file.listed + file.partial == more]


# -- a revision, carried out -------------------------------------------------------------------


def begin(work: Workplace, lease: Lease, found: Sequence[SegmentFound]) -> Revision | None:
    """Commit to the files that are to be replaced; None where none is."""
    wanted = [one for one in found if one.replaced]
    if not wanted:
        return None
    return work.ledger.begin_revision(
        lease,
        [
            RevisedSegment(one.batch, one.table, one.schema_version, revised(one.fresh))
            for one in wanted
        ],
    )


def carry_out(work: Workplace, lease: Lease, revision: Revision) -> None:
    """Bring the files to their changelogs, one commit each, and settle. `SegmentsLost` where a
    file is gone of which some changelog may have a part already."""
    parts = [_Part.of(work, segment) for segment in revision.segments]
    scratch = ScratchStore(work.segments, work.source.name)
    work.ledger.require_held(lease)
    for part in parts:
        scratch.bring(part.folder, part.folder, part.new.files)
    folders: dict[str, list[_Part]] = {}
    for part in parts:
        folders.setdefault(part.folder, []).append(part)
    try:
        looked = {f: _commit(work, lease, revision, f, some) for f, some in folders.items()}
    except SegmentsLost:
        if any(_is_done(work, revision, some[0]) for some in folders.values()):
            raise
        work.ledger.give_up_revision(lease, revision)
        raise
    work.ledger.settle_revision(lease, revision)
    work.ledger.note_looked(lease, looked)
    work.segments.clear(scratch_path(work.source.name))


@dataclass(frozen=True, slots=True)
class _Part:
    """A segment, its files of today, and those that are to come."""

    new: RevisedSegment
    old: Segment
    version: SchemaVersion
    folder: str

    @classmethod
    def of(cls, work: Workplace, new: RevisedSegment) -> _Part:
        [old] = [
            segment for segment in work.ledger.segments(new.batch) if new.is_of(new.batch, segment)
        ]
        number = new.schema_version
        version = work.ledger.schema_version(work.source.name, new.table, number)
        return cls(new, old, version, _folder(work, old))


def _commit(
    work: Workplace, lease: Lease, revision: Revision, folder: str, parts: Sequence[_Part]
) -> int:
    files = [file for part in parts for file in part.new.files]
    done = work.changelog.revise(
        folder,
        app_id=_application(work, parts[0]),
        revision=revision.id,
        schema=all_columns(
            published_schema(part.version.structure, part.new.files) for part in parts
        ),
        gone=[file.path for part in parts for file in part.old.files],
        files=files,
        words=_words(work, parts, files, revision),
        held=lambda: work.ledger.require_held(lease),
    )
    return done.delta_version


def _is_done(work: Workplace, revision: Revision, part: _Part) -> bool:
    return (work.changelog.recorded(part.folder, _application(work, part)) or 0) >= revision.id


def _application(work: Workplace, part: _Part) -> str:
    """Of its own: the changelog's counts batches."""
    table = part.new.table
    state = work.ledger.table_states(work.source.name)[table]
    own = application_id(work.source.name, state, "changelog", part.version.generation)
    return f"{own}/revision"


def _words(
    work: Workplace, parts: Sequence[_Part], files: Sequence[SegmentFile], revision: Revision
) -> str:
    numbers = [part.new.batch for part in parts]
    span = (min(numbers), max(numbers))
    return revised_metadata(work, parts[0].new.table, span, files, revision.id)


def _folder(work: Workplace, segment: Segment) -> str:
    source = work.source.name
    version = work.ledger.schema_version(source, segment.table, segment.schema_version)
    return changelog_path(source, segment.table, version.generation)
