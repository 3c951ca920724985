"""Prepares a table's write to its mirror (the Delta table with the current rows): reads
from the ledger everything that the merge needs.

A batch is a part of the log that a run captured at once. Its segments are files with
the changes of one table. While a table is stopped, batches are acknowledged without it,
and its mirror lacks them. Their segments are in the table's changelog and are merged
like others. Rows that such a batch read from the source by SELECT are deleted by then,
so the table has to be read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

import pyarrow as pa

from lockstep.pipeline.mirror.evolution import evolution_steps
from lockstep.pipeline.mirror.layout import DELETED_AT, changelog_path, snapshot_path
from lockstep.pipeline.mirror.lineage import ColumnLineage, ColumnsRead, lineage
from lockstep.pipeline.mirror.merging import (
    SETTLING_EVENTS,
    ChangelogOrigin,
    MergePlan,
    contents_since_settled,
    plan_merge,
)
from lockstep.pipeline.model.batch import Batch, BatchState, TableContent
from lockstep.pipeline.model.lake_commit import WriteKind
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import table_contents
from lockstep.pipeline.ports.mirror_writes import MirrorStep
from lockstep.pipeline.run.commit_metadata import commit_metadata
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reread_error, resume_hint
from lockstep.pipeline.run.write.copying import (
    CopiedRows,
    find_copied_rows,
    own_columns,
    spliced_history,
)
from lockstep.pipeline.run.write.origin import origin_of_write, reason_unreadable
from lockstep.pipeline.run.write.overlaps import may_repeat_changes, may_repeat_merged
from lockstep.pipeline.run.write.stamps import find_emptying_stamps, find_read_stamp
from lockstep.pipeline.schema.context import zone_of
from lockstep.pipeline.schema.fills import StatementMoment
from lockstep.pipeline.schema.history import (
    Knowledge,
    SchemaStatement,
    SchemaVersion,
    is_out_of_order,
    valid_versions,
)
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.errors import MirrorRefused, Need, TableError
from lockstep.pipeline.values.intent import Intent, MirrorVersion, NewestWrites
from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies
from lockstep.pipeline.values.segment import RowCounts, Segment, batch_of
from lockstep.pipeline.values.stamps import Stamp
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Task:
    """One table's write, as far as the ledger alone determines it.

    - `intent`: the ledger's record of the write, made before the write.
    - `batches`: the batches with content of the table, oldest first.
    - `plan`: what is merged.
    - `metadata`: the user metadata of the commit.
    - `structure`: the structure that the mirror shows after the write; None if it is
      unknown.
    - `copied_rows`: rows of another mirror version with which this one begins; None
      without any.
    """

    intent: Intent
    state: TableState
    batches: tuple[Batch, ...]
    plan: MergePlan
    metadata: str
    structure: TableSchema | None
    copied_rows: CopiedRows | None = None

    @property
    def counts(self) -> RowCounts:
        return sum((segment.counts for segment in self.plan.segments), RowCounts())

    @property
    def rows_read(self) -> int:
        """Number of rows that were read from the source for this write."""
        return sum(file.images for files in self.plan.read_files for file in files.files)


@dataclass(frozen=True, slots=True)
class Job:
    """A task that is ready to be carried out.

    - `lineage`: where each column of the mirror comes from.
    - `key`: the columns by which rows are matched.
    - `steps`: changes of the mirror's columns.
    - `segments`: the changes to merge. Their schema versions are numbered as in
      `lineage`. Only changes with a sequence number above `above` are merged.
    - `folders`: the changelog's folder of each version.
    - `last_written_version`: the Delta version that the table's last finished write
      made; before the first write, that of the mirror that the ledger took over, or -1.
    - `emptying_stamps`: the stamps of the changes after which the table had no row;
      empty unless the mirror keeps deleted rows and this write does not remove them.
    - `read_stamp`: the stamp of rows that were read from the source, or copied; None
      without them.
    - `may_repeat`: earlier batches may have read and merged some of the changes.
    - `inserts_are_new`: no row that the log inserts can be in the mirror yet.
    - `removes_deleted_rows`: deleted rows that the mirror kept are removed by this
      write, because they show more than the settings allow."""

    task: Task
    lineage: ColumnLineage
    key: tuple[str, ...]
    steps: tuple[MirrorStep, ...]
    segments: tuple[Segment, ...]
    folders: Mapping[int, str]
    last_written_version: int
    emptying_stamps: tuple[Stamp, ...]
    read_stamp: Stamp | None
    may_repeat: bool
    inserts_are_new: bool
    removes_deleted_rows: bool = False

    @property
    def above(self) -> int:
        """The sequence number after which changes are merged."""
        copied_rows = self.task.copied_rows
        return self.task.plan.above if copied_rows is None else copied_rows.above

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions whose images are merged, ascending."""
        return tuple(sorted({segment.schema_version for segment in self.segments}))


