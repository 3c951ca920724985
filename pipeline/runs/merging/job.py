"""One table's write, prepared: all a merge needs to know, asked of the ledger beforehand.

A table that came back may lack batches that were acknowledged without it; their images are
in the changelog and are merged like others. Rows that one of them read from the source are
not there any more: only reading it again helps.

While a table has stopped its structure is followed all the same. Its rows are read later,
by a batch that goes over the same places (`pipeline.runs.catch_up`); where that batch knows
better, by a person's word or because a statement is followed that was not then, it records
versions of its own from that place on, and what earlier batches recorded for later places does
not count: those versions never had a row.

An overlap, changes that an earlier batch has read, is not over with the batch that began it: a
budget may end that one early, and the next goes on behind it, still among changes that the mirrors
hold.

A TRUNCATE and a re-read have a row of their own in the changelog, which says when rows went; for
DROP, CREATE and the old name of a RENAME the history has the statement. So these moments are the
same however the batches are merged, and whenever; and so are the stamps of rows that a re-read
brought, or that went.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.batch import Batch, BatchState, TableContent
from pipeline.changes.evolution import steps
from pipeline.changes.layout import DELETED_AT, changelog_path, snapshot_path
from pipeline.changes.lineage import ColumnLineage, ColumnsRead, lineage
from pipeline.changes.merging import (
    SETTLES,
    Emptied,
    FromChangelog,
    MergePlan,
    plan_merge,
    since_emptied,
)
from pipeline.decisions import Continuity
from pipeline.intent import Intent, MirrorVersion, NewestWrites
from pipeline.lake_commit import WriteKind
from pipeline.policies import Deletes, DroppedColumns, LakePolicies
from pipeline.ports.ledger import contents_of
from pipeline.ports.mirror_writes import MirrorStep
from pipeline.position import Position
from pipeline.runs.commit_records import commit_metadata
from pipeline.runs.context import Workplace
from pipeline.runs.cures import owed
from pipeline.runs.merging.copying import (
    CopiedRows,
    copied_rows,
    own_columns,
    require_readable,
    spliced,
)
from pipeline.runs.merging.origin import origin_of_write
from pipeline.schema.context import zone_of
from pipeline.schema.fills import StatementMoment
from pipeline.schema.history import Knowledge, SchemaStatement, SchemaVersion, VersionOrigin
from pipeline.schema.model import TableSchema
from pipeline.segment import RowCounts, Segment, batch_of
from pipeline.stamps import Stamp
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEventKind, TableState


@dataclass(frozen=True, slots=True)
class Task:
    """One table's write by the ledger alone: what its `intent` comes down to. `batches` are
    those with something of the table, oldest first. `structure`: that the mirror shows behind it,
    None where it is not known. `copied`: what it begins with that other tables had."""

    intent: Intent
    state: TableState
    batches: tuple[Batch, ...]
    plan: MergePlan
    metadata: str
    structure: TableSchema | None
    copied: CopiedRows | None = None

    @property
    def counts(self) -> RowCounts:
        return sum((segment.counts for segment in self.plan.segments), RowCounts())

    @property
    def read(self) -> int:
        """Rows that were read from the source for it."""
        parts = (self.plan.snapshot, self.plan.completion)
        return sum(file.images for part in parts if part is not None for file in part.files)


@dataclass(frozen=True, slots=True)
class Job:
    """A task that is ready to be tried.

    `after`: the Delta version that the last settled write of the table made; before the first,
    that of the mirror it took over, or -1. `emptied`: behind which changes no row was there any
    more; none where no row that is gone is kept. `segments`: whose changes are merged, each under
    the number that its version has in the lineage, and which count above the change `above`.
    `read`: the change as which the rows of the plan's snapshot came, or those of another name; None
    without either. `again`: whether some of the changes may have been read and merged before.
    `all_new`: whether a row that the log inserts cannot be in the mirror yet. `forgets`: whether
    rows that are gone and that the mirror kept go as well, since they show more than the settings
    do.
    """

    task: Task
    lineage: ColumnLineage
    key: tuple[str, ...]
    steps: tuple[MirrorStep, ...]
    segments: tuple[Segment, ...]
    folders: Mapping[int, str]
    after: int
    emptied: tuple[Stamp, ...]
    read: Stamp | None
    again: bool
    all_new: bool
    forgets: bool = False

    @property
    def ignores_deletes(self) -> bool:
        return self.lineage.policies.deletes is Deletes.IGNORE

    @property
    def above(self) -> int:
        copied = self.task.copied
        return self.task.plan.above if copied is None else copied.above

    @property
    def versions(self) -> tuple[int, ...]:
        """Versions whose images are merged, ascending."""
        return tuple(sorted({segment.schema_version for segment in self.segments}))


@dataclass(frozen=True, slots=True)
class TableBooks:
    """What the ledger has of a table that waits: its part of the batches that the mirror lacks,
    all versions of its structure, the newest writes to the mirror, and the statements that made
    the versions behind the one that the mirror shows. `clear_through`: up to which batch it is to
    be cleared of what the settings do not show any more; 0 for none. `upkept`: the newest version
    of the mirror that upkeep, or a cut of its log, made; -1 for none."""

    parts: Sequence[TableContent]
    history: Sequence[SchemaVersion]
    newest: NewestWrites
    statements: Mapping[int, SchemaStatement]
    clear_through: int = 0
    upkept: int = -1

    @property
    def versions(self) -> dict[int, SchemaVersion]:
        return {version.version: version for version in self.history}

    @property
    def forgets(self) -> bool:
        """Whether nothing was written since the settings came to show less."""
        settled, through = self.newest.settled, self.clear_through
        return through > 0 and (settled is None or settled.intent.last_batch <= through)


def books_of(
    work: Workplace,
    lacking: Mapping[TableName, Sequence[Batch]],
    states: Mapping[TableName, TableState],
    applications: Mapping[TableName, str],
) -> dict[TableName, TableBooks]:
    """What the ledger has of all these tables: as many questions, however many tables there are,
    unless some were left behind. `applications`: their mirrors'."""
    if not lacking:
        return {}
    ledger, source = work.ledger, work.source.name
    spans: dict[tuple[int, int], list[TableName]] = {}
    for table, batches in lacking.items():
        spans.setdefault((batches[0].id, batches[-1].id), []).append(table)
    parts: dict[TableName, list[TableContent]] = {table: [] for table in lacking}
    for span, tables in spans.items():
        # Whole, publishing has asked for the content of a batch already.
        own = None if span[0] == span[1] else tables
        for content in ledger.contents(source, *span, own):
            own_parts = content.by_table()
            for table in content.changed.intersection(tables):
                parts[table].append(own_parts[table])
    history: dict[TableName, list[SchemaVersion]] = {table: [] for table in lacking}
    made_by = set[int]()
    for version in ledger.schema_versions(source, *lacking):
        history[version.table].append(version)
        shown = states[version.table].mirror_version or 0
        if version.statement is not None and version.version > shown:
            made_by.add(version.statement)
    statements = ledger.statements(source, made_by)
    newest = ledger.newest_writes(source, applications.values())
    upkept = ledger.upkept(source)
    notes = [one.tightening for one in ledger.in_clear(source) if one.kept_because is None]
    clear = {note.table: note.through for note in sorted(notes, key=lambda one: one.through)}
    return {
        table: TableBooks(
            parts[table],
            history[table],
            newest[applications[table]],
            statements,
            clear.get(table, 0),
            upkept.get(states[table].mirror, -1),
        )
        for table in lacking
    }


