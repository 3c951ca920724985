"""Publish: captured segments become part of their changelog tables, and what a batch adds to
the source's own tables part of those.

The first part of the step *merged*. Metadata commits only; a batch that a changelog
already has is skipped, so publishing again is always right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from pipeline.batch import Batch, BatchContent, BatchState
from pipeline.changes.generations import all_columns
from pipeline.changes.layout import published_schema
from pipeline.changes.source_tables import SCHEMAS
from pipeline.decisions import Lease
from pipeline.errors import Need, SegmentsLost, TableError
from pipeline.lake_commit import WriteKind
from pipeline.ports.ledger import content_of
from pipeline.runs.agreement.changelog_files import (
    ChangelogTable,
    changelog_table,
    set_right,
    source_table,
    told_of,
)
from pipeline.runs.agreement.claim import claim_up_to
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.runs.cures import reload_hint
from pipeline.schema.history import SchemaVersion
from pipeline.segment import Segment, SegmentFile, SourcePart
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableState


def publish(work: Workplace, lease: Lease) -> tuple[Quarantine, ...]:
    """Add every captured batch's segments to their changelogs, and its parts to the source's
    own tables, oldest batch first. The tables that were quarantined, because somebody else wrote
    to their changelogs."""
    source = work.source.name
    captured = [one for one in work.ledger.unfinished(source) if one.state is BatchState.CAPTURED]
    if not captured:
        return ()
    claim_up_to(work, captured[-1])
    publishing = _Publishing(work, lease, work.ledger.looked(source))
    for batch in captured:
        states = work.ledger.table_states(source)
        content = content_of(work.ledger, source, batch.id)
        for (table, generation), segments in _together(work, content).items():
            publishing.segments(batch, states[table], generation, segments)
        for part in content.source_parts:
            publishing.part(batch, part)
    publishing.note()
    return tuple(publishing.quarantined)


@dataclass(slots=True)
class _Publishing:
    """How far each changelog's log was looked at."""

    work: Workplace
    lease: Lease
    before: Mapping[str, int]
    after: dict[str, int] = field(default_factory=dict)
    quarantined: list[Quarantine] = field(default_factory=list)

    def segments(
        self,
        batch: Batch,
        state: TableState,
        generation: int,
        together: Sequence[tuple[Segment, SchemaVersion]],
    ) -> None:
        """One table's, each with the version its rows were written under. What somebody else did
        to its changelog quarantines the table, once the batch is in it: a table that comes back is
        not published a second time."""
        table = state.table
        changelog = changelog_table(batch.source, state, generation)
        errors: list[TableError] = []
        try:
            self._look(changelog)
        except TableError as error:
            errors.append(error)
        files = [file for segment, _ in together for file in segment.files]
        try:
            schema = all_columns(
                published_schema(version.shown_structure, segment.files)
                for segment, version in together
            )
            lost = self._publish(changelog, batch, schema, files, errors)
            if lost is not None and not state.has_stopped:
                errors.append(files_lost(batch, table, lost))
        except TableError as error:
            errors.append(error)
        for first in errors[:1]:
            place = str(batch.start.at)
            quarantined = Quarantine.of(table, first, place)
            self.work.ledger.quarantine(self.lease, quarantined)
            self.work.progress.note(f"{table} was quarantined: {quarantined.reason}")
            self.quarantined.append(quarantined)

    def part(self, batch: Batch, part: SourcePart) -> None:
        """One of the source's own tables: nothing is made of them, so that somebody else wrote
        there is said and no more."""
        changelog = source_table(batch.source, part.table)
        errors: list[TableError] = []
        try:
            self._look(changelog)
        except TableError as error:
            errors.append(error)
        lost = self._publish(changelog, batch, SCHEMAS[part.table], part.files, errors)
        for told in errors:
            self.work.progress.note(told.reason)
        if lost is not None:
            self.work.progress.note(f"{part.table} lacks rows of batch {batch.id}: {lost}")

    def _publish(
        self,
        changelog: ChangelogTable,
        batch: Batch,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
        errors: list[TableError],
    ) -> str | None:
        """All files; where some are damaged, which keeps nothing else waiting, those that are
        not, and what is wrong. `errors` gets what somebody else did between the look and our
        commit."""
        lost, folder = None, changelog.folder
        publish = partial(
            self.work.changelog.publish,
            folder,
            app_id=changelog.app_id,
            batch=batch.id,
            schema=schema,
            user_metadata=commit_metadata(
                self.work, WriteKind.PUBLISH, changelog.table, [batch], files
            ),
            held=lambda: self.work.ledger.require_held(self.lease),
        )
        try:
            done = publish(files=files)
        except SegmentsLost as error:
            lost = error.message
            damaged = self.work.segments.damaged
            done = publish(files=[file for file in files if not damaged(folder, [file])])
        seen = self.after.get(folder)
        self.after[folder] = max(done.delta_version, -1 if seen is None else seen)
        if seen is not None and done.delta_version > seen + 1:
            try:
                self._set_right(changelog, seen)
            except TableError as error:
                errors.append(error)
        return lost

    def note(self) -> None:
        moved = {f: at for f, at in self.after.items() if self.before.get(f) != at}
        if moved:
            self.work.ledger.note_looked(self.lease, moved)

    def _look(self, changelog: ChangelogTable) -> None:
        """At what was committed since the last look. What was seen once is not told again: the
        table stays quarantined until somebody resumes it."""
        folder = changelog.folder
        looked = self.before.get(folder)
        if looked is None or folder in self.after:
            return
        if self.work.changelog.ends_at(folder, looked):
            self.after[folder] = looked
        else:
            self._set_right(changelog, looked)

    def _set_right(self, changelog: ChangelogTable, looked: int) -> None:
        """`TableError` for what somebody else did, unless it only moved rows to other files and the
        recorded ones are all there."""
        found = set_right(self.work, self.lease, changelog, looked)
        if found.version is not None:
            self.after[changelog.folder] = found.version
        if (error := told_of(found)) is not None:
            raise error


def files_lost(batch: Batch, table: TableName, what: str) -> TableError:
    """For a table whose captured changes are in no file any more."""
    return TableError(
        f"captured changes of batch {batch.id} are lost: {what}",
        hint=f"restore the file, or {reload_hint(table)}",
        need=Need.ROWS,
    )


def _together(
    work: Workplace, content: BatchContent
) -> dict[tuple[TableName, int], list[tuple[Segment, SchemaVersion]]]:
    """A batch's segments by table and generation of its changelog: one commit each."""
    found: dict[tuple[TableName, int], list[tuple[Segment, SchemaVersion]]] = {}
    history = work.ledger.schema_versions(work.source.name, *sorted(content.changed))
    versions = {(version.table, version.version): version for version in history}
    for segment in content.segments:
        version = versions[segment.table, segment.schema_version]
        found.setdefault((segment.table, version.generation), []).append((segment, version))
    return found
