"""Rebuild: write a table as it was at a place of the past to a path of its own. Neither
the lake nor the ledger is changed, so runs need not wait for a rebuild.

The place is a cut between two transactions. The ledger knows where batches end. For a
place inside a batch, the lake's table `_transactions` says where its transactions end.
The origin is a version of the table's mirror (the Delta table with its current rows),
or an empty table, and the changes from there to the cut. The newest version before the
cut is chosen, because then the fewest changes are read. Rows that were read from the
source by SELECT are in no changelog, so no origin begins before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.evolution import evolution_steps
from lockstep.pipeline.mirror.layout import DELETED_AT, changelog_names, table_id
from lockstep.pipeline.mirror.lineage import ColumnLineage
from lockstep.pipeline.mirror.merging import (
    SETTLING_EVENTS,
    ChangelogOrigin,
    MergePlan,
    has_rows,
    plan_merge,
    reload_origin,
)
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.batch import Batch, TableContent
from lockstep.pipeline.model.gaps import CLOSING, Gap
from lockstep.pipeline.model.lake_commit import WriteKind, metadata_text
from lockstep.pipeline.model.table_state import Extent, TableEventKind
from lockstep.pipeline.ports.lease_check import no_check
from lockstep.pipeline.ports.ledger import batch_content, table_contents
from lockstep.pipeline.ports.mirror_writes import (
    ColumnOrigin,
    CountedReplace,
    FoldedChanges,
    MirrorTarget,
    Replace,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import Copies, Mirrors
from lockstep.pipeline.replay.spans import (
    TRANSACTION_COLUMNS,
    batch_at,
    beginning_sentence,
    count_transactions_up_to,
    end_text,
    is_before_history,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.reshaping import new_tightenings
from lockstep.pipeline.run.status.version_sets import explain_missing
from lockstep.pipeline.run.stop_errors import arrow_errors_as_table_error
from lockstep.pipeline.run.unpruned_batches import (
    RUNS_HINT,
    HiddenChanges,
    batch_of_run,
    hidden_changes,
    history_begin,
    read_until_for,
    unpruned_batches,
)
from lockstep.pipeline.run.write.job import (
    Job,
    Task,
    folders_of,
    lineage_over,
    versions_between,
)
from lockstep.pipeline.run.write.mirror_write import write_once
from lockstep.pipeline.run.write.origin import (
    earliest_readable_version,
    newest_readable_version,
    schema_version_shown_by,
)
from lockstep.pipeline.run.write.overlaps import may_repeat_merged
from lockstep.pipeline.run.write.stamps import find_emptying_stamps, find_read_stamp
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import NothingMatches, PastRefused, SpanRefused, TableError
from lockstep.pipeline.values.intent import Intent, MirrorVersion, MissingReason
from lockstep.pipeline.values.places import AtMoment, InFile, OfRun, Place, moment_text
from lockstep.pipeline.values.policies import Deletes, DroppedColumns, Readers
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.row_groups import row_groups
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Cut:
    """A place between two transactions. It lies inside `batch`, or at its end if
    `is_end_of_batch`. Before it lie all changes up to number `sequence` and all table
    events up to the place `at`. `gtid`, `committed_at`: those of the last transaction
    before the cut, if known. `previous_batch`: the newest batch that ends at the cut
    or before it; 0 for none."""

    batch: Batch
    is_end_of_batch: bool
    sequence: int
    at: Coordinates
    committed_at: datetime | None
    gtid: str | None
    previous_batch: int

    def __str__(self) -> str:
        moment = "" if self.committed_at is None else f", {moment_text(self.committed_at)}"
        return f"{self.at}{moment}" if not self.gtid else f"{self.at} ({self.gtid}{moment})"


def cut_at(ports: RunPorts, place: Place) -> Cut:
    """Return the cut at a place. Raise `PastRefused` if `_transactions` lacks its
    batch, and `SpanRefused` for a place that occurs in several servers' logs."""
    batches = unpruned_batches(ports.ledger, ports.source.name)
    begin = history_begin(ports.ledger, batches)
    if batches and is_before_history(place, batches, begin):
        raise PastRefused(
            f"{place} lies too early: {beginning_sentence(batches[0], begin)}", hint=_LATER_HINT
        )
    batch_by_run = _batch_of_named_run(ports, place)
    within = batch_at(place, batches, batch_by_run, read_until_for(ports.ledger, place, batches))
    if within.is_batch_end:
        return _end_of_batch(within.batch)
    deletion = ports.ledger.deletion_notes(ports.source.name).newest
    if deletion is not None and within.batch.id <= deletion.last_batch:
        raise PastRefused(
            f"nothing records where the transactions around {place} end any more: "
            f"{deletion.sentence}",
            hint=f"the earliest place that works is {deletion.end.at}; before that, ends of "
            "batches whose versions the lake still has: `lockstep versions --list`",
        )
    return _cut_inside(ports, place, within.batch, is_oldest=within.batch.id == batches[0].id)