def task_of(
    work: Workplace, books: TableBooks, intent: Intent, state: TableState, batches: Sequence[Batch]
) -> Task:
    """`batches`: those that the table's mirror lacks, oldest first; an open intent covers some
    of them. TableError where nothing is left of what it covered."""
    covered = [batch for batch in batches if intent.first_batch <= batch.id <= intent.last_batch]
    if not covered:
        raise owed("a write of it was begun, and its changes are gone")
    parts, origin = _parts(work, books, covered, intent)
    plan = plan_merge(parts)
    if plan.dropped and plan.copied is not None:
        # It is gone again before anybody saw its rows.
        plan = replace(plan, segments=(), copied=None)
    made = None
    if intent.id and (plan.copied is not None or origin is not None):
        made = work.mirrors.recorded(state.mirror, intent.app_id, intent.txn_version)
    # A commit that is there has the rows, whatever became since of what they were made of.
    copied = copied_rows(work, intent, plan, parts) if made is None else None
    if origin is not None:
        plan = replace(plan, replaces=True, first=origin.version)
        numbers = tuple(part.batch for part in parts)
        copied = CopiedRows(intent.table, origin.base, 0, 0, (), (), numbers)
    if copied is not None and copied.pinned is not None:
        intent = replace(intent, copies=copied.pinned.write)
    if plan.dropped:
        plan = _without_lost(work, books, intent.table, plan)
    if not plan.final:
        plan = replace(plan, final=state.mirror_version or _last_known(books))
    segments = [*(() if copied is None else copied.segments), *plan.segments]
    files = [file for segment in segments for file in segment.files]
    read = [part for part in (plan.snapshot, plan.completion) if part is not None]
    files += [file for part in read for file in part.files]
    kind = WriteKind.REWRITE if plan.replaces else WriteKind.MERGE
    final = books.versions.get(plan.final)
    if final is None:  # its batch was abandoned
        final = work.ledger.schema_version(work.source.name, intent.table, plan.final)
    told = files if made is None else None
    metadata = commit_metadata(work, kind, intent.table, covered, told, version=final)
    return Task(intent, state, tuple(covered), plan, metadata, final.schema, copied)