@dataclass(frozen=True, slots=True)
class TableRecords:
    """The ledger's records of a table that waits for a merge.

    - `contents`: the table's content of the batches that the mirror lacks.
    - `history`: all versions of its structure.
    - `newest_writes`: the newest writes to its mirror.
    - `statements`: by number, the statements that made the versions after the one that
      the mirror shows.
    - `clear_through`: the batch up to which the lake must be cleared of what the
      settings no longer show; 0 for none.
    """

    contents: Sequence[TableContent]
    history: Sequence[SchemaVersion]
    newest_writes: NewestWrites
    statements: Mapping[int, SchemaStatement]
    clear_through: int = 0

    @property
    def versions(self) -> dict[int, SchemaVersion]:
        return {version.version: version for version in self.history}

    @property
    def removes_deleted_rows(self) -> bool:
        """True if the settings show less than at the last write of the mirror."""
        settled_write, through = self.newest_writes.settled_write, self.clear_through
        return through > 0 and (settled_write is None or settled_write.intent.last_batch <= through)


def table_records(
    ports: RunPorts,
    missing_batches: Mapping[TableName, Sequence[Batch]],
    states: Mapping[TableName, TableState],
    app_ids: Mapping[TableName, str],
) -> dict[TableName, TableRecords]:
    """Return the ledger's records of all these tables. The number of queries does not
    grow with the number of tables, unless their mirrors lack different batches.
    `missing_batches`: the batches that each mirror lacks, oldest first. `app_ids`: the
    Delta application ids of the mirrors."""
    if not missing_batches:
        return {}
    ledger, source = ports.ledger, ports.source.name
    spans: dict[tuple[int, int], list[TableName]] = {}
    for table, batches in missing_batches.items():
        spans.setdefault((batches[0].id, batches[-1].id), []).append(table)
    contents: dict[TableName, list[TableContent]] = {table: [] for table in missing_batches}
    for span, tables in spans.items():
        # `publish` has asked for one batch with all its tables, so the ledger has the
        # answer in memory.
        tables_to_read = None if span[0] == span[1] else tables
        for content in ledger.contents(source, *span, tables_to_read):
            content_by_table = content.by_table()
            for table in content.changed_tables.intersection(tables):
                contents[table].append(content_by_table[table])
    history: dict[TableName, list[SchemaVersion]] = {table: [] for table in missing_batches}
    statement_numbers = set[int]()
    for version in ledger.schema_versions(source, *missing_batches):
        history[version.table].append(version)
        shown_version = states[version.table].mirror_schema_version or 0
        if version.statement_number is not None and version.version > shown_version:
            statement_numbers.add(version.statement_number)
    statements = ledger.statements(source, statement_numbers)
    newest_writes = ledger.newest_writes(source, app_ids.values())
    clear_through = dict[TableName, int]()
    for note in ledger.uncleared_values(source):
        if note.kept_because is None:
            newest_batch = max(clear_through.get(note.table, 0), note.tightening.last_batch)
            clear_through[note.table] = newest_batch
    return {
        table: TableRecords(
            contents[table],
            history[table],
            newest_writes[app_ids[table]],
            statements,
            clear_through=clear_through.get(table, 0),
        )
        for table in missing_batches
    }