_LATER_HINT: Final = "name a later place: `lockstep versions --list` shows the ends of batches"


def _end_of_batch(batch: Batch) -> Cut:
    """Return the cut at the end of an acknowledged batch."""
    end = batch.captured_end
    return Cut(
        batch,
        is_end_of_batch=True,
        sequence=batch.sequence_before + batch.changes,
        at=end.at,
        committed_at=end.committed_at,
        gtid=batch.captured_cursor.anchor.gtid or None,
        previous_batch=batch.id,
    )


def _batch_of_named_run(ports: RunPorts, place: Place) -> dict[str, int]:
    """Return, by run, the batch of the run that a place names; empty if it names none.
    Raise `SpanRefused` if that batch is not acknowledged."""
    if not isinstance(place, OfRun):
        return {}
    batch = batch_of_run(ports.ledger, ports.source.name, place.run)
    cursor = ports.ledger.cursors(ports.source.name).acknowledged
    if cursor is None or batch.id > cursor.batch:
        raise SpanRefused(
            f"no acknowledged batch of {ports.source.name} was captured by a run {place.run}",
            hint=RUNS_HINT,
        )
    return {place.run: batch.id}


def _cut_inside(ports: RunPorts, place: Place, batch: Batch, *, is_oldest: bool) -> Cut:
    """Return the cut at a place inside a batch. `is_oldest`: the batch is the oldest
    that the ledger knows."""
    transactions = _transactions(ports, batch)
    transaction_count = count_transactions_up_to(place, transactions, batch)
    previous_batch = _previous_batch(ports, batch)
    if transaction_count == transactions.num_rows and transaction_count:
        return _end_of_batch(batch)
    if not transaction_count:
        if previous_batch is None or (is_oldest and not _begins_before(batch, place)):
            raise PastRefused(
                f"{place} lies before the first transaction that was captured"
                f"{_committed_clause(transactions)}",
                hint=_LATER_HINT,
            )
        if previous_batch.captured_end.at == batch.start.at:
            return _end_of_batch(previous_batch)
        return Cut(
            batch,
            is_end_of_batch=False,
            sequence=batch.sequence_before,
            at=batch.start.at,
            committed_at=batch.start.committed_at,
            gtid=None,
            previous_batch=previous_batch.id,
        )
    earlier_transactions = transactions.slice(0, transaction_count)
    sequences = earlier_transactions.column("last_sequence").drop_null().to_pylist()
    [last] = earlier_transactions.slice(transaction_count - 1).to_pylist()
    return Cut(
        batch,
        is_end_of_batch=False,
        sequence=max(sequences, default=batch.sequence_before),
        at=Coordinates(LogFile.parse(last["_file"]), last["end_offset"]),
        committed_at=last["_committed_at"],
        gtid=last["_gtid"],
        previous_batch=0 if previous_batch is None else previous_batch.id,
    )


def _begins_before(batch: Batch, place: Place) -> bool:
    """Return whether a batch begins at or before a place that is before its first
    transaction."""
    if not isinstance(place, AtMoment | InFile):
        return True
    begin = batch.start.committed_at
    return begin is not None and begin <= place.moment


def _committed_clause(transactions: pa.Table) -> str:
    """Return the end of a sentence on the first of the transactions: when it was
    committed."""
    [first] = transactions.slice(0, 1).to_pylist()
    moment = first["_committed_at"]
    return "" if moment is None else f", which was committed at {moment_text(moment)}"


def _previous_batch(ports: RunPorts, batch: Batch) -> Batch | None:
    if batch.previous_batch is None:
        return None
    [previous] = ports.ledger.live_batches(
        ports.source.name, batch.previous_batch, batch.previous_batch
    )
    return previous