def _without_lost(
    work: Workplace, books: TableBooks, table: TableName, plan: MergePlan
) -> MergePlan:
    """A table that was dropped cannot be read from the source again: if files of it are lost, its
    mirror ends as it is. Rows of the others may be changes of rows that it never had."""
    folders = folders_of(work, plan.versions, books.versions)
    for segment in plan.segments:
        if lost := work.segments.damaged(folders[segment.schema_version], segment.files):
            work.progress.note(
                f"{table} was dropped at the source, and captured changes of it are lost: its "
                f"mirror ends without them ({lost[0]})"
            )
            return replace(plan, segments=(), completion=None, emptied=(), gone=())
    return plan


def _parts(
    work: Workplace, books: TableBooks, covered: Sequence[Batch], intent: Intent
) -> tuple[Sequence[TableContent], FromChangelog | None]:
    """Return what the batches have of the table. Where its mirror is written again in them, that is
    all there is since it was empty; or since an earlier version of the mirror, which the second
    value has."""
    numbers = {batch.id for batch in covered}
    parts = [part for part in books.parts if part.batch in numbers]
    events = [event for part in parts for event in part.events]
    rebuilt = [event for event in events if event.kind is TableEventKind.REBUILT]
    if not rebuilt or any(event.kind in SETTLES for event in events):
        return parts, None
    first = covered[0].id
    before = contents_of(work.ledger, work.source.name, intent.table, 1, first - 1)
    everything = [*before, *parts]
    if rebuilt[-1].origin is None:
        return since_emptied(everything), None
    origin = origin_of_write(work, intent, everything, first)
    return origin.parts, origin


def _last_known(books: TableBooks) -> int:
    """For a table that went before anything of it was merged: an empty mirror tells of it."""
    known = [one.version for one in books.history if one.knowledge is Knowledge.KNOWN]
    if not known:
        raise owed("it is gone, and its structure was never known")
    return known[-1]