def task_of(
    ports: RunPorts,
    records: TableRecords,
    intent: Intent,
    state: TableState,
    batches: Sequence[Batch],
    *,
    without_changes: bool = False,
) -> Task:
    """Return the task of one write. `batches`: those that the table's mirror lacks,
    oldest first; the write covers those of its intent. `without_changes`: no change is
    merged, because the table was dropped and its mirror keeps its rows. Raise
    `TableError` if none of the batches is left."""
    covered_batches = [
        batch for batch in batches if intent.first_batch <= batch.id <= intent.last_batch
    ]
    if not covered_batches:
        raise reread_error("a write to its mirror was begun, and the changes for it are gone")
    contents, origin = _contents_and_origin(ports, records, covered_batches, intent)
    plan = plan_merge(contents)
    if plan.is_dropped and plan.copy_event is not None:
        # The table was dropped in the same write, so its rows are never shown.
        plan = replace(plan, segments=(), copy_event=None)
    commit = None
    if intent.is_recorded and (plan.copy_event is not None or origin is not None):
        commit = ports.mirrors.find_commit(state.mirror, intent.app_id, intent.txn_version)
    # If the commit was made, it has the copied rows, and their origin may be gone.
    copied_rows = find_copied_rows(ports, intent, plan, contents) if commit is None else None
    if origin is not None:
        plan = replace(plan, replaces_rows=True, first_version=origin.version)
        batch_ids = tuple(content.batch for content in contents)
        copied_rows = CopiedRows(intent.table, origin.base, batches=batch_ids)
    if copied_rows is not None and copied_rows.copied_version is not None:
        intent = replace(intent, copied_write_id=copied_rows.copied_version.write_id)
    if not intent.may_have_kept_rows:
        # A repeated try asks again: the settings may have changed since the first one.
        kept_rows = _may_have_kept_rows(ports, records, state, plan, copied_rows)
        intent = replace(intent, may_have_kept_rows=kept_rows)
    if without_changes:
        plan = replace(
            plan,
            segments=(),
            final_version=0,
            completion=None,
            losses=(),
            segments_of_lost_rows=(),
        )
    if not plan.final_version:
        shown_version = state.mirror_schema_version or _last_known_version(intent.table, records)
        plan = replace(plan, final_version=shown_version)
    segments = [*(() if copied_rows is None else copied_rows.segments), *plan.segments]
    files = [file for segment in segments for file in segment.files]
    files += [file for read_files in plan.read_files for file in read_files.files]
    version = records.versions.get(plan.final_version)
    if version is None:  # its batch was abandoned
        version = ports.ledger.schema_version(ports.source.name, intent.table, plan.final_version)
    metadata = commit_metadata(
        ports,
        WriteKind.REWRITE if plan.replaces_rows else WriteKind.MERGE,
        intent.table,
        covered_batches,
        # A dropped table's commit may have been made with its changes or without them.
        None if plan.is_dropped or commit is not None else files,
        version=version,
        has_rows_without_log=any(
            event.kind in (TableEventKind.REREAD, TableEventKind.REFRESHED)
            for content in contents
            if content.batch >= covered_batches[0].id
            for event in content.events
        ),
    )
    return Task(intent, state, tuple(covered_batches), plan, metadata, version.schema, copied_rows)


def _may_have_kept_rows(
    ports: RunPorts,
    records: TableRecords,
    state: TableState,
    plan: MergePlan,
    copied_rows: CopiedRows | None,
) -> bool:
    """Return whether the mirror may have unmarked rows after the write that the source
    no longer has."""
    policies = ports.source.policies_of(state.table)
    if copied_rows is None and not plan.replaces_rows:
        return may_keep_rows(policies, state, records.newest_writes.settled_intent)
    copied_version = None if copied_rows is None else copied_rows.copied_version
    has_kept_rows = copied_version is not None and copied_version.may_have_kept_rows
    return policies.keeps_unmarked_rows or has_kept_rows


