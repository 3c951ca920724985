"""A changelog must list exactly the files that the ledger recorded: checked, and set right.

The recorded files stay in the folder until a VACUUM deletes them, so setting a changelog right is
one commit of metadata, whatever was done to the table. If files are gone for good, their rows may
be in files that were never recorded: then nothing is changed, since listing the remaining ones
would duplicate rows or lose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.batch import BatchState
from pipeline.changes.generations import all_columns
from pipeline.changes.layout import application_id, changelog_path, published_schema
from pipeline.changes.source_tables import SCHEMAS, source_table_id, source_table_path
from pipeline.decisions import Lease
from pipeline.errors import CommitConflict, ForeignCommit, LakeUnavailable, SegmentsLost, TableError
from pipeline.foreign_commits import Behind, Passed, reshaped
from pipeline.lake_commit import RESTORED, LogAbove
from pipeline.listing import Difference, ForeignFiles, RecordedFiles, difference, foreign_files
from pipeline.ports.ledger import content_of
from pipeline.retries import PUBLISH
from pipeline.runs.agreement.lake_logs import changelog_error, judged_changelog, replay_hint
from pipeline.runs.commit_records import restated_metadata
from pipeline.runs.context import Workplace
from pipeline.segment import SegmentFile, SourceTable, batch_of, written_for
from pipeline.table import TableName
from pipeline.table_state import TableState

_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class ChangelogTable:
    """One generation of a table's changelog, or a table of the source's own."""

    folder: str
    app_id: str
    table: TableName | SourceTable
    generation: int = 1


def changelog_table(source: str, state: TableState, generation: int) -> ChangelogTable:
    folder = changelog_path(source, state.table, generation)
    app_id = application_id(source, state, "changelog", generation)
    return ChangelogTable(folder, app_id, state.table, generation)


def source_table(source: str, table: SourceTable) -> ChangelogTable:
    return ChangelogTable(source_table_path(source, table), source_table_id(source, table), table)


def changelogs_of(source: str, states: Iterable[TableState]) -> Iterator[ChangelogTable]:
    for state in states:
        for generation in range(1, state.changelog_generation + 1):
            yield changelog_table(source, state, generation)


def all_changelogs(work: Workplace) -> Iterator[ChangelogTable]:
    """Yield those of the source's tables, and the tables of its own."""
    source = work.source.name
    yield from changelogs_of(source, work.ledger.table_states(source).values())
    yield from (source_table(source, table) for table in SourceTable)


# -- what the ledger recorded ------------------------------------------------------------------


def recorded_batches(
    work: Workplace, changelog: ChangelogTable
) -> dict[int, tuple[SegmentFile, ...]]:
    """Return the files of each batch that was captured and not given up, oldest first."""
    source, table = work.source.name, changelog.table
    found: dict[int, tuple[SegmentFile, ...]] = {}
    if isinstance(table, SourceTable):
        for batch in work.ledger.live_batches(source, 0, _ALL):
            for part in content_of(work.ledger, source, batch.id).source_parts:
                if part.table is table:
                    found[batch.id] = part.files
        return found
    versions = work.ledger.schema_versions(source, table)
    own = {one.version for one in versions if one.generation == changelog.generation}
    for content in work.ledger.contents(source, 0, _ALL, [table]):
        for segment in content.segments:
            if segment.schema_version in own:
                found[content.batch] = (*found.get(content.batch, ()), *segment.files)
    return found


def recorded_files(work: Workplace, changelog: ChangelogTable) -> RecordedFiles:
    """Return the files that the changelog should list. Of batches that wait for their merge, these
    are the files that are published already."""
    source = work.source.name
    table = changelog.table if isinstance(changelog.table, TableName) else None
    forgotten = work.ledger.forgotten(source, table).through
    captured = {
        batch.id for batch in work.ledger.unfinished(source) if batch.state is BatchState.CAPTURED
    }
    published = work.changelog.recorded(changelog.folder, changelog.app_id) if captured else None
    files: dict[str, SegmentFile] = {}
    waiting = set[str]()
    for batch, some in recorded_batches(work, changelog).items():
        if batch in captured and batch > (published or 0):
            waiting.update(file.path for file in some)
        elif batch > forgotten:
            files.update((file.path, file) for file in some)
    return RecordedFiles(files, frozenset(waiting), forgotten)