def prepare_job(work: Workplace, books: TableBooks, task: Task) -> Job:
    """What the task takes. TableError where the mirror cannot follow."""
    plan, state, settled = task.plan, task.state, books.newest.settled
    _require_snapshot(books, task)
    begun = -1 if state.adopted is None else state.adopted
    after = begun if settled is None else settled.delta_version
    versions, segments = _versions(work, books, plan, state, after), plan.segments
    if task.copied is not None:
        versions, segments = _with_former(work, task.copied, versions, segments)
    line = _lineage(work, books, task, versions, after)
    completion = plan.completion if line.asked else None
    numbers = {segment.schema_version for segment in segments}
    key = line.key_of(numbers if completion is None else numbers | {completion.version})
    if key is None:
        raise owed("no key tells its rows apart in every version it had")
    if completion is not None:
        _require_complete(plan, line, key)
    known = {version.version: version for version in versions}
    folders = folders_of(work, numbers, known)
    _require_files(work, task, segments, folders)
    again = reads_again(work, task.batches)
    if task.copied is not None:
        require_copyable(
            work,
            state.table,
            task.copied.told,
            sorted({*task.copied.batches, *(batch.id for batch in task.batches)}),
            segments,
        )
    # Behind a gap a row may be inserted whose deletion nobody read; in an overlap, again.
    return Job(
        task=task,
        lineage=line,
        key=key,
        steps=() if plan.replaces else steps(line),
        segments=segments,
        folders=folders,
        after=after,
        emptied=emptied_at(work, task.state.table, plan, task.batches),
        read=read_at(work, task.state.table, plan, task.batches, stamped=bool(line.stamps)),
        again=again,
        all_new=not again and not work.ledger.gaps(work.source.name),
        forgets=books.forgets,
    )


def _require_complete(plan: MergePlan, line: ColumnLineage, key: tuple[str, ...]) -> None:
    """Columns that were read can be filled by the key they were read with."""
    assert plan.completion is not None
    primary = next(iter(line.keys[plan.completion.version]), ())
    if not key or frozenset(key) != frozenset(primary):
        raise owed("its columns were read by another key than the lake's")
    if any(file.partial for segment in plan.segments for file in segment.files):
        raise owed("row images leave columns out while new ones are read from the source")


def _require_snapshot(books: TableBooks, task: Task) -> None:
    """Rows that a batch read from the source go when it is acknowledged."""
    needed = {task.plan.snapshot, task.plan.completion} - {None}
    gone = {batch.id for batch in task.batches if batch.state is BatchState.ACKNOWLEDGED}
    if any(part.batch in gone and part.snapshot in needed for part in books.parts):
        raise owed("what was read of it was not merged in time")


def _require_files(
    work: Workplace, task: Task, segments: Sequence[Segment], folders: Mapping[int, str]
) -> None:
    """`repair` looks at the files of batches that wait for their merge, not at those of batches
    that were merged without the table."""
    waiting = {batch.id for batch in task.batches if batch.state is BatchState.CAPTURED}
    for segment in segments:
        files = [file for file in segment.files if batch_of(file.path) not in waiting]
        for why in work.segments.damaged(folders[segment.schema_version], files):
            raise owed(f"captured changes of it are lost: {why}")


def _lineage(
    work: Workplace,
    books: TableBooks,
    task: Task,
    versions: Sequence[SchemaVersion],
    after: int,
) -> ColumnLineage:
    if task.copied is not None:
        require_readable(work, task.copied)
        return lineage_of_copy(work, task.copied.pinned, versions)
    mirror = None
    if after >= 0 and not task.plan.replaces:
        mirror = work.mirrors.schema(task.state.mirror, _readable(work, books, task, after))
    read, part = None, task.plan.completion
    if part is not None and not task.plan.replaces:
        read = ColumnsRead(part.version, part.columns)
    line = lineage_over(work, versions, mirror=mirror, read=read, known=books.statements)
    if line.reread:
        raise owed(line.reread[0])
    return line


def lineage_of_copy(
    work: Workplace, pinned: MirrorVersion | None, versions: Sequence[SchemaVersion]
) -> ColumnLineage:
    """Return the lineage from a version that rows are copied from, which can be read; columns that
    only that mirror has stay behind."""
    mirror, policies = None, work.source.policies_of(versions[-1].table)
    if pinned is not None:
        columns = work.mirrors.schema(pinned.mirror, pinned.delta_version)
        mirror = own_columns(columns, versions[0])
        more = {*columns.names} - {*mirror.names}
        if DELETED_AT.name in more and policies.deletes is not Deletes.SOFT:
            # It may be a column that the table had: nothing says which rows it marks.
            raise owed(f"{pinned.mirror} has {DELETED_AT.name}, and `deletes` is not soft")
    behind = replace(policies, dropped_columns=DroppedColumns.DROP)
    line = replace(lineage_over(work, versions, behind, mirror=mirror), policies=policies)
    if line.reread:
        raise owed(line.reread[0])
    return line