def may_keep_rows(
    policies: LakePolicies, state: TableState | None, last_intent: Intent | None
) -> bool:
    """Return whether a mirror may have unmarked rows that the source no longer has,
    after a write that does not replace all rows. `state`: the table's state;
    `last_intent`: the intent of the write before. Both are None if there is none."""
    if policies.keeps_unmarked_rows:
        return True
    if last_intent is not None:
        return last_intent.may_have_kept_rows
    # A ledger that was made from the lake knows neither the settings of earlier writes
    # nor which parts of the log were not read.
    return state is not None and state.adopted_version is not None


def _contents_and_origin(
    ports: RunPorts, records: TableRecords, covered_batches: Sequence[Batch], intent: Intent
) -> tuple[Sequence[TableContent], ChangelogOrigin | None]:
    """Return the content of the table that the write merges, and the earlier version of
    the mirror with which it begins, or None. If the covered batches rebuild the mirror,
    all content since the table was empty, or since that version, is merged; otherwise
    the content of the covered batches."""
    batch_ids = {batch.id for batch in covered_batches}
    contents = [content for content in records.contents if content.batch in batch_ids]
    events = [event for content in contents for event in content.events]
    rebuild_events = [event for event in events if event.kind is TableEventKind.REBUILT]
    if not rebuild_events or any(event.kind in SETTLING_EVENTS for event in events):
        return contents, None
    first = covered_batches[0].id
    earlier_contents = table_contents(ports.ledger, ports.source.name, intent.table, 1, first - 1)
    all_contents = [*earlier_contents, *contents]
    if rebuild_events[-1].origin is None:
        return contents_since_settled(all_contents), None
    origin = origin_of_write(ports, intent, all_contents, first)
    return origin.contents, origin


def _last_known_version(table: TableName, records: TableRecords) -> int:
    """Return the last known version of a table that was dropped before any of its rows
    was merged. Its mirror is created empty, with that structure."""
    known_versions = [
        version.version for version in records.history if version.knowledge is Knowledge.KNOWN
    ]
    if not known_versions:
        raise TableError(
            "it was dropped at the source, and its structure was never known",
            hint=f"exclude it, or once it is there again, {resume_hint(table)}",
            need=Need.ROWS,
        )
    return known_versions[-1]


def prepare_job(ports: RunPorts, records: TableRecords, task: Task) -> Job:
    """Return the job for a task. Raise `TableError` if the mirror cannot follow."""
    plan, state, settled_write = task.plan, task.state, records.newest_writes.settled_write
    _require_read_files(records, task)
    adopted_version = -1 if state.adopted_version is None else state.adopted_version
    last_written_version = adopted_version if settled_write is None else settled_write.delta_version
    versions = _versions_of_write(ports, records, plan, state, last_written_version)
    segments = plan.segments
    if task.copied_rows is not None:
        versions, segments = _with_former_names(ports, task.copied_rows, versions, segments)
    column_lineage = _lineage(ports, records, task, versions, last_written_version)
    completion = plan.completion if column_lineage.columns_by_key else None
    schema_versions = {segment.schema_version for segment in segments}
    key = column_lineage.key_of(
        schema_versions if completion is None else schema_versions | {completion.version}
    )
    if key is None:
        raise reread_error("no key tells its rows apart in every version it had")
    if completion is not None:
        _require_matching_key(plan, column_lineage, key)
    by_number = {version.version: version for version in versions}
    folders = folders_of(ports, schema_versions, by_number)
    _require_files(ports, task, segments, folders)
    may_repeat = may_repeat_merged(ports, plan, key, task.batches)
    if task.copied_rows is not None:
        require_copyable(
            ports,
            state.table,
            task.copied_rows.sentence,
            sorted({*task.copied_rows.batches, *(batch.id for batch in task.batches)}),
            segments,
        )
    # After a gap in the log, the DELETE of a row may be missing before its next INSERT.
    # In an overlap, the mirror may have the inserted row already.
    inserts_are_new = not may_repeat and not ports.ledger.gaps(ports.source.name)
    emptying_stamps: tuple[Stamp, ...] = ()
    if not records.removes_deleted_rows:
        emptying_stamps = find_emptying_stamps(ports, state.table, plan, task.batches)
    return Job(
        task=task,
        lineage=column_lineage,
        key=key,
        steps=() if plan.replaces_rows else evolution_steps(column_lineage),
        segments=segments,
        folders=folders,
        last_written_version=last_written_version,
        emptying_stamps=emptying_stamps,
        read_stamp=find_read_stamp(
            ports, state.table, plan, task.batches, has_stamps=bool(column_lineage.policies.stamps)
        ),
        may_repeat=may_repeat,
        inserts_are_new=inserts_are_new,
        removes_deleted_rows=records.removes_deleted_rows,
    )