def found_in(
    work: Workplace,
    changelog: ChangelogTable,
    recorded: RecordedFiles,
    foreign: ForeignFiles | None = None,
) -> Difference:
    """Return how what the changelog lists differs; nothing if there is no table."""
    listed = work.changelog.listed(changelog.folder)
    if listed is None:
        return Difference()

    def batches_in(path: str) -> frozenset[int]:
        return batches_of(work, changelog.folder, path)

    return difference(listed, recorded, foreign or ForeignFiles(), batches_in)


def batches_of(work: Workplace, folder: str, path: str) -> frozenset[int]:
    """Return the batches of a file's rows, read from the rows; 0 if the file cannot be read."""
    found = set[int]()
    try:
        for piece in work.segments.pieces(folder, [SegmentFile(path, 0, 0, "")], ["_batch"]):
            found.update(pc.unique(piece.column("_batch").drop_null()).to_pylist())
    except (LakeUnavailable, KeyError, ValueError, pa.ArrowException):
        return frozenset({0})
    return frozenset(found)


def lost_files(
    work: Workplace, changelog: ChangelogTable, files: Iterable[SegmentFile]
) -> dict[str, str]:
    """Return the files that are missing or not as they were recorded, each with what is wrong."""
    found: dict[str, str] = {}
    for file in files:
        for why in work.segments.damaged(changelog.folder, [file]):
            found[file.path] = why
    return found