def _with_former(
    work: Workplace,
    copied: CopiedRows,
    versions: Sequence[SchemaVersion],
    segments: Sequence[Segment],
) -> tuple[Sequence[SchemaVersion], tuple[Segment, ...]]:
    """The table's versions and segments behind those of its former names."""
    links = [versions_between(work, *link) for link in copied.links]
    history, numbers = spliced(links, versions)
    former = []
    for segment in copied.segments:
        number = numbers.get((segment.table, segment.schema_version))
        if number is None:
            raise owed(f"its structure as {segment.table} is not known for all of its changes")
        former.append(replace(segment, schema_version=number))
    return history, (*former, *segments)


def require_copyable(
    work: Workplace,
    table: TableName,
    told: str,
    numbers: Sequence[int],
    segments: Iterable[Segment],
) -> None:
    """TableError where changes cannot be put on rows that are copied from a mirror. `told`: what is
    copied, a sentence; `numbers`: the batches that the changes are from, ascending."""
    live = work.ledger.live_batches(work.source.name, numbers[0], numbers[-1]) if numbers else []
    batches = [batch for batch in live if batch.id in numbers]
    if batches and reads_again(work, batches):
        raise owed(f"{told}, and part of the log was read twice")
    soft = work.source.policies_of(table).deletes is Deletes.SOFT
    if soft and any(file.partial for segment in segments for file in segment.files):
        raise owed(f"{told}, and row images leave columns out")


def _readable(work: Workplace, books: TableBooks, task: Task, after: int) -> int:
    """The version with the rows and columns of that one: the log of a mirror that was cut begins
    behind it."""
    if books.upkept > after:
        commit = work.mirrors.look(task.state.mirror, books.upkept).base
        if commit is not None and commit.repeats == after:
            return books.upkept
    return after


def _versions(
    work: Workplace, books: TableBooks, plan: MergePlan, state: TableState, after: int
) -> Sequence[SchemaVersion]:
    """From the version that the mirror shows, or the first that matters, to the last."""
    numbers = [version.version for version in books.history]
    first = plan.first
    if first is None and after >= 0:
        # Whose structure nothing recorded has the first: no statement changed it.
        first = state.mirror_version or numbers[0]
    elif first is None:
        first = min(plan.versions, default=plan.final)
    return _known(work, books.history, first, plan.final)


def versions_between(
    work: Workplace, table: TableName, first: int, final: int
) -> Sequence[SchemaVersion]:
    """From one version to another; TableError where one between is not known."""
    return _known(work, work.ledger.schema_versions(work.source.name, table), first, final)


def _known(
    work: Workplace, history: Sequence[SchemaVersion], first: int, final: int
) -> Sequence[SchemaVersion]:
    numbers = [version.version for version in history]
    between = history[numbers.index(first) : numbers.index(final) + 1]
    between = in_force(between, _catching_up(work, between))
    known = [version for version in between if version.knowledge is Knowledge.KNOWN]
    if not known or len(known) < len(between):
        raise owed(f"its structure was not known between version {first} and {final}")
    return known


def _catching_up(work: Workplace, versions: Sequence[SchemaVersion]) -> set[int]:
    """Batches that caught tables up, of those that recorded versions out of their order."""
    if not out_of_order(versions):
        return set()
    first, last = versions[0].batch, versions[-1].batch
    batches = work.ledger.live_batches(work.source.name, first, last)
    return {batch.id for batch in batches if batch.catches_up}


def folders_of(
    work: Workplace, numbers: Iterable[int], known: Mapping[int, SchemaVersion]
) -> dict[int, str]:
    return {
        number: changelog_path(work.source.name, known[number].table, known[number].generation)
        for number in numbers
    }