def _require_matching_key(
    plan: MergePlan, column_lineage: ColumnLineage, key: tuple[str, ...]
) -> None:
    """Raise `TableError` unless the columns that were read from the source can be
    matched with the mirror's rows by its key."""
    assert plan.completion is not None, "columns were read"
    primary_key = next(iter(column_lineage.keys[plan.completion.version]), ())
    if not key or frozenset(key) != frozenset(primary_key):
        raise reread_error("its columns were read by another key than the lake's")
    if any(file.has_present for segment in plan.segments for file in segment.files):
        raise reread_error("row images leave columns out while new ones are read from the source")


def _require_read_files(records: TableRecords, task: Task) -> None:
    """Raise `TableError` if files with rows that were read from the source are needed and
    gone. They are deleted when the batch that read them is acknowledged."""
    needed_files = set(task.plan.read_files)
    acknowledged_batches = {
        batch.id for batch in task.batches if batch.state is BatchState.ACKNOWLEDGED
    }
    if any(
        content.batch in acknowledged_batches and content.snapshot in needed_files
        for content in records.contents
    ):
        raise reread_error("rows that were read of it were not merged in time")


def _require_files(
    ports: RunPorts, task: Task, segments: Sequence[Segment], folders: Mapping[int, str]
) -> None:
    """Raise `TableError` if a file with changes is missing or damaged. `repair` has
    checked the files of captured batches, but not those of batches that were merged
    without this table."""
    waiting_batches = {batch.id for batch in task.batches if batch.state is BatchState.CAPTURED}
    for segment in segments:
        files = [file for file in segment.files if batch_of(file.path) not in waiting_batches]
        for reason in ports.segments.damage_sentences(folders[segment.schema_version], files):
            raise reread_error(f"captured changes of it are lost: {reason}")


def _lineage(
    ports: RunPorts,
    records: TableRecords,
    task: Task,
    versions: Sequence[SchemaVersion],
    last_written_version: int,
) -> ColumnLineage:
    """Return how the columns of the mirror, and of these schema versions, become the
    columns of the write."""
    if task.copied_rows is not None:
        copied_version = task.copied_rows.copied_version
        reason = None if copied_version is None else reason_unreadable(ports, copied_version)
        if reason is not None:
            raise reread_error(
                f"{task.copied_rows.sentence}, and {copied_version} cannot be read: {reason}"
            )
        return lineage_of_copy(ports, copied_version, versions)
    mirror = None
    if last_written_version >= 0 and not task.plan.replaces_rows:
        mirror = _columns_at(ports, task.state.mirror, last_written_version)
    columns_read = None
    completion = task.plan.completion
    if completion is not None and not task.plan.replaces_rows:
        columns_read = ColumnsRead(completion.version, completion.columns)
    column_lineage = lineage_over(
        ports, versions, mirror=mirror, columns_read=columns_read, statements=records.statements
    )
    _require_no_reread(column_lineage)
    return column_lineage


