"""Checks that changelogs (the Delta tables with all changes of a table) list exactly
the files that the ledger recorded, and corrects them.

Recorded files stay in the folder until a VACUUM deletes them. So whatever another
program did to the table, one commit of metadata corrects it. If recorded files are
lost, their rows may be in files that were not recorded. Then nothing is changed,
because listing the remaining recorded files would duplicate rows or lose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.generations import all_columns
from lockstep.pipeline.mirror.layout import application_id, changelog_path, published_schema
from lockstep.pipeline.mirror.system_tables import (
    SYSTEM_TABLE_SCHEMAS,
    system_table_app_id,
    system_table_path,
)
from lockstep.pipeline.model.changelog_listing import (
    FileDifference,
    ForeignFiles,
    RecordedFiles,
    file_difference,
    foreign_files,
)
from lockstep.pipeline.model.foreign_commits import AllExpected, Behind, changes_more_than_files
from lockstep.pipeline.model.lake_commit import RESTORE_OPERATION, LakeCommit, LogSince
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import LAST_BATCH, batch_content, captured_batches
from lockstep.pipeline.run.agreement.lake_logs import (
    changelog_error,
    changelog_judgement,
    keep_hint,
    replay_hint,
)
from lockstep.pipeline.run.commit_metadata import restatement_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    CommitConflict,
    LakeUnavailable,
    SegmentsLost,
    TableError,
)
from lockstep.pipeline.values.retries import PUBLISH
from lockstep.pipeline.values.segment import (
    SegmentFile,
    SystemTable,
    batch_and_version_of,
    batch_of,
)
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class ChangelogTable:
    """One changelog of a table, or a system table (`_transactions`, `_ddl`).
    `generation`: its number among the changelogs that the table has had."""

    folder: str
    app_id: str
    table: TableName | SystemTable
    generation: int = 1


def changelog_table(source: str, state: TableState, generation: int) -> ChangelogTable:
    folder = changelog_path(source, state.table, generation)
    app_id = application_id(source, state, "changelog", generation)
    return ChangelogTable(folder, app_id, state.table, generation)


def system_table(source: str, table: SystemTable) -> ChangelogTable:
    return ChangelogTable(
        system_table_path(source, table), system_table_app_id(source, table), table
    )


def changelogs_of(source: str, states: Iterable[TableState]) -> Iterator[ChangelogTable]:
    for state in states:
        for generation in range(1, state.changelog_generation + 1):
            yield changelog_table(source, state, generation)


def all_changelogs(ports: RunPorts) -> Iterator[ChangelogTable]:
    """Yield the changelogs of all tables, and the system tables."""
    source = ports.source.name
    yield from changelogs_of(source, ports.ledger.table_states(source).values())
    yield from (system_table(source, table) for table in SystemTable)


# -- what the ledger recorded ----------------------------------------------------------


def recorded_files_by_batch(
    ports: RunPorts, changelog: ChangelogTable
) -> dict[int, tuple[SegmentFile, ...]]:
    """Return the files of each captured batch, oldest first, without batches that were
    given up."""
    source, table = ports.source.name, changelog.table
    files: dict[int, tuple[SegmentFile, ...]] = {}
    if isinstance(table, SystemTable):
        for batch in ports.ledger.live_batches(source):
            for part in batch_content(ports.ledger, source, batch.id).system_segments:
                if part.table is table:
                    files[batch.id] = part.files
        return files
    schema_versions = {
        version.version
        for version in ports.ledger.schema_versions(source, table)
        if version.generation == changelog.generation
    }
    for content in ports.ledger.contents(source, 0, LAST_BATCH, [table]):
        for segment in content.segments:
            if segment.schema_version in schema_versions:
                files[content.batch] = (*files.get(content.batch, ()), *segment.files)
    return files


def recorded_files(ports: RunPorts, changelog: ChangelogTable) -> RecordedFiles:
    """Return the files that the changelog should list. A captured batch's files belong
    there once the batch is published."""
    source = ports.source.name
    table = changelog.table if isinstance(changelog.table, TableName) else None
    deleted_through = ports.ledger.deletion_notes(source, table).last_batch
    captured_ids = {batch.id for batch in captured_batches(ports.ledger, source)}
    newest_published = (
        ports.changelog.newest_batch(changelog.folder, changelog.app_id) if captured_ids else None
    )
    files: dict[str, SegmentFile] = {}
    waiting_paths = set[str]()
    for batch, batch_files in recorded_files_by_batch(ports, changelog).items():
        if batch in captured_ids and batch > (newest_published or 0):
            waiting_paths.update(file.path for file in batch_files)
        elif batch > deleted_through:
            files.update((file.path, file) for file in batch_files)
    return RecordedFiles(files, frozenset(waiting_paths), deleted_through)


def listing_difference(
    ports: RunPorts,
    changelog: ChangelogTable,
    recorded: RecordedFiles,
    foreign: ForeignFiles | None = None,
) -> FileDifference:
    """Return how the changelog's list differs from the recorded files; an empty
    difference if the changelog does not exist."""
    listed_files = ports.changelog.listed_files(changelog.folder)
    if listed_files is None:
        return FileDifference()
    batches_in = partial(batches_in_file, ports, changelog.folder)
    return file_difference(listed_files, recorded, foreign or ForeignFiles(), batches_in)


def batches_in_file(ports: RunPorts, folder: str, path: str) -> frozenset[int] | None:
    """Return the batches that a file has rows of; None if the file cannot be read."""
    batches = set[int]()
    try:
        for piece in ports.segments.pieces(folder, [SegmentFile(path)], ["_batch"]):
            batches.update(pc.unique(piece.column("_batch").drop_null()).to_pylist())
    except (LakeUnavailable, KeyError, ValueError, pa.ArrowException):
        return None
    return frozenset(batches)


def lost_files(
    ports: RunPorts, changelog: ChangelogTable, files: Iterable[SegmentFile]
) -> dict[str, str]:
    """Return the files that are missing or differ from what was recorded, each with the
    reason."""
    return {
        file.path: reason
        for file in files
        for reason in ports.segments.damage_sentences(changelog.folder, [file])
    }


# -- the correction --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangelogCheck:
    """The result of checking one changelog.

    - `difference`: how its list differed from the recorded files.
    - `error`: says what another program did to it.
    - `reason_not_corrected`: why it still does not list the recorded files. `cure`:
      what to do about that.
    - `commits`: the versions that corrected it. `is_revised`: a replay's revision
      corrected it.
    - `version`: the newest version of its log that was examined; None if there is none,
      or if the log ends before the version that was examined last.
    """

    changelog: ChangelogTable
    difference: FileDifference = field(default_factory=FileDifference)
    error: TableError | None = None
    reason_not_corrected: str | None = None
    cure: str | None = None
    commits: tuple[int, ...] = ()
    is_revised: bool = False
    version: int | None = None

    @property
    def is_corrected(self) -> bool:
        """True if it lists the recorded files now, and did not before."""
        return self.reason_not_corrected is None and (bool(self.commits) or self.is_revised)

    @property
    def sentence(self) -> str:
        """The result in words."""
        sentences = [] if self.error is None else [self.error.reason]
        if self.reason_not_corrected is not None:
            sentences.append(f"its changelog was not corrected: {self.reason_not_corrected}")
        elif self.difference:
            surplus = pluralize(len(self.difference.surplus), "file")
            lacks = f"does not list {len(self.difference.missing)} that were captured"
            sentences.append(f"its changelog lists {surplus} without a record and {lacks}")
        if self.is_corrected:
            sentences.append("the captured files are listed again")
        return "; ".join(sentences)


def error_of_check(check: ChangelogCheck) -> TableError | None:
    """Return the error for which a run quarantines (stops) the table. Return None if
    rows had only been moved to other files and the recorded files are listed again."""
    error, table = check.error, check.changelog.table
    if check.reason_not_corrected is not None:
        if error is None:
            return TableError(check.reason_not_corrected, hint=check.cure or replay_hint(table))
        return TableError(f"{error.reason}: {check.reason_not_corrected}", hint=error.hint)
    if error is None or check.version is None:
        return error
    return TableError(
        f"{error.reason}. Since this run it lists exactly the captured files",
        hint=f"find out who did it; `lockstep resume {table.word} --reason …` brings the table "
        "back",
    )


def correct_changelog(
    ports: RunPorts, lease: Lease | None, changelog: ChangelogTable, examined_version: int | None
) -> ChangelogCheck:
    """Judge the commits after `examined_version`, and make the changelog list the
    recorded files. If another program changed its columns, properties or single rows,
    `examined_version` is restored first. Without a lease nothing is written. Raise
    `ForeignCommit` for an error that concerns the whole source, `CommitConflict` if
    other programs keep committing."""
    check = ChangelogCheck(changelog)
    for _ in PUBLISH.tries():
        earlier_commits = check.commits
        check = _correct_once(ports, lease, changelog, examined_version, check)
        # After a commit of ours, look again: another program may have committed just
        # before it.
        if check.commits == earlier_commits or check.reason_not_corrected is not None:
            return check
    raise CommitConflict(
        f"other programs kept committing to the changelog {changelog.folder}",
        hint="only Lockstep may write changelogs: stop the other writer, then run again",
    )


def _correct_once(
    ports: RunPorts,
    lease: Lease | None,
    changelog: ChangelogTable,
    examined_version: int | None,
    earlier: ChangelogCheck,
) -> ChangelogCheck:
    """Examine the changelog once, and correct it by at most one commit. `earlier`: the
    result of earlier rounds."""
    folder = changelog.folder
    error = earlier.error
    log = LogSince(None)
    if examined_version is not None:
        log = ports.changelog.log_since(folder, examined_version)
    if examined_version is not None and error is None:
        judgement = changelog_judgement(ports, log, examined_version)
        error = changelog_error(ports, folder, judgement, changelog.table)
        if isinstance(judgement, Behind):
            return replace(earlier, error=error)
    check = replace(earlier, error=error, version=log.newest)
    commits_since_restore = list[LakeCommit]()
    for commit in log.commits:
        commits_since_restore.append(commit)
        if commit.is_ours and commit.operation == RESTORE_OPERATION:
            commits_since_restore.clear()
    try:
        if (
            lease is not None
            and examined_version is not None
            and any(map(changes_more_than_files, commits_since_restore))
        ):
            version = _restore(ports, lease, changelog, examined_version)
            return replace(check, commits=(*earlier.commits, version))
        recorded, foreign = recorded_files(ports, changelog), foreign_files(commits_since_restore)
        difference = listing_difference(ports, changelog, recorded, foreign)
        damage_by_path = lost_files(ports, changelog, difference.missing)
        files_to_list = [file for file in difference.missing if file.path not in damage_by_path]
        if not files_to_list and not difference.surplus:
            return check
        reason = reason_not_corrected(ports, changelog, difference.surplus, damage_by_path)
        check = replace(check, difference=earlier.difference or difference)
        if reason is not None:
            cure = _cure_of_lost_files(ports, changelog, damage_by_path)
            check = replace(check, reason_not_corrected=reason, cure=cure)
        if lease is not None and reason is None:
            version = _list_again(ports, lease, changelog, difference.surplus, files_to_list)
            check = replace(check, commits=(*earlier.commits, version))
    except TableError as table_error:
        check = replace(check, reason_not_corrected=table_error.reason)
    return check


def correct_changelogs(
    ports: RunPorts, lease: Lease, changelogs: Iterable[ChangelogTable] | None = None
) -> Iterator[ChangelogCheck]:
    """Correct the changelogs to which another program committed since the last run, or
    that list files without a captured file's name. Yield the results. The examined
    versions are not recorded, so that the next run reports the commits. `changelogs`:
    those to examine; None for all."""
    examined_versions = ports.ledger.examined_versions(ports.source.name)
    for changelog in all_changelogs(ports) if changelogs is None else changelogs:
        folder = changelog.folder
        if folder in examined_versions and _is_in_doubt(ports, folder, examined_versions[folder]):
            yield correct_changelog(ports, lease, changelog, examined_versions[folder])


def _is_in_doubt(ports: RunPorts, folder: str, examined_version: int) -> bool:
    log = ports.changelog.log_since(folder, examined_version)
    if not isinstance(changelog_judgement(ports, log, examined_version), AllExpected):
        return True
    return any(batch_of(path) is None for path in ports.changelog.listed_files(folder) or ())


def reason_not_corrected(
    ports: RunPorts,
    changelog: ChangelogTable,
    surplus: Sequence[str],
    damage_by_path: Mapping[str, str],
) -> str | None:
    """Return why a commit cannot correct a changelog, or None if it can. It cannot if
    surplus files may hold the only copy of some changes."""
    if not damage_by_path or not surplus:
        return None
    contents = [batches_in_file(ports, changelog.folder, path) for path in surplus]
    reasons = [
        reason
        for path, reason in damage_by_path.items()
        if any(batches is None or batch_of(path) in batches for batches in contents)
    ]
    if not reasons:
        return None
    return (
        f"{changelog.folder} lists {surplus[0]}, which was not recorded and may have the changes "
        f"of {len(reasons)} recorded files that are lost: {reasons[0]}"
    )


def _cure_of_lost_files(
    ports: RunPorts, changelog: ChangelogTable, damage_by_path: Mapping[str, str]
) -> str:
    """Return what to do if recorded files are lost and files of another program may
    have their changes: a replay, unless the log never had all of these changes."""
    table, source = changelog.table, ports.source.name
    batch_ids = {batch for path in damage_by_path if (batch := batch_of(path)) is not None}
    if not isinstance(table, TableName) or not batch_ids:
        return replay_hint(table)
    first, last = min(batch_ids), max(batch_ids)
    special_batches = ports.ledger.special_batches(source, first, last)
    for lost_batch in ports.ledger.live_batches(source, first, last):
        reason = special_batches.reason_not_in_log(lost_batch)
        if lost_batch.id in batch_ids and reason is not None:
            return (
                f"{keep_hint(table)}: no replay brings back the files of batch {lost_batch.id}, "
                f"because {reason}"
            )
    return f"{replay_hint(table)}, if the server still has the log; {keep_hint(table)}"


def _list_again(
    ports: RunPorts,
    lease: Lease,
    changelog: ChangelogTable,
    surplus: Sequence[str],
    files: Sequence[SegmentFile],
) -> int:
    """List recorded `files` and stop listing `surplus` in one commit; return its
    version."""
    ports.progress.note(
        f"{changelog.folder} lists the captured files again: it lacked {len(files)} of them, and "
        f"listed {pluralize(len(surplus), 'file')} of another program"
    )
    newest = _newest_batch(ports)
    try:
        revision = ports.changelog.revise(
            changelog.folder,
            app_id=f"{changelog.app_id}/restated",
            revision=newest,
            schema=changelog_columns(ports, changelog, files),
            removed_paths=surplus,
            files=files,
            user_metadata=restatement_metadata(ports, changelog.table, newest),
            require_held=lambda: ports.ledger.require_held(lease),
        )
    except SegmentsLost as error:
        raise TableError(error.message, hint=error.hint) from error
    return revision.delta_version


def _restore(ports: RunPorts, lease: Lease, changelog: ChangelogTable, version: int) -> int:
    ports.progress.note(f"{changelog.folder} is set back to version {version}")
    newest = _newest_batch(ports)
    return ports.changelog.restore(
        changelog.folder,
        version,
        app_id=f"{changelog.app_id}/restated",
        txn_version=newest,
        user_metadata=restatement_metadata(ports, changelog.table, newest),
        require_held=lambda: ports.ledger.require_held(lease),
    )


def changelog_columns(
    ports: RunPorts, changelog: ChangelogTable, files: Iterable[SegmentFile]
) -> pa.Schema:
    """Return the columns that recorded files bring to their changelog."""
    if isinstance(changelog.table, SystemTable):
        return SYSTEM_TABLE_SCHEMAS[changelog.table]
    versions = {
        version.version: version
        for version in ports.ledger.schema_versions(ports.source.name, changelog.table)
    }
    by_version: dict[int, list[SegmentFile]] = {}
    for file in files:
        batch_and_version = batch_and_version_of(file.path)
        if batch_and_version is not None and batch_and_version[1] in versions:
            by_version.setdefault(batch_and_version[1], []).append(file)
    return all_columns(
        published_schema(versions[number].shown_structure, version_files)
        for number, version_files in by_version.items()
    )


def _newest_batch(ports: RunPorts) -> int:
    """Return the newest captured batch, or 0."""
    cursor = ports.ledger.cursors(ports.source.name).captured
    return 0 if cursor is None else cursor.batch