def lineage_over(
    work: Workplace,
    versions: Sequence[SchemaVersion],
    policies: LakePolicies | None = None,
    *,
    mirror: pa.Schema | None = None,
    read: ColumnsRead | None = None,
    known: Mapping[int, SchemaStatement] = MappingProxyType({}),
) -> ColumnLineage:
    """`lineage` of consecutive versions, with the moments of their statements; the ledger is asked
    for those that are not `known`."""
    moments = _moments_of(work, versions, known)
    policies = policies or work.source.policies_of(versions[-1].table)
    return lineage(versions, policies, mirror=mirror, moments=moments, read=read)


def _moments_of(
    work: Workplace, versions: Sequence[SchemaVersion], known: Mapping[int, SchemaStatement]
) -> dict[int, StatementMoment]:
    """When the statements ran that made the versions behind the first one."""
    made = {one.version: one.statement for one in versions[1:] if one.statement is not None}
    others = set(made.values()) - known.keys()
    statements = {**known, **work.ledger.statements(work.source.name, others)}
    found = {}
    for version, number in made.items():
        context = statements[number].context
        told = context.get("executed_at")
        if told is not None:
            zone = zone_of(str(context.get("time_zone") or ""))
            found[version] = StatementMoment(datetime.fromisoformat(told), zone)
    return found


def snapshot_paths(work: Workplace, part: SnapshotPart) -> tuple[str, ...]:
    folder = snapshot_path(work.source.name, part.table)
    return tuple(work.mirrors.path(f"{folder}/{file.path}") for file in part.files)


def out_of_order(versions: Sequence[SchemaVersion]) -> bool:
    """Whether some version is recorded behind one that holds from a later place on."""
    return any(not _is_before(version, other) for version, other in pairwise(versions))


def in_force(
    versions: Sequence[SchemaVersion], catching_up: Collection[int]
) -> list[SchemaVersion]:
    """`versions` of one table in their order, from one that its mirror shows on, without
    those that a batch of `catch_up` overruled. The first stays."""
    found = list(versions)
    for batch in sorted(catching_up):
        own = next((version for version in found if version.batch == batch), None)
        if own is not None and own is not found[0]:
            found = [
                version
                for version in found
                if version is found[0] or version.batch >= batch or _holds_before(version, own)
            ]
    return found


def _holds_before(version: SchemaVersion, own: SchemaVersion) -> bool:
    """A person's word at the very place of a version goes on from it."""
    goes_on = (
        own.origin is VersionOrigin.PERSON
        and version.schema is not None
        and version.since == own.since
    )
    return goes_on or _is_before(version, own)


def _is_before(version: SchemaVersion, other: SchemaVersion) -> bool:
    same = version.since.file.base == other.since.file.base
    return not same or version.since < other.since


def reads_again(work: Workplace, batches: Sequence[Batch]) -> bool:
    """Whether some of these batches may hold changes that an earlier one read."""
    first, last = batches[0], batches[-1]
    if any(batch.continuity is Continuity.OVERLAP for batch in batches):
        return True
    source = work.source.name
    for begun in work.ledger.live_batches(source, continuity=Continuity.OVERLAP):
        if begun.follows is None or begun.id > last.id:
            continue
        for followed in work.ledger.live_batches(source, begun.follows, begun.follows):
            if followed.end is None or last.end is None:
                continue
            # One commit time may be wrong, so both ends have to say so.
            if not all(is_past(place, followed.end) for place in (first.start, last.end)):
                return True
    return False


def is_past(start: Position, end: Position) -> bool:
    """Whether what begins there lies behind what ended there. The places of two servers
    tell nothing of each other; their commits' moments do."""
    if start.server_uuid == end.server_uuid and start.at.file.base == end.at.file.base:
        return end.at <= start.at
    moments = start.committed_at, end.committed_at
    return moments[0] is not None and moments[1] is not None and moments[1] < moments[0]


_MARKED = (TableEventKind.TRUNCATED, TableEventKind.REREAD)
"""What leaves a row in the changelog."""