# -- set right ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was found in a changelog, and what became of it. `error`: what somebody else did to it;
    `left`: why it still does not list the ledger's files, as a sentence; `commits`: the versions
    that set it right; `revised`: whether a replay's revision did; `version`: the newest version of
    its log that was examined, None if the log ends before the last one examined, or if there was
    none."""

    changelog: ChangelogTable
    found: Difference = field(default_factory=Difference)
    error: TableError | None = None
    left: str | None = None
    commits: tuple[int, ...] = ()
    revised: bool = False
    version: int | None = None

    @property
    def righted(self) -> bool:
        """Whether it lists the recorded files now and did not before."""
        return self.left is None and (bool(self.commits) or self.revised)

    @property
    def told(self) -> str:
        """The same as a sentence."""
        said = [] if self.error is None else [self.error.reason]
        if self.left is not None:
            said.append(f"its changelog was not set right: {self.left}")
        elif self.found:
            lists = f"its changelog lists {len(self.found.surplus)} files that were not recorded"
            lacks = f"does not list {len(self.found.lacking)} that were captured"
            said.append(f"{lists} and {lacks}")
        if self.righted:
            said.append("the captured files are listed again")
        return "; ".join(said)


def told_of(agreement: Agreement) -> TableError | None:
    """Return the error that a run quarantines the table for; None if rows had only moved to other
    files and the recorded ones are listed again."""
    error, left, table = agreement.error, agreement.left, agreement.changelog.table
    if left is not None:
        reason = left if error is None else f"{error.reason}: {left}"
        return TableError(reason, hint=replay_hint(table) if error is None else error.hint)
    if error is None or agreement.version is None:
        return error
    return TableError(
        f"{error.reason}. It lists the captured files now",
        hint=f"find out who did it; `lockstep resume {table} --reason …` brings the table back",
    )


def set_right(
    work: Workplace, lease: Lease | None, changelog: ChangelogTable, looked: int | None
) -> Agreement:
    """Judge what was committed since version `looked`, and make the changelog list what was
    recorded. If somebody changed its columns, properties or single rows, version `looked` is
    restored first. Without a lease nothing is written. `ForeignCommit` for what concerns the whole
    source, `CommitConflict` if somebody keeps committing."""
    agreement = Agreement(changelog)
    for _ in PUBLISH.tries():
        before = agreement.commits
        agreement = _once(work, lease, changelog, looked, agreement)
        # Somebody may have committed between our reading of the log and our commit.
        if agreement.commits == before or agreement.left is not None:
            return agreement
    raise CommitConflict(
        f"Others kept committing to the changelog {changelog.folder}",
        hint="only Lockstep may write changelogs: stop the other writer, then run again",
    )


def _once(
    work: Workplace,
    lease: Lease | None,
    changelog: ChangelogTable,
    looked: int | None,
    so_far: Agreement,
) -> Agreement:
    folder, commits = changelog.folder, so_far.commits
    look = LogAbove(None) if looked is None else work.changelog.look(folder, looked)
    error = so_far.error
    if looked is not None and error is None:
        relation = judged_changelog(work, look, looked)
        told = changelog_error(work, folder, relation, changelog.table)
        if isinstance(told, ForeignCommit):
            raise told
        error = told
        if isinstance(relation, Behind):
            return replace(so_far, error=error)
    agreement = replace(so_far, error=error, version=look.newest)
    # What was committed before a version was restored no longer counts.
    again = (one.delta_version for one in look.commits if one.ours and one.operation == RESTORED)
    since = max(again, default=-1)
    others = [one for one in look.commits if one.delta_version > since]
    try:
        if lease is not None and looked is not None and any(map(reshaped, others)):
            made = _restored(work, lease, changelog, looked)
            return replace(agreement, commits=(*commits, made))
        found = found_in(work, changelog, recorded_files(work, changelog), foreign_files(others))
        lost = lost_files(work, changelog, found.lacking)
        back = [file for file in found.lacking if file.path not in lost]
        if not back and not found.surplus:
            return agreement
        left = why_left(work, changelog, found.surplus, lost)
        agreement = replace(agreement, found=so_far.found or found, left=left)
        if lease is not None and left is None:
            made = _listed_again(work, lease, changelog, found.surplus, back)
            agreement = replace(agreement, commits=(*commits, made))
    except TableError as refused:
        agreement = replace(agreement, left=refused.reason)
    return agreement


def agree(work: Workplace, lease: Lease) -> Iterator[Agreement]:
    """Set right the changelogs that somebody else committed to since they were last examined, and
    those that list files without a captured file's name. The versions examined are not recorded, so
    that the next run reports the commits."""
    looked = work.ledger.looked(work.source.name)
    for changelog in all_changelogs(work):
        folder = changelog.folder
        if folder in looked and _is_in_doubt(work, folder, looked[folder]):
            yield set_right(work, lease, changelog, looked[folder])


def _is_in_doubt(work: Workplace, folder: str, looked: int) -> bool:
    look = work.changelog.look(folder, looked)
    if not isinstance(judged_changelog(work, look, looked), Passed):
        return True
    return any(batch_of(path) is None for path in work.changelog.listed(folder) or ())


def why_left(
    work: Workplace, changelog: ChangelogTable, surplus: Sequence[str], lost: Mapping[str, str]
) -> str | None:
    """Return why a commit cannot set a changelog right: surplus files may hold the only copy of
    some changes."""
    if not lost or not surplus:
        return None
    inside = {batch for path in surplus for batch in batches_of(work, changelog.folder, path)}
    only = [why for path, why in lost.items() if 0 in inside or batch_of(path) in inside]
    if not only:
        return None
    return (
        f"{changelog.folder} lists {surplus[0]}, which was not recorded, and may have changes "
        f"there of {len(only)} recorded files that are lost: {only[0]}"
    )


def _listed_again(
    work: Workplace,
    lease: Lease,
    changelog: ChangelogTable,
    surplus: Sequence[str],
    back: Sequence[SegmentFile],
) -> int:
    work.progress.note(
        f"{changelog.folder} lists the captured files again: {len(back)} of them were not listed, "
        f"and {len(surplus)} of somebody else's were"
    )
    newest = _newest(work)
    try:
        done = work.changelog.revise(
            changelog.folder,
            app_id=f"{changelog.app_id}/restated",
            revision=newest,
            schema=columns_of(work, changelog, back),
            gone=surplus,
            files=back,
            words=restated_metadata(work, changelog.table, newest),
            held=lambda: work.ledger.require_held(lease),
        )
    except SegmentsLost as error:
        raise TableError(error.message, hint=error.hint) from error
    return done.delta_version


def _restored(work: Workplace, lease: Lease, changelog: ChangelogTable, version: int) -> int:
    work.progress.note(f"{changelog.folder} shows version {version} again")
    return work.changelog.restore(
        changelog.folder,
        version,
        app_id=f"{changelog.app_id}/restated",
        number=_newest(work),
        words=restated_metadata(work, changelog.table, _newest(work)),
        held=lambda: work.ledger.require_held(lease),
    )


def columns_of(
    work: Workplace, changelog: ChangelogTable, files: Iterable[SegmentFile]
) -> pa.Schema:
    """Return the columns that recorded files bring to their changelog."""
    if isinstance(changelog.table, SourceTable):
        return SCHEMAS[changelog.table]
    known = {
        one.version: one for one in work.ledger.schema_versions(work.source.name, changelog.table)
    }
    by_version: dict[int, list[SegmentFile]] = {}
    for file in files:
        named = written_for(file.path)
        if named is not None and named[1] in known:
            by_version.setdefault(named[1], []).append(file)
    return all_columns(
        published_schema(known[version].shown_structure, some)
        for version, some in by_version.items()
    )


def _newest(work: Workplace) -> int:
    cursor = work.ledger.cursors(work.source.name).captured
    return 0 if cursor is None else cursor.batch