def _transactions(ports: RunPorts, batch: Batch) -> pa.Table:
    """Return the transactions of a batch, in the order of the log, from the lake's
    table `_transactions`. Raise `PastRefused` if their files are missing or damaged."""
    folder = system_table_path(ports.source.name, SystemTable.TRANSACTIONS)
    files = [
        file
        for segment in batch_content(ports.ledger, batch.source, batch.id).system_segments
        if segment.table is SystemTable.TRANSACTIONS
        for file in segment.files
    ]
    damage = next(iter(ports.segments.damage_sentences(folder, files)), None)
    if not files or damage is not None:
        reason = damage or "the ledger has no file of them"
        raise PastRefused(
            f"the place lies inside batch {batch.id}, and it is not known where its transactions "
            f"end: {reason}",
            hint=f"name the end of a batch instead: `lockstep versions --list`; this one ends at "
            f"{batch.end}",
        )
    return pa.concat_tables(ports.segments.pieces(folder, files, list(TRANSACTION_COLUMNS)))


# -- the origin ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RebuildOrigin:
    """The origin of a table that is rebuilt as of a cut. `changelog_origin`: a mirror
    version or none, and the changes after it; `plan`: how the changes up to the cut are
    merged. `versions`: the versions of its structure, oldest first. `lineage`: how
    their columns become the table's; `key`: its key columns. `extent`: set if the table
    was partial there.
    """

    table: TableName
    cut: Cut
    changelog_origin: ChangelogOrigin
    plan: MergePlan
    versions: tuple[SchemaVersion, ...]
    lineage: ColumnLineage
    key: tuple[str, ...]
    extent: Extent | None = None


def origin_at(ports: RunPorts, table: TableName, place: Place) -> RebuildOrigin:
    """Return the origin of a table as of a place. No rows of the table are read, and no
    lease is needed. Raise `PastRefused` if the lake no longer has the origin, or does
    not have it yet."""
    cut = cut_at(ports, place)
    contents = _contents_at(ports, table, cut)
    _require_captured(ports, table, cut, contents)
    extent = _extent_at(ports, table, cut, contents)
    versions = ports.ledger.mirror_versions(ports.source.name, table, cut.previous_batch)
    reasons = []
    base = newest_readable_version(ports, versions)
    if base is not None:
        try:
            origin = _origin_from_version(ports, table, cut, base, contents)
            return replace(origin, extent=extent)
        except TableError as error:
            reasons.append(error.reason)
    try:
        return replace(_origin_from_changelog(ports, table, cut, contents), extent=extent)
    except TableError as error:
        reasons.append(error.reason)
    raise PastRefused(
        f"{table} cannot be made as of {cut}: {'; '.join(dict.fromkeys(reasons))}",
        hint=_earliest_hint(ports, table),
    )


def _contents_at(ports: RunPorts, table: TableName, cut: Cut) -> list[TableContent]:
    """Return the table's content of all batches up to a cut, oldest first. Raise
    `PastRefused` if the cut's batch read all rows from the source after the cut: it
    need not have captured the changes before it read them."""
    contents = table_contents(ports.ledger, ports.source.name, table, 1, cut.batch.id)
    if cut.is_end_of_batch or not contents or contents[-1].batch != cut.batch.id:
        return contents
    last = contents[-1]
    segments = [segment for segment in last.segments if segment.first_sequence <= cut.sequence]
    # Several statements may follow one change: then their places in the log decide.
    events = [
        event
        for event in last.events
        if event.sequence <= cut.sequence and not cut.at < event.place
    ]
    reads_rows = last.snapshot is not None and last.snapshot.columns is None
    if reads_rows and not any(event.kind is TableEventKind.REREAD for event in events):
        raise PastRefused(
            f"{table} cannot be made as of {cut}: all its rows were read from the source after "
            f"that place, in batch {last.batch}",
            hint=_nearest_hint(ports, table, cut),
        )
    earlier_content = replace(last, segments=tuple(segments), events=tuple(events))
    return [*contents[:-1], *([earlier_content] if segments or events else [])]


