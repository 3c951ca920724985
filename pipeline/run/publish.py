"""Publish: add the captured files of each table (segments) to its changelog, the Delta
table with all changes. A batch also adds rows to the system tables (transactions and
DDL statements).

This is the first part of the step *merge*. The files are already in the folders of the
Delta tables, so only metadata is committed. A batch that a changelog already has is
skipped, so this step can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lockstep.pipeline.mirror.generations import all_columns
from lockstep.pipeline.mirror.layout import published_schema
from lockstep.pipeline.mirror.system_tables import SYSTEM_TABLE_SCHEMAS
from lockstep.pipeline.model.batch import Batch, BatchContent
from lockstep.pipeline.model.lake_commit import WriteKind
from lockstep.pipeline.model.table_state import StoppedTable, TableState
from lockstep.pipeline.ports.ledger import batch_content, captured_batches
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogTable,
    changelog_table,
    correct_changelog,
    error_of_check,
    system_table,
)
from lockstep.pipeline.run.agreement.claim import claim_up_to
from lockstep.pipeline.run.commit_metadata import commit_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reload_hint
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need, SegmentsLost, TableError
from lockstep.pipeline.values.segment import Segment, SegmentFile, SystemTableSegment
from lockstep.pipeline.values.table import TableName


def publish(ports: RunPorts, lease: Lease) -> tuple[StoppedTable, ...]:
    """Publish all captured batches, oldest first. Return the tables that were
    quarantined, because another program wrote to their changelogs or files are lost."""
    source = ports.source.name
    batches = captured_batches(ports.ledger, source)
    if not batches:
        return ()
    claim_up_to(ports, batches[-1])
    publisher = _Publisher(ports, lease, ports.ledger.examined_versions(source))
    for batch in batches:
        states = ports.ledger.table_states(source)
        content = batch_content(ports.ledger, source, batch.id)
        for (table, generation), segments in _by_changelog(ports, content).items():
            publisher.publish_segments(batch, states[table], generation, segments)
        for segment in content.system_segments:
            publisher.publish_system_segment(batch, segment)
    publisher.record_versions()
    return tuple(publisher.quarantined)


@dataclass(slots=True)
class _Publisher:
    """One publishing of captured batches. `examined_before`, `examined_now`: by
    folder of a changelog, the version up to which its Delta log was checked for commits
    of other programs, before and now."""

    ports: RunPorts
    lease: Lease
    examined_before: Mapping[str, int]
    examined_now: dict[str, int] = field(default_factory=dict)
    quarantined: list[StoppedTable] = field(default_factory=list)

    def publish_segments(
        self,
        batch: Batch,
        state: TableState,
        generation: int,
        segments: Sequence[tuple[Segment, SchemaVersion]],
    ) -> None:
        """Publish the segments of one table, each with the version of its structure. If
        another program wrote to the changelog, the batch is published all the same, and
        the table is quarantined then: when it starts again, this batch is not published
        a second time."""
        table = state.table
        changelog = changelog_table(batch.source, state, generation)
        errors = self._correct_since_last_check(changelog)
        files = [file for segment, _ in segments for file in segment.files]
        try:
            schema = all_columns(
                published_schema(version.shown_structure, segment.files)
                for segment, version in segments
            )
            damage, later_errors = self._publish(changelog, batch, schema, files)
            errors += later_errors
            if damage is not None and not state.has_stopped:
                errors.append(lost_files_error(batch, table, damage))
        except TableError as error:
            errors.append(error)
        if errors:
            quarantine = StoppedTable.of(table, errors[0], str(batch.start.at))
            self.ports.ledger.quarantine(self.lease, quarantine)
            self.ports.progress.note(f"{table} was quarantined: {quarantine.reason}")
            self.quarantined.append(quarantine)

    def publish_system_segment(self, batch: Batch, segment: SystemTableSegment) -> None:
        """Publish rows of a system table. If another program wrote there, only a
        warning follows, because no mirror is made from these tables."""
        changelog = system_table(batch.source, segment.table)
        errors = self._correct_since_last_check(changelog)
        schema = SYSTEM_TABLE_SCHEMAS[segment.table]
        damage, later_errors = self._publish(changelog, batch, schema, segment.files)
        for error in (*errors, *later_errors):
            self.ports.progress.note(error.reason)
        if damage is not None:
            self.ports.progress.note(f"{segment.table} lacks rows of batch {batch.id}: {damage}")

    def _publish(
        self,
        changelog: ChangelogTable,
        batch: Batch,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
    ) -> tuple[str | None, list[TableError]]:
        """Publish files. If some are damaged, publish the others, and return a sentence
        about the damage. Return also the errors of other programs' commits between the
        check and this commit."""
        damage = None
        folder = changelog.folder
        publish = partial(
            self.ports.changelog.publish,
            folder,
            app_id=changelog.app_id,
            batch=batch.id,
            schema=schema,
            user_metadata=commit_metadata(
                self.ports, WriteKind.PUBLISH, changelog.table, [batch], files
            ),
            require_held=lambda: self.ports.ledger.require_held(self.lease),
        )
        try:
            commit = publish(files=files)
        except SegmentsLost as error:
            damage = error.message
            damage_sentences = self.ports.segments.damage_sentences
            commit = publish(files=[file for file in files if not damage_sentences(folder, [file])])
        examined_version = self.examined_now.get(folder)
        self.examined_now[folder] = max(commit.delta_version, self.examined_now.get(folder, -1))
        if examined_version is None or commit.delta_version <= examined_version + 1:
            return damage, []
        return damage, self._correct_foreign_commits(changelog, examined_version)

    def record_versions(self) -> None:
        """Record the versions up to which the Delta logs are checked now."""
        new_versions = {
            folder: version
            for folder, version in self.examined_now.items()
            if self.examined_before.get(folder) != version
        }
        if new_versions:
            self.ports.ledger.note_examined_versions(self.lease, new_versions)

    def _correct_since_last_check(self, changelog: ChangelogTable) -> list[TableError]:
        """Correct the changelog if another program made commits after the last check,
        and return their error. Later runs do not report these commits again; the table
        stays quarantined."""
        folder = changelog.folder
        examined_version = self.examined_before.get(folder)
        if examined_version is None or folder in self.examined_now:
            return []
        if self.ports.changelog.is_newest_version(folder, examined_version):
            self.examined_now[folder] = examined_version
            return []
        return self._correct_foreign_commits(changelog, examined_version)

    def _correct_foreign_commits(
        self, changelog: ChangelogTable, examined_version: int
    ) -> list[TableError]:
        """Correct the changelog after commits of another program. Return their error,
        unless they only moved rows to other files (compaction) and all recorded files
        are still there."""
        check = correct_changelog(self.ports, self.lease, changelog, examined_version)
        if check.version is not None:
            self.examined_now[changelog.folder] = check.version
        error = error_of_check(check)
        return [] if error is None else [error]


def lost_files_error(batch: Batch, table: TableName, damage: str) -> TableError:
    """Return the error of a table that lost a file with captured changes. `damage`: a
    sentence about it."""
    return TableError(
        f"captured changes of batch {batch.id} are lost: {damage}",
        hint=f"restore the file, or {reload_hint(table)}",
        need=Need.ROWS,
    )


def _by_changelog(
    ports: RunPorts, content: BatchContent
) -> dict[tuple[TableName, int], list[tuple[Segment, SchemaVersion]]]:
    """Return a batch's segments by table and by the generation of the changelog, a
    number in its path. Each group is one commit."""
    changelogs: dict[tuple[TableName, int], list[tuple[Segment, SchemaVersion]]] = {}
    history = ports.ledger.schema_versions(ports.source.name, *sorted(content.changed_tables))
    versions = {(version.table, version.version): version for version in history}
    for segment in content.segments:
        version = versions[segment.table, segment.schema_version]
        changelogs.setdefault((segment.table, version.generation), []).append((segment, version))
    return changelogs
