"""Carries out a revision: files that were captured again replace the files that
changelogs list.

The order is: record an open revision in the ledger, move the files into the changelogs'
folders, make one commit per changelog, close the revision. A process that finds an open
revision continues it. Each step can be repeated without effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lockstep.pipeline.mirror.layout import scratch_path
from lockstep.pipeline.model.foreign_commits import AllExpected
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogTable,
    changelog_columns,
    changelog_table,
    listing_difference,
    lost_files,
    reason_not_corrected,
    recorded_files,
)
from lockstep.pipeline.run.agreement.lake_logs import changelog_judgement
from lockstep.pipeline.run.commit_metadata import revision_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.replay.segment_comparison import SegmentResult
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SegmentsLost
from lockstep.pipeline.values.segment import (
    RevisedSegment,
    Revision,
    Segment,
    SegmentFile,
    batch_and_version_of,
    with_revised_names,
)
from lockstep.pipeline.values.table import TableName


def begin_revision(
    ports: RunPorts, lease: Lease, segments: Sequence[SegmentResult]
) -> Revision | None:
    """Record an open revision with the files that will replace others. If there are
    none, do nothing and return None."""
    to_replace = [segment for segment in segments if segment.has_replacement]
    if not to_replace:
        return None
    return ports.ledger.begin_revision(lease, [_revised_segment(segment) for segment in to_replace])


def _revised_segment(segment: SegmentResult) -> RevisedSegment:
    files = with_revised_names(segment.new_files)
    return RevisedSegment(segment.batch, segment.table, segment.schema_version, files)


def carry_out_revision(ports: RunPorts, lease: Lease, revision: Revision) -> None:
    """Move the new files into their changelogs' folders, list them in one commit per
    changelog, and close the revision. Raise `SegmentsLost` if a new file is missing.
    The revision is then given up, unless a changelog already lists some of its
    files."""
    segments = [_ReplacedSegment.of(ports, segment) for segment in revision.segments]
    source = ports.source.name
    ports.ledger.require_held(lease)
    for segment in segments:
        folder = segment.changelog.folder
        ports.segments.move_files(scratch_path(source, folder), folder, segment.new.files)
    changelogs = _by_changelog(segments)
    try:
        for changelog, changelog_segments in changelogs.items():
            _commit_revision(ports, lease, revision, changelog, changelog_segments)
    except SegmentsLost as error:
        if any(
            _lists_new_files(ports, changelog.folder, changelog_segments)
            for changelog, changelog_segments in changelogs.items()
        ):
            raise SegmentsLost(
                f"an interrupted replay cannot be finished: {error.message}",
                hint="restore the file from a copy of the lake, then run again; or take back the "
                f"replay with `lockstep recover --source {ports.source.name}`",
            ) from error
        ports.ledger.end_revision(lease, revision, settled=False)
        raise
    ports.ledger.end_revision(lease, revision, settled=True)
    ports.ledger.note_examined_versions(lease, dict(_versions_to_record(ports, changelogs)))
    ports.segments.delete_folder(scratch_path(ports.source.name))


@dataclass(frozen=True, slots=True)
class _ReplacedSegment:
    """A segment with its recorded files (`old`) and those that replace them (`new`)."""

    new: RevisedSegment
    old: Segment
    changelog: ChangelogTable

    @classmethod
    def of(cls, ports: RunPorts, new: RevisedSegment) -> _ReplacedSegment:
        source, schema_version = ports.source.name, new.schema_version
        segments = batch_content(ports.ledger, source, new.batch).segments
        [old] = [segment for segment in segments if new.is_of(new.batch, segment)]
        version = ports.ledger.schema_version(source, new.table, schema_version)
        state = ports.ledger.table_states(source)[new.table]
        return cls(new, old, changelog_table(source, state, version.generation))


def _versions_to_record(
    ports: RunPorts, changelogs: Iterable[ChangelogTable]
) -> Iterator[tuple[str, int]]:
    """Yield the changelogs to which nobody else committed since their logs were
    examined, with their newest versions. In the others, the next run must find and
    report the foreign commits."""
    examined_versions = ports.ledger.examined_versions(ports.source.name)
    for folder in (changelog.folder for changelog in changelogs):
        if folder in examined_versions:
            log = ports.changelog.log_since(folder, examined_versions[folder])
            judgement = changelog_judgement(ports, log, examined_versions[folder])
            if isinstance(judgement, AllExpected) and judgement.newest is not None:
                yield folder, judgement.newest


@dataclass(frozen=True, slots=True)
class _ListChange:
    """The change to a changelog's list of files: `removed` paths and `added` files.
    `refusal`: why the new files cannot be listed, or None. A foreign file may hold
    their rows together with rows of other batches; rows would then appear twice or be
    lost."""

    removed: Sequence[str]
    added: Sequence[SegmentFile]
    refusal: str | None


def _list_change(
    ports: RunPorts, changelog: ChangelogTable, segments: Iterable[_ReplacedSegment]
) -> _ListChange:
    recorded = recorded_files(ports, changelog)
    files = dict(recorded.files)
    new: dict[str, SegmentFile] = {}
    for segment in segments:
        for file in segment.old.files:
            files.pop(file.path, None)
        new |= {file.path: file for file in segment.new.files}
    mismatch = listing_difference(ports, changelog, replace(recorded, files=files | new))
    unlisted_files = [file for file in mismatch.missing if file.path not in new]
    lost_files_by_path = lost_files(ports, changelog, unlisted_files)
    foreign = [path for path in mismatch.surplus if batch_and_version_of(path) is None]
    refusal = reason_not_corrected(ports, changelog, foreign, lost_files_by_path)
    listed_again = [file for file in unlisted_files if file.path not in lost_files_by_path]
    return _ListChange(mismatch.surplus, [*new.values(), *listed_again], refusal)


def reasons_to_wait(
    ports: RunPorts, segments: Iterable[SegmentResult]
) -> dict[tuple[int, TableName, int], str]:
    """Return the segments whose new files must not be listed yet, by batch, table and
    version, with the reason. A foreign file has their rows, and perhaps the only copy
    of other rows."""
    replaced_segments = [
        _ReplacedSegment.of(ports, _revised_segment(segment))
        for segment in segments
        if segment.has_replacement
    ]
    return {
        (segment.new.batch, segment.new.table, segment.new.schema_version): reason
        for changelog, changelog_segments in _by_changelog(replaced_segments).items()
        if (reason := _list_change(ports, changelog, changelog_segments).refusal) is not None
        for segment in changelog_segments
    }


def _by_changelog(
    segments: Iterable[_ReplacedSegment],
) -> dict[ChangelogTable, list[_ReplacedSegment]]:
    by_changelog: dict[ChangelogTable, list[_ReplacedSegment]] = {}
    for segment in segments:
        by_changelog.setdefault(segment.changelog, []).append(segment)
    return by_changelog


def _commit_revision(
    ports: RunPorts,
    lease: Lease,
    revision: Revision,
    changelog: ChangelogTable,
    segments: Sequence[_ReplacedSegment],
) -> None:
    """List the new files and remove every file that is neither new nor recorded:
    replaced files, files of revisions that the ledger does not know, and foreign
    files."""
    folder, batch_ids = changelog.folder, [segment.new.batch for segment in segments]
    if ports.changelog.listed_files(folder) is None:
        raise SegmentsLost(
            f"the ledger records a changelog at {folder}, and there is none",
            hint="mount or restore the lake's folder, then repeat the replay; if the table was "
            "retired, leave it out: `--tables` names the others",
        )
    listing = _list_change(ports, changelog, segments)
    if listing.refusal is not None:
        raise SegmentsLost(
            listing.refusal, hint="repeat the replay for all batches whose files are lost"
        )
    ports.changelog.revise(
        folder,
        app_id=f"{changelog.app_id}/revision",
        revision=revision.id,
        schema=changelog_columns(ports, changelog, listing.added),
        removed_paths=listing.removed,
        files=listing.added,
        user_metadata=revision_metadata(
            ports,
            segments[0].new.table,
            (min(batch_ids), max(batch_ids)),
            [file for segment in segments for file in segment.new.files],
            revision.id,
        ),
        require_held=lambda: ports.ledger.require_held(lease),
    )


def _lists_new_files(ports: RunPorts, folder: str, segments: Sequence[_ReplacedSegment]) -> bool:
    """Return whether the changelog already lists some of the new files."""
    listed_files = ports.changelog.listed_files(folder) or {}
    return any(file.path in listed_files for segment in segments for file in segment.new.files)