def _extent_at(
    ports: RunPorts, table: TableName, cut: Cut, contents: Sequence[TableContent]
) -> Extent | None:
    """Return the part of the table that the lake can have as of the cut; None if it has
    all of its rows."""
    batches = [cut.batch.id]
    last_events = contents[-1].events if contents and contents[-1].batch == cut.batch.id else ()
    if not cut.is_end_of_batch and not any(event.kind in CLOSING for event in last_events):
        batches.append(cut.previous_batch)  # a later event of the batch may have made it whole
    return next(
        (
            extent
            for batch in batches
            for extent in ports.ledger.partial_tables(ports.source.name, batch)
            if extent.table == table and not (extent.empty_at and extent.empty_at <= cut.at)
        ),
        None,
    )


def _schema_version_of(
    ports: RunPorts, table: TableName, base: MirrorVersion, contents: Sequence[TableContent]
) -> int:
    """Return the schema version that a mirror version shows. The first version of a
    ledger that was made from the lake shows the structure that was recorded with it."""
    if base.write_id is None:
        source = ports.source.name
        [batch] = ports.ledger.live_batches(source, base.last_batch, base.last_batch)
        schema = ports.ledger.schema_at(source, table, batch=batch.id, place=batch.captured_end.at)
        if schema is not None:
            return schema.version
    return schema_version_shown_by(base, contents)


def _unusable(reason: str) -> TableError:
    """Return the error for an origin that cannot be used. Only its reason is shown."""
    return TableError(reason, hint="")


def _origin_from_version(
    ports: RunPorts,
    table: TableName,
    cut: Cut,
    base: MirrorVersion,
    contents: Sequence[TableContent],
) -> RebuildOrigin:
    """Return the origin that begins with the version `base`. Raise `TableError` if the
    changelog does not have all changes since."""
    later_contents = tuple(content for content in contents if content.batch > base.last_batch)
    _require_in_changelog(ports, table, later_contents)
    schema_version = _schema_version_of(ports, table, base, contents)
    changes = ChangelogOrigin(later_contents, schema_version, base)
    plan = plan_merge(later_contents)
    plan = replace(plan, final_version=plan.final_version or schema_version)
    if not plan.replaces_rows:
        schema = ports.mirrors.schema(base.mirror, base.delta_version)
        return _rebuild_origin(ports, table, cut, changes, plan, schema)
    # The table was emptied after the version, so rows of the version count only if they
    # are kept.
    if not ports.source.policies_of(table).keeps_rows:
        changes = replace(changes, base=None)
    elif any(content.events for content in later_contents[1:]):
        # A run keeps the rows that its mirror had when it began. Here all changes are
        # merged at once, so rows that were added after the version and before the table
        # was emptied would be missing.
        raise _unusable("its rows were kept when it was emptied")
    return _rebuild_origin(ports, table, cut, changes, plan)


def _require_in_changelog(
    ports: RunPorts, table: TableName, contents: Sequence[TableContent]
) -> None:
    """Raise `TableError` unless the changelog has all rows that came into the table
    with these contents."""
    deletion = ports.ledger.deletion_notes(ports.source.name, table).newest
    if deletion is not None and any(content.batch <= deletion.last_batch for content in contents):
        raise _unusable(deletion.sentence)
    for content in contents:
        snapshot = content.snapshot
        if snapshot is not None and (snapshot.columns is not None or has_rows(snapshot)):
            raise _unusable(f"rows of it were read from the source in batch {content.batch}")
        for event in content.events:
            if event.kind is TableEventKind.COPIED:
                raise _unusable(
                    f"its rows were those of {event.origin} until batch {content.batch}"
                )


