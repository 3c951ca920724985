"""Files that were captured again, put in the place of those that the lake has.

Belongs here: the order in which they become part of their changelogs. Does not: reading the log
(`recapture`), which of them differ (`segments_found`), mirrors (`heal`).

First the ledger (an open revision), then the files at their place, then one commit per changelog,
then the ledger again. Whoever finds an open revision goes on with it: each step is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.changes.generations import all_columns
from pipeline.changes.layout import application_id, changelog_path, published_schema
from pipeline.decisions import Lease
from pipeline.errors import SegmentsLost
from pipeline.revision import RevisedSegment, Revision, revised
from pipeline.runs.commit_records import revised_metadata
from pipeline.runs.context import Workplace
from pipeline.runs.replaying.scratch import ScratchStore, scratch_path
from pipeline.runs.replaying.segments_found import SegmentFound
from pipeline.schema.history import SchemaVersion
from pipeline.segment import Segment, SegmentFile, written_for


def begin(work: Workplace, lease: Lease, segments: Sequence[SegmentFound]) -> Revision | None:
    """Commit to the files that are to be replaced; None where none is."""
    wanted = [segment for segment in segments if segment.replaced]
    if not wanted:
        return None
    return work.ledger.begin_revision(
        lease,
        [
            RevisedSegment(
                segment.batch, segment.table, segment.schema_version, revised(segment.fresh)
            )
            for segment in wanted
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
    before = work.ledger.looked(work.source.name)
    seen = {f for f in folders if f in before and work.changelog.ends_at(f, before[f])}
    try:
        made = {f: _commit(work, lease, revision, f, some) for f, some in folders.items()}
    except SegmentsLost as error:
        if any(_is_begun(work, f, some) for f, some in folders.items()):
            raise SegmentsLost(
                f"a replay that was cut off cannot be ended: {error.message}",
                hint="restore the file from a copy of the lake, then run again; or `lockstep adopt "
                f"--source {work.source.name} --reason …` takes back what of it was done",
            ) from error
        work.ledger.give_up_revision(lease, revision)
        raise
    work.ledger.settle_revision(lease, revision)
    # What others committed to the rest is looked at before the next batch is published there.
    work.ledger.note_looked(lease, {f: version for f, version in made.items() if f in seen})
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
        folder = changelog_path(work.source.name, new.table, version.generation)
        return cls(new, old, version, folder)


def _commit(
    work: Workplace, lease: Lease, revision: Revision, folder: str, parts: Sequence[_Part]
) -> int:
    """All files of these segments go that are not the new ones, also those of revisions that the
    ledger does not know or that the lake has lost."""
    files = [file for part in parts for file in part.new.files]
    own = {(part.new.batch, part.new.schema_version) for part in parts}
    listed = work.changelog.listed(folder)
    if listed is None:
        raise SegmentsLost(
            f"there is no changelog at {folder}, and the ledger knows of one",
            hint="mount or restore the lake's folder, then repeat the replay",
        )
    others = (path for path in listed if written_for(path) in own)
    done = work.changelog.revise(
        folder,
        app_id=_application(work, parts[0]),
        revision=revision.id,
        schema=all_columns(
            published_schema(part.version.structure, part.new.files) for part in parts
        ),
        gone=[*(file.path for part in parts for file in part.old.files), *others],
        files=files,
        words=_words(work, parts, files, revision),
        held=lambda: work.ledger.require_held(lease),
    )
    return done.delta_version


def _is_begun(work: Workplace, folder: str, parts: Sequence[_Part]) -> bool:
    """Whether the changelog has some of the new files."""
    listed = work.changelog.listed(folder) or {}
    return any(file.path in listed for part in parts for file in part.new.files)


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