def read_at(
    work: Workplace,
    table: TableName,
    plan: MergePlan,
    batches: Sequence[Batch],
    *,
    stamped: bool,
) -> Stamp | None:
    """Return the change as which the rows of the plan's snapshot came, or those of another name:
    the row that a re-read or a RENAME leaves in the changelog, which has its moment. Only if rows
    are `stamped`, the changelog is asked for that."""
    if plan.copied is not None:
        # The first of its own changes: no file has those of before too.
        number = min((one.first_sequence for one in plan.segments), default=plan.above)
    elif plan.snapshot is not None:
        number = plan.snapshot.low_sequence
    else:
        return None
    marks = _marks(work, plan, _versions_of(work, table), {number}) if stamped else {}
    return marks.get(number) or Stamp(number, _end_of(work, batches))


def emptied_at(
    work: Workplace, table: TableName, plan: MergePlan, batches: Sequence[Batch]
) -> tuple[Stamp, ...]:
    """Return behind which changes no row of the table was there any more; nothing if rows that are
    gone are not kept. Where nothing says when that was, it is the end of the batches."""
    if not work.source.policies_of(table).keeps_rows or not plan.emptied:
        return ()
    versions = _versions_of(work, table)
    emptied = (*_dropped_before(work, table, plan, batches), *plan.emptied)
    marks = _marks(work, plan, versions, {one.sequence for one in emptied})
    found = []
    for one in emptied:
        marked, version = one.event.kind in _MARKED, versions[one.event.version]
        stamp = marks.get(one.sequence) if marked else _statement_stamp(work, version, one)
        found.append(stamp or Stamp(one.sequence, _end_of(work, batches)))
    return tuple(found)


def _versions_of(work: Workplace, table: TableName) -> dict[int, SchemaVersion]:
    history = work.ledger.schema_versions(work.source.name, table)
    return {version.version: version for version in history}


def _end_of(work: Workplace, batches: Sequence[Batch]) -> datetime:
    ends = [batch.end.committed_at for batch in batches if batch.end is not None]
    return next((end for end in reversed(ends) if end is not None), None) or work.clock()


def _dropped_before(
    work: Workplace, table: TableName, plan: MergePlan, batches: Sequence[Batch]
) -> Sequence[Emptied]:
    """The DROP of an earlier batch, where the table comes back in these: its rows went then."""
    first = plan.emptied[0].event
    if first.kind is TableEventKind.DROPPED or not batches:
        return ()
    before = contents_of(work.ledger, work.source.name, table, 1, batches[0].id - 1)
    events = [event for part in before for event in part.events]
    if not events or events[-1].kind is not TableEventKind.DROPPED:
        return ()
    return (Emptied(events[-1].sequence, events[-1]),)


def _statement_stamp(work: Workplace, version: SchemaVersion, emptied: Emptied) -> Stamp | None:
    """The statement that made the version, as a change; None where none did, or none says when."""
    ends = version.knowledge is Knowledge.DROPPED
    if version.statement is None or ends is not (emptied.event.kind is TableEventKind.DROPPED):
        return None
    number = version.statement
    made = work.ledger.statements(work.source.name, [number])[number]
    if made.committed_at is None:
        return None
    return Stamp(emptied.sequence, made.committed_at, made.gtid or None)


def _marks(
    work: Workplace,
    plan: MergePlan,
    versions: Mapping[int, SchemaVersion],
    numbers: set[int],
) -> dict[int, Stamp]:
    """The changes of these numbers, those that are among the segments and say when they were."""
    found: dict[int, Stamp] = {}
    for segment in dict.fromkeys((*plan.gone, *plan.segments)):
        if not any(segment.first_sequence <= n <= segment.last_sequence for n in numbers):
            continue
        version = versions[segment.schema_version]
        folder = changelog_path(work.source.name, version.table, version.generation)
        wanted = pa.array(sorted(numbers), pa.int64())
        columns = ["_sequence", "_committed_at", "_gtid"]
        for piece in work.segments.pieces(folder, segment.files, columns):
            some = piece.filter(pc.is_in(piece.column("_sequence"), wanted))
            told = zip(*(some[name].to_pylist() for name in columns), strict=True)
            found.update((number, Stamp(number, at, gtid)) for number, at, gtid in told if at)
    return found