def _require_no_reread(column_lineage: ColumnLineage) -> None:
    """Raise `TableError` if the mirror can only be replaced, by reading the table again."""
    if column_lineage.reasons_to_reread:
        raise reread_error(column_lineage.reasons_to_reread[0])


def lineage_of_copy(
    ports: RunPorts, copied_version: MirrorVersion | None, versions: Sequence[SchemaVersion]
) -> ColumnLineage:
    """Return the lineage from the mirror version whose rows are copied. The version
    must be readable. Columns that only that mirror has are left out."""
    mirror = None
    policies = ports.source.policies_of(versions[-1].table)
    if copied_version is not None:
        columns = ports.mirrors.schema(copied_version.mirror, copied_version.delta_version)
        mirror = own_columns(columns, versions[0])
        further_columns = {*columns.names} - {*mirror.names}
        if DELETED_AT.name in further_columns and not policies.marks_deleted:
            # The table may have had a column of that name, so it is unclear which rows
            # are marked.
            raise reread_error(
                f"{copied_version.mirror} has {DELETED_AT.name}, and `deletes` is not soft"
            )
    # With the policy to keep them, columns that only the copied mirror has would stay.
    drop_policies = replace(policies, dropped_columns=DroppedColumns.DROP)
    column_lineage = replace(
        lineage_over(ports, versions, drop_policies, mirror=mirror), policies=policies
    )
    _require_no_reread(column_lineage)
    return column_lineage


def _with_former_names(
    ports: RunPorts,
    copied_rows: CopiedRows,
    versions: Sequence[SchemaVersion],
    segments: Sequence[Segment],
) -> tuple[Sequence[SchemaVersion], tuple[Segment, ...]]:
    """Return the history and the segments of the table's former names, followed by its
    own."""
    former_histories = [versions_between(ports, *link) for link in copied_rows.former_names]
    history, new_numbers = spliced_history(former_histories, versions)
    former_segments = []
    for segment in copied_rows.segments:
        new_number = new_numbers.get((segment.table, segment.schema_version))
        if new_number is None:
            raise reread_error(
                f"its structure as {segment.table} is not known for all of its changes"
            )
        former_segments.append(replace(segment, schema_version=new_number))
    return history, (*former_segments, *segments)


def require_copyable(
    ports: RunPorts,
    table: TableName,
    copy_sentence: str,
    batch_ids: Sequence[int],
    segments: Iterable[Segment],
) -> None:
    """Raise `TableError` if changes cannot be merged into rows that are copied from a
    mirror. `copy_sentence`: a sentence that says what is copied; `batch_ids`: those of
    the changes, ascending."""
    if batch_ids:
        live_batches = ports.ledger.live_batches(ports.source.name, batch_ids[0], batch_ids[-1])
        batches = [batch for batch in live_batches if batch.id in batch_ids]
        if batches and may_repeat_changes(ports, batches):
            raise reread_error(f"{copy_sentence}, and part of the log was read twice")
    marks_deleted = ports.source.policies_of(table).marks_deleted
    if marks_deleted and any(file.has_present for segment in segments for file in segment.files):
        raise reread_error(f"{copy_sentence}, and row images leave columns out")


def _columns_at(ports: RunPorts, mirror: str, version: int) -> pa.Schema:
    """Return the columns of a mirror at a version. If the mirror's log no longer has
    this version, return those of the earliest later version that can be read: the log
    was checked, so no commit in between changed a column."""
    try:
        return ports.mirrors.schema(mirror, version)
    except MirrorRefused:
        for commit in reversed([*ports.mirrors.history(mirror)]):
            if commit.delta_version > version:
                with suppress(MirrorRefused):
                    return ports.mirrors.schema(mirror, commit.delta_version)
        raise