def _origin_from_changelog(
    ports: RunPorts, table: TableName, cut: Cut, contents: Sequence[TableContent]
) -> RebuildOrigin:
    """Return the origin that begins with an empty table. Raise `TableError` if the
    changelog does not reach back to one."""
    ledger, source = ports.ledger, ports.source.name
    gaps = [gap.batch for gap in ledger.gaps(source, cut.batch.id)]
    overlaps = ledger.live_batches(source, last=cut.batch.id, continuity=Continuity.OVERLAP)
    overlapping_batches = [batch.id for batch in overlaps]
    deletion_notes = ledger.deletion_notes(source, table)
    policies = ports.source.policies_of(table)
    settling_events = [
        event for content in contents for event in content.events if event.kind in SETTLING_EVENTS
    ]
    if ledger.table_states(source)[table].adopted_version is not None:
        raise _unusable("its mirror has rows that are older than this ledger")
    if settling_events:
        reason = "" if deletion_notes.newest is None else deletion_notes.newest.reason
        changes = reload_origin(
            contents,
            is_adopted=False,
            batches_after_gaps=gaps,
            overlapping_batches=overlapping_batches,
            deleted_through=deletion_notes.last_batch,
            reason_deleted=reason,
        )
        if isinstance(changes, str):
            raise _unusable(changes)
        begin = settling_events[0].sequence
        had_rows = len(settling_events) > 1 or any(
            segment.first_sequence <= begin for content in contents for segment in content.segments
        )
        if policies.keeps_rows and had_rows:
            raise _unusable("rows that were deleted before are kept in its mirror")
    else:
        if not contents or any(
            batch > contents[0].batch for batch in (*gaps, *overlapping_batches)
        ):
            raise _unusable("its changelog lacks or repeats changes since the table was empty")
        if deletion_notes.newest is not None and contents[0].batch <= deletion_notes.last_batch:
            raise _unusable(deletion_notes.newest.sentence)
        plan = plan_merge(contents)
        changes = ChangelogOrigin(tuple(contents), min(plan.versions, default=plan.final_version))
    origin = _rebuild_origin(ports, table, cut, changes, plan_merge(changes.contents))
    keeps_columns = policies.dropped_columns == DroppedColumns.KEEP
    if keeps_columns and _has_dropped_columns(origin.versions):
        raise _unusable("columns that the source dropped stay in its mirror")
    return origin


def _has_dropped_columns(versions: Sequence[SchemaVersion]) -> bool:
    """Return whether any version of the structure lacks a column of the version before
    it."""
    for earlier, later in pairwise(versions):
        assert earlier.shown_schema is not None, "they are known"
        kept_names = {name.lower() for name in later.shown_columns_from or () if name is not None}
        if any(column.name.lower() not in kept_names for column in earlier.shown_schema.columns):
            return True
    return False


def _rebuild_origin(
    ports: RunPorts,
    table: TableName,
    cut: Cut,
    changes: ChangelogOrigin,
    plan: MergePlan,
    schema: pa.Schema | None = None,
) -> RebuildOrigin:
    """Return the origin with these changes. `schema`: the columns of the mirror version
    with which it begins; None if none of its rows count. Raise `TableError` if the
    changes do not fit them."""
    first_version = changes.version if plan.first_version is None else plan.first_version
    versions = tuple(versions_between(ports, table, first_version, plan.final_version))
    lineage = lineage_over(ports, versions, mirror=schema)
    if lineage.reasons_to_reread:
        raise _unusable(lineage.reasons_to_reread[0])
    key = lineage.key_of(plan.versions)
    if key is None:
        raise _unusable("no key tells its rows apart in every version it had")
    plan = replace(plan, through=None if cut.is_end_of_batch else cut.sequence)
    return RebuildOrigin(table, cut, changes, plan, versions, lineage, key)


_REASONS_FOR_REFUSAL: Final = frozenset(
    {
        MissingReason.STOPPED,
        MissingReason.READING,
        MissingReason.BEHIND,
        MissingReason.RESUMED_LATER,
    }
)
"""Reasons for which the changelog, too, may lack changes up to the end of the batch."""


def _require_captured(
    ports: RunPorts, table: TableName, cut: Cut, contents: Sequence[TableContent]
) -> None:
    """Raise `PastRefused` unless the source had the table at the cut and the lake shows
    it. Raise `NothingMatches` if the lake does not have the table at all."""
    ledger, source = ports.ledger, ports.source.name
    if table not in ledger.table_states(source):
        raise NothingMatches(
            f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
        )
    batches = sorted({cut.previous_batch, cut.batch.id} - {0})
    version_sets = (ledger.version_set(source, batch) for batch in batches)
    for missing in chain.from_iterable(shown.missing_tables for shown in version_sets):
        if missing.table == table and missing.reason in _REASONS_FOR_REFUSAL:
            reason = explain_missing(ledger, source, missing).reason
            raise PastRefused(
                f"{table} cannot be made as of {cut}: {reason}",
                hint=_nearest_hint(ports, table, cut),
            )
    version = ledger.schema_at(source, table, batch=cut.batch.id, place=cut.at)
    if version is not None and version.knowledge is Knowledge.DROPPED:
        raise PastRefused(
            f"{table} had been dropped, or had got another name, at {version.since}, before {cut}",
            hint=f"name an earlier place: `lockstep schema {table.word}` shows when it existed",
        )
    hidden = _hidden_changes(ports, table)
    if hidden is not None and cut.batch.id <= hidden.last_batch:
        raise PastRefused(
            f"{table} cannot be made as of {cut}: {hidden.reason}",
            hint=_earliest_hint(ports, table),
        )
    if not contents and not ledger.mirror_versions(source, table, cut.previous_batch):
        raise PastRefused(
            f"nothing of {table} was captured up to {cut}", hint=_earliest_hint(ports, table)
        )
    _require_no_open_gap(ports, table, cut, contents)


def _require_no_open_gap(
    ports: RunPorts, table: TableName, cut: Cut, contents: Sequence[TableContent]
) -> None:
    """Raise `PastRefused` if the table may lack changes of a gap (a part of the log
    that was skipped) as of the cut."""
    ledger, source = ports.ledger, ports.source.name
    names = {table}
    gaps = ledger.gaps(source, cut.previous_batch)
    if not cut.is_end_of_batch:
        events = contents[-1].events if contents and contents[-1].batch == cut.batch.id else ()
        if any(event.kind in CLOSING for event in events):
            return
        names |= {event.origin for event in events if event.origin is not None}
        gaps += [
            replace(gap, closed={}, new_names={})
            for gap in ledger.gaps(source, cut.batch.id)
            if gap.batch == cut.batch.id
        ]
    gap = next((gap for gap in gaps if gap.open_among(names)), None)
    if gap is not None:
        raise PastRefused(
            f"{table} cannot be made as of {cut}: the log from {gap.sentence}, and the table may "
            "lack changes of it",
            hint="; ".join(_places_around_gap(ports, table, gap)),
        )


def _places_around_gap(ports: RunPorts, table: TableName, gap: Gap) -> Iterator[str]:
    """Yield clauses that name the nearest places before and after a gap for which the
    table can be made."""
    ledger, source = ports.ledger, ports.source.name
    newest = newest_readable_version(ports, _shown_versions(ports, table, gap.batch - 1))
    if newest is not None:
        [batch] = ledger.live_batches(source, newest.last_batch, newest.last_batch)
        yield f"its newest version before that is as of {end_text(batch)}"
    gaps = ledger.gaps(source)
    if any(gap.open_among([table]) for gap in gaps):
        yield f"`lockstep verify {table.word}` finds out whether it is right now"
        return
    closing_batches = [
        event.batch
        for gap in gaps
        for event in gap.closed.values()
        if event.table == str(table) and event.kind is not TableEventKind.DROPPED
    ]
    last = max(closing_batches, default=0)
    for batch in ledger.live_batches(source, last, last):
        yield f"it is right again as of {end_text(batch)}"


def _nearest_hint(ports: RunPorts, table: TableName, cut: Cut) -> str:
    """Return the hint with the last place before the cut for which the lake has a
    version of the table; without one, with the first place after it."""
    newest = newest_readable_version(ports, _shown_versions(ports, table, cut.previous_batch))
    if newest is None:
        return _earliest_hint(ports, table)
    [batch] = ports.ledger.live_batches(ports.source.name, newest.last_batch, newest.last_batch)
    return f"its newest version before that is as of {end_text(batch)}"


def _shown_versions(ports: RunPorts, table: TableName, through: int) -> list[MirrorVersion]:
    """Return the versions of a table's mirror up to the batch `through` that show no
    more than its settings do now."""
    hidden = _hidden_changes(ports, table)
    return [
        version
        for version in ports.ledger.mirror_versions(ports.source.name, table, through)
        if hidden is None or version.last_batch > hidden.last_batch
    ]


def _hidden_changes(ports: RunPorts, table: TableName) -> HiddenChanges | None:
    """Return the changes that the table's settings no longer show, whether a run has
    recorded that yet or not."""
    ledger, source = ports.ledger, ports.source.name
    unrecorded = new_tightenings(ports, ledger.uncleared_values(source))
    return hidden_changes(ledger, source, table, unrecorded=unrecorded)


def _earliest_hint(ports: RunPorts, table: TableName) -> str:
    """Return the hint with the earliest place for which the table can be rebuilt."""
    ledger, source = ports.ledger, ports.source.name
    cursor = ledger.cursors(source).acknowledged
    versions = [] if cursor is None else _shown_versions(ports, table, cursor.batch)
    first = earliest_readable_version(ports, versions)
    if first is None:
        return "`lockstep versions --list` shows the versions that the lake has"
    [batch] = ledger.live_batches(source, first.last_batch, first.last_batch)
    return f"its earliest version that the lake still has is as of {end_text(batch)}"