def _versions_of_write(
    ports: RunPorts,
    records: TableRecords,
    plan: MergePlan,
    state: TableState,
    last_written_version: int,
) -> Sequence[SchemaVersion]:
    """Return the schema versions that the write goes through: from the one that the
    mirror shows, or the first of the plan, to the last."""
    version_numbers = [version.version for version in records.history]
    first = plan.first_version
    if first is None and last_written_version >= 0:
        # A mirror without a recorded version shows the first one: no statement changed
        # it since.
        first = state.mirror_schema_version or version_numbers[0]
    elif first is None:
        first = min(plan.versions, default=plan.final_version)
    return _known_versions(ports, records.history, first, plan.final_version)


def versions_between(
    ports: RunPorts, table: TableName, first: int, final: int
) -> Sequence[SchemaVersion]:
    """Return the schema versions `first` to `final`. Raise `TableError` if one is
    unknown."""
    return _known_versions(
        ports, ports.ledger.schema_versions(ports.source.name, table), first, final
    )


def _known_versions(
    ports: RunPorts, history: Sequence[SchemaVersion], first: int, final: int
) -> Sequence[SchemaVersion]:
    version_numbers = [version.version for version in history]
    recorded = history[version_numbers.index(first) : version_numbers.index(final) + 1]
    valid = valid_versions(recorded, _catching_up_batches(ports, recorded))
    if not valid or any(version.knowledge is not Knowledge.KNOWN for version in valid):
        raise reread_error(f"its structure was not known between version {first} and {final}")
    return valid


def _catching_up_batches(ports: RunPorts, versions: Sequence[SchemaVersion]) -> set[int]:
    """Return the batches that caught tables up; empty if all versions are recorded in
    order."""
    if not is_out_of_order(versions):
        return set()
    first, last = versions[0].batch, versions[-1].batch
    batches = ports.ledger.live_batches(ports.source.name, first, last)
    return {batch.id for batch in batches if batch.catches_up}


def folders_of(
    ports: RunPorts, version_numbers: Iterable[int], versions: Mapping[int, SchemaVersion]
) -> dict[int, str]:
    """Return, for each of these version numbers, the folder of its changelog."""
    return {
        version_number: changelog_path(
            ports.source.name, versions[version_number].table, versions[version_number].generation
        )
        for version_number in version_numbers
    }


def lineage_over(
    ports: RunPorts,
    versions: Sequence[SchemaVersion],
    policies: LakePolicies | None = None,
    *,
    mirror: pa.Schema | None = None,
    columns_read: ColumnsRead | None = None,
    statements: Mapping[int, SchemaStatement] = MappingProxyType({}),
) -> ColumnLineage:
    """Return the `lineage` of consecutive versions, with the times at which their
    statements ran. Statements that are missing in `statements` are read from the
    ledger."""
    moments = _moments_of(ports, versions, statements)
    policies = policies or ports.source.policies_of(versions[-1].table)
    return lineage(versions, policies, mirror=mirror, moments=moments, columns_read=columns_read)


def _moments_of(
    ports: RunPorts,
    versions: Sequence[SchemaVersion],
    statements_by_number: Mapping[int, SchemaStatement],
) -> dict[int, StatementMoment]:
    """Return, for each version except the first, the time at which the statement that
    made it ran."""
    statement_numbers = {
        version.version: version.statement_number
        for version in versions[1:]
        if version.statement_number is not None
    }
    missing_numbers = set(statement_numbers.values()) - statements_by_number.keys()
    statements = {
        **statements_by_number,
        **ports.ledger.statements(ports.source.name, missing_numbers),
    }
    moments = {}
    for version, statement_number in statement_numbers.items():
        context = statements[statement_number].context
        executed_at = datetime.fromisoformat(context["executed_at"])
        moments[version] = StatementMoment(executed_at, zone_of(context["time_zone"]))
    return moments


def snapshot_paths(ports: RunPorts, snapshot: SnapshotFiles) -> tuple[str, ...]:
    """Return the absolute paths of the files with rows that were read from the
    source."""
    folder = snapshot_path(ports.source.name, snapshot.table)
    return tuple(ports.mirrors.path(f"{folder}/{file.path}") for file in snapshot.files)