# -- writing it ------------------------------------------------------------------------


_NAME: Final = "table"
"""The name of the table in the temporary place where it is built (`Copies.build`)."""
_COPY_TXN: Final = 1
"""The number of the Delta transaction that copies the rows of the first version."""
_MERGE_TXN: Final = 2
"""The number of the Delta transaction that merges the changes."""


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """A table of the past that was written, or would be. `origin`: what it is made
    from; `into`: its absolute path; `rows`: number of its rows, None for a plan or if
    the store does not know it.
    """

    origin: RebuildOrigin
    into: str
    rows: int | None = None
    seconds: float = 0.0

    @property
    def table(self) -> TableName:
        return self.origin.table

    @property
    def cut(self) -> Cut:
        return self.origin.cut


def rebuild_as_of(
    ports: RunPorts, copies: Copies, origin: RebuildOrigin, into: str
) -> RebuildReport:
    """Write the table as it was to the path `into`; no lease is needed. Raise
    `PastRefused` if a file of its origin is damaged."""
    timer_start = perf_counter()
    with copies.build(_NAME, into) as mirrors:
        version = _write_table(ports, mirrors, origin)
        size = mirrors.size(_NAME, version)
    rows = None if size is None else size.row_count
    return RebuildReport(origin, into, rows, perf_counter() - timer_start)


def _write_table(ports: RunPorts, mirrors: Mirrors, origin: RebuildOrigin) -> int:
    """Write the table among the given mirrors, and return its Delta version.
    Raise `PastRefused` if a file of its origin is damaged."""
    copy_ports = replace(ports, mirrors=mirrors, source=ports.source.for_readers(Readers.ANY))
    _require_undamaged(ports, origin)
    try:
        with arrow_errors_as_table_error("make it again"):
            if origin.changelog_origin.base is not None:
                _copy_base(ports, copy_ports, origin.changelog_origin.base, origin)
            if origin.changelog_origin.contents:
                write_once(copy_ports, _job(copy_ports, origin), no_check)
    except TableError as error:
        raise PastRefused(
            f"{origin.table} cannot be made as of {origin.cut}: {error.reason}",
            hint=error.hint or "`lockstep versions --list` shows the versions that the lake has",
        ) from error
    version = mirrors.version(_NAME)
    assert version is not None, "it was written"
    return version


def _require_undamaged(ports: RunPorts, origin: RebuildOrigin) -> None:
    """Raise `PastRefused` if a file of the changelog is missing or damaged."""
    folders = _folders(ports, origin)
    for segment in origin.plan.segments:
        sentences = ports.segments.damage_sentences(folders[segment.schema_version], segment.files)
        if sentences:
            raise PastRefused(
                f"the changelog of {origin.table} is damaged: {sentences[0]}",
                hint="`lockstep replay --from earliest --to latest` may bring it back",
            )


def _folders(ports: RunPorts, origin: RebuildOrigin) -> dict[int, str]:
    versions = {version.version: version for version in origin.versions}
    return folders_of(ports, origin.plan.versions, versions)


def _copy_base(
    ports: RunPorts, copy_ports: RunPorts, base: MirrorVersion, origin: RebuildOrigin
) -> None:
    """Write the rows of the version with which the table begins. Rows that are marked
    as deleted there are staged as deletions, which mark them again."""
    mirror_schema = ports.mirrors.schema(base.mirror, base.delta_version)
    policies = copy_ports.source.policies_of(origin.table)
    has_marks = policies.marks_deleted and DELETED_AT.name in mirror_schema.names
    schema = pa.schema(
        field for field in mirror_schema if not has_marks or field.name != DELETED_AT.name
    )
    version = ports.ledger.schema_version(
        ports.source.name, origin.table, origin.changelog_origin.version
    )
    key = () if version.shown_schema is None else merge_key(version.shown_schema)
    present_paths, deleted_paths = list[str](), list[str]()
    try:
        for row_group in row_groups(
            ports.mirrors.rows(base.mirror, mirror_schema.names, base.delta_version)
        ):
            rows = row_group.select(mirror_schema.names).cast(mirror_schema)
            deletion_times = rows.column(DELETED_AT.name) if has_marks else pa.nulls(rows.num_rows)
            present_rows = rows.filter(pc.is_null(deletion_times)).select(schema.names)
            if present_rows.num_rows:
                present_paths.append(copy_ports.mirrors.stage(_NAME, present_rows))
            if present_rows.num_rows < rows.num_rows:
                changes = _deletions(rows.filter(pc.is_valid(deletion_times)), schema)
                deleted_paths.append(copy_ports.mirrors.stage(_NAME, changes))
        columns = tuple(ColumnOrigin(field.name, field.type) for field in schema)
        snapshot = (StagedFiles(tuple(present_paths), columns),) if present_paths else ()
        # The changes after the version may bring the column that marks deleted rows.
        deletes = Deletes.SOFT if has_marks else Deletes.REMOVE
        target = MirrorTarget(
            _NAME,
            schema,
            _app_id(copy_ports, origin),
            _COPY_TXN,
            _user_metadata(copy_ports, origin, _COPY_TXN),
            replace(policies, deletes=deletes),
        )
        copy_ports.mirrors.write(
            Replace(target, key, snapshot, FoldedChanges(tuple(deleted_paths)))
            if key
            else CountedReplace(target, (), snapshot)
        )
    finally:
        for path in (*present_paths, *deleted_paths):
            copy_ports.mirrors.unstage(path)


def _deletions(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the changes that mark these rows as deleted again."""
    columns = [pa.array(["delete"] * rows.num_rows, pa.string()), rows.column(DELETED_AT.name)]
    names = ["_change_type", "_committed_at", *changelog_names(schema.names)]
    return pa.table([*columns, *(rows.column(name) for name in schema.names)], names=names)


def _app_id(ports: RunPorts, origin: RebuildOrigin) -> str:
    return f"lockstep/{ports.source.name}/{table_id(origin.table)}/copy"


def _user_metadata(ports: RunPorts, origin: RebuildOrigin, txn_version: int) -> str:
    """Return the user metadata of a commit. It names the place of the log that the
    table shows after its last commit."""
    return metadata_text(
        {
            "kind": WriteKind.REWRITE.value,
            "ledger": ports.ledger.identity(),
            "source": ports.source.name,
            "table": str(origin.table),
            "place": str(origin.cut.at),
            "gtid": origin.cut.gtid,
            "step": txn_version,
        }
    )


def _job(copy_ports: RunPorts, origin: RebuildOrigin) -> Job:
    """Return the job that merges the changes up to the cut as a run would."""
    source = copy_ports.source.name
    batch_ids = {content.batch for content in origin.changelog_origin.contents}
    first, last = min(batch_ids), max(batch_ids)
    live_batches = copy_ports.ledger.live_batches(source, first, last)
    batches = tuple(batch for batch in live_batches if batch.id in batch_ids)
    may_repeat = may_repeat_merged(copy_ports, origin.plan, origin.key, batches)
    base = origin.changelog_origin.base
    has_base = base is not None
    intent = Intent(
        0,
        origin.table,
        _app_id(copy_ports, origin),
        _MERGE_TXN,
        first,
        last,
        step="copy",
        may_have_kept_rows=base is not None and base.may_have_kept_rows,
    )
    state = replace(copy_ports.ledger.table_states(source)[origin.table], mirror=_NAME)
    policies = replace(origin.lineage.policies, readers=Readers.ANY)
    lineage = replace(origin.lineage, policies=policies)
    user_metadata = _user_metadata(copy_ports, origin, _MERGE_TXN)
    task = Task(intent, state, batches, origin.plan, user_metadata, structure=None)
    return Job(
        task=task,
        lineage=lineage,
        key=origin.key,
        steps=() if origin.plan.replaces_rows or not has_base else evolution_steps(lineage),
        segments=origin.plan.segments,
        folders=_folders(copy_ports, origin),
        last_written_version=0 if has_base else -1,
        emptying_stamps=find_emptying_stamps(copy_ports, origin.table, origin.plan, batches),
        read_stamp=find_read_stamp(
            copy_ports, origin.table, origin.plan, batches, has_stamps=bool(lineage.policies.stamps)
        ),
        may_repeat=may_repeat,
        inserts_are_new=not may_repeat and not copy_ports.ledger.gaps(source),
    )
