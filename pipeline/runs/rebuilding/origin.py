"""Where the past is cut, and what a table's rows as of there are made from: a version of its
mirror, or nothing, and the changes since.

The newest version of the mirror before the cut is chosen, because it is the least to read. Rows
that were read from the source are in no changelog, so such a table begins with a later version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Final

import pyarrow as pa

from pipeline.batch import Batch, TableContent
from pipeline.changes.lineage import ColumnLineage
from pipeline.changes.merging import SETTLES, MergePlan, plan_merge, reload_origin
from pipeline.changes.source_tables import source_table_path
from pipeline.decisions import Continuity
from pipeline.errors import NothingMatches, PastRefused, SpanRefused, TableError
from pipeline.intent import MirrorVersion, Missing
from pipeline.places import AtMoment, InFile, OfRun, Place, moment_text
from pipeline.policies import DroppedColumns
from pipeline.ports.ledger import content_of, contents_of
from pipeline.position import Coordinates, LogFile
from pipeline.replay.spans import COLUMNS, batch_at, end_of, transactions_up_to
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.version_sets import explained
from pipeline.runs.known_batches import RUNS, batch_of_run, known_batches, less_shown
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.runs.merging.origin import earliest_readable, is_readable, shown_by
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.segment import SourceTable
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind

_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Cut:
    """All changes up to number `sequence`, and all that happened to tables up to the place `at`,
    which lies in `batch` or at its end (`whole`). `gtid`, `committed_at`: of the last transaction
    that counts, where that is known. `before`: the newest batch that lies in front of the cut
    altogether; 0 for none."""

    batch: Batch
    whole: bool
    sequence: int
    at: Coordinates
    committed_at: datetime | None
    gtid: str | None
    before: int

    def __str__(self) -> str:
        moment = "" if self.committed_at is None else f", {moment_text(self.committed_at)}"
        return f"{self.at}{moment}" if not self.gtid else f"{self.at} ({self.gtid}{moment})"


def cut_at(work: Workplace, place: Place) -> Cut:
    """By the ledger, and where the place lies inside a batch by what the lake has of its
    transactions. `PastRefused`, or `SpanRefused` for a log that cannot be told."""
    chain = known_batches(work.ledger, work.source.name)
    within = batch_at(place, chain, _runs(work, place))
    if within.whole:
        return end_of_batch(within.batch)
    gone = work.ledger.forgotten(work.source.name).newest
    if gone is not None and within.batch.id <= gone.through:
        raise PastRefused(
            f"nothing tells the transactions around {place} apart any more: {gone.told}",
            hint=f"the earliest place that works is {gone.end.at}; before that, ends of batches "
            "whose versions are still there: `lockstep versions --list`",
        )
    return _inside(work, place, within.batch, oldest=within.batch.id == chain[0].id)


def end_of_batch(batch: Batch) -> Cut:
    end = batch.end
    assert end is not None, "it is acknowledged"
    last = None if batch.witness is None else batch.witness.gtid or None
    return Cut(batch, True, batch.base + batch.changes, end.at, end.committed_at, last, batch.id)


def _runs(work: Workplace, place: Place) -> dict[str, int]:
    if not isinstance(place, OfRun):
        return {}
    batch = batch_of_run(work.ledger, work.source.name, place.run)
    cursor = work.ledger.cursors(work.source.name).acknowledged
    if cursor is None or batch.id > cursor.batch:
        raise SpanRefused(
            f"no acknowledged batch of {work.source.name} was captured by a run {place.run}",
            hint=RUNS,
        )
    return {place.run: batch.id}


def _inside(work: Workplace, place: Place, batch: Batch, *, oldest: bool) -> Cut:
    """`oldest`: whether it is the oldest batch that is known."""
    told = _transactions(work, batch)
    count = transactions_up_to(place, told, batch)
    before = _before(work, batch)
    if count == told.num_rows and count:
        return end_of_batch(batch)
    if not count:
        if before is None or (oldest and not _goes_on(place, batch)):
            raise PastRefused(
                f"{place} lies before the first transaction that was captured{_first(told)}",
                hint="name a later place: `lockstep versions --list` shows the ends of batches",
            )
        return Cut(
            batch,
            False,
            batch.base,
            batch.start.at,
            batch.start.committed_at,
            None,
            before.id,
        )
    some = told.slice(0, count)
    numbers = [one for one in some.column("last_sequence").to_pylist() if one is not None]
    [last] = some.slice(count - 1).to_pylist()
    return Cut(
        batch,
        False,
        max(numbers, default=batch.base),
        Coordinates(LogFile.parse(last["_file"]), last["end_offset"]),
        last["_committed_at"],
        last["_gtid"],
        0 if before is None else before.id,
    )


def _goes_on(place: Place, batch: Batch) -> bool:
    """Whether what lies before a batch is as of the place, if nothing of the batch is."""
    if not isinstance(place, AtMoment | InFile):
        return True
    begin = batch.start.committed_at
    return begin is not None and begin <= place.moment


def _first(told: pa.Table) -> str:
    [first] = told.slice(0, 1).to_pylist()
    moment = first["_committed_at"]
    return "" if moment is None else f", which was committed at {moment_text(moment)}"


def _before(work: Workplace, batch: Batch) -> Batch | None:
    if batch.follows is None:
        return None
    [found] = work.ledger.live_batches(work.source.name, batch.follows, batch.follows)
    return found


def _transactions(work: Workplace, batch: Batch) -> pa.Table:
    """Those of a batch, in their order. `PastRefused` where the lake does not have them."""
    folder = source_table_path(work.source.name, SourceTable.TRANSACTIONS)
    files = [
        file
        for part in content_of(work.ledger, batch.source, batch.id).source_parts
        if part.table is SourceTable.TRANSACTIONS
        for file in part.files
    ]
    wrong = next(iter(work.segments.damaged(folder, files)), None)
    if not files or wrong is not None:
        why = wrong or "the ledger has no file of them"
        raise PastRefused(
            f"the place lies inside batch {batch.id}, and it is not known where its transactions "
            f"end: {why}",
            hint=f"name the end of a batch instead: `lockstep versions --list`; this one ends at "
            f"{batch.end}",
        )
    return pa.concat_tables(work.segments.pieces(folder, files, list(COLUMNS)))


@dataclass(frozen=True, slots=True)
class RebuildOrigin:
    """`base`: the version of a mirror that it begins with; None where its changelog has all of
    it. `parts`: the changes behind that, up to the cut, oldest first; with none the base is all,
    and shows schema version `shown`."""

    table: TableName
    cut: Cut
    base: MirrorVersion | None
    parts: tuple[TableContent, ...]
    shown: int
    plan: MergePlan
    versions: tuple[SchemaVersion, ...]
    line: ColumnLineage
    key: tuple[str, ...]

    @property
    def images(self) -> int:
        """At most so many row images are read."""
        return sum(file.images for segment in self.plan.segments for file in segment.files)


def origin_at(work: Workplace, table: TableName, place: Place) -> RebuildOrigin:
    """Return what a table is made from as of a place; reads no rows, and needs no lease.
    `PastRefused` where the lake does not have it any more, or not yet."""
    cut = cut_at(work, place)
    parts = parts_at(work, table, cut)
    require_there(work, table, cut, parts)
    versions = work.ledger.mirror_versions(work.source.name, table, cut.before)
    reasons = []
    base = next((version for version in versions if is_readable(work, version)), None)
    if base is not None:
        try:
            return _from_version(work, table, cut, base, parts)
        except TableError as error:
            reasons.append(error.reason)
    try:
        return _from_changelog(work, table, cut, parts)
    except TableError as error:
        reasons.append(error.reason)
    raise PastRefused(
        f"{table} cannot be made as of {cut}: {'; '.join(reasons)}",
        hint=earliest(work, table),
    )


def parts_at(work: Workplace, table: TableName, cut: Cut) -> list[TableContent]:
    """What there is of a table up to a cut, oldest first."""
    parts = contents_of(work.ledger, work.source.name, table, 1, cut.batch.id)
    if cut.whole or not parts or parts[-1].batch != cut.batch.id:
        return parts
    last = parts[-1]
    left = replace(
        last,
        segments=tuple(
            segment for segment in last.segments if segment.first_sequence <= cut.sequence
        ),
        events=tuple(event for event in last.events if _lies_before(event, cut)),
    )
    return [*parts[:-1], *([left] if left.segments or left.events else [])]


def _lies_before(event: TableEvent, cut: Cut) -> bool:
    """Behind the same change, the place of the structure that holds since tells."""
    return event.sequence <= cut.sequence and not cut.at < event.place


def _from_version(
    work: Workplace, table: TableName, cut: Cut, base: MirrorVersion, parts: Sequence[TableContent]
) -> RebuildOrigin:
    behind = tuple(part for part in parts if part.batch > base.last_batch)
    _require_kept(work, table, behind)
    plan = plan_merge(behind)
    for part in behind:
        if part.snapshot is not None and _has_rows(part):
            raise TableError(f"rows of it were read from the source in batch {part.batch}", hint="")
        for event in part.events:
            if event.kind is TableEventKind.COPIED:
                was = f"its rows were those of {event.origin} until batch {part.batch}"
                raise TableError(was, hint="")
    shown = shown_by(base, parts)
    plan = replace(plan, final=plan.final or shown, through=_through(cut))
    first = shown if plan.first is None else plan.first
    if plan.replaces:
        keeps = work.source.policies_of(table).keeps_rows
        if keeps and any(part.events for part in behind[1:]):
            # What a run made of kept rows then is not made by all changes at once.
            raise TableError("its rows were kept when it was emptied", hint="")
        # Rows of before count only as kept ones.
        return _origin(work, table, cut, base if keeps else None, behind, shown, plan, first, None)
    schema = work.mirrors.schema(base.mirror, base.delta_version)
    return _origin(work, table, cut, base, behind, shown, plan, first, schema)


def _from_changelog(
    work: Workplace, table: TableName, cut: Cut, parts: Sequence[TableContent]
) -> RebuildOrigin:
    source = work.source.name
    gaps = [gap.batch for gap in work.ledger.gaps(source) if gap.batch <= cut.batch.id]
    overlaps = [
        batch.id
        for batch in work.ledger.live_batches(source, continuity=Continuity.OVERLAP)
        if batch.id <= cut.batch.id
    ]
    settling = [event for part in parts for event in part.events if event.kind in SETTLES]
    if work.ledger.table_states(source)[table].adopted is not None:
        raise TableError("its mirror has rows of before this ledger", hint="")
    if settling:
        found = reload_origin(parts, adopted=False, gaps=gaps, overlaps=overlaps)
        if isinstance(found, str):
            raise TableError(found, hint="")
        parts = found.parts
        if work.source.policies_of(table).keeps_rows and len(settling) > 1:
            raise TableError("rows that were deleted before are kept in its mirror", hint="")
    elif not parts or any(batch > parts[0].batch for batch in (*gaps, *overlaps)):
        raise TableError("its changelog does not go on from its beginning", hint="")
    _require_kept(work, table, parts)
    plan = replace(plan_merge(parts), through=_through(cut))
    first = min(plan.versions, default=plan.final) if plan.first is None else plan.first
    origin = _origin(work, table, cut, None, tuple(parts), first, plan, first, None)
    if work.source.policies_of(table).dropped_columns == DroppedColumns.KEEP and _loses_columns(
        origin.versions
    ):
        raise TableError("columns that the source dropped stay in its mirror", hint="")
    return origin


def _require_kept(work: Workplace, table: TableName, parts: Sequence[TableContent]) -> None:
    gone = work.ledger.forgotten(work.source.name, table).newest
    if gone is not None and any(part.batch <= gone.through for part in parts):
        raise TableError(gone.told, hint="")


def _loses_columns(versions: Sequence[SchemaVersion]) -> bool:
    for before, after in pairwise(versions):
        assert before.shown is not None, "they are known"
        stays = {name.lower() for name in after.shown_from or () if name is not None}
        if any(column.name.lower() not in stays for column in before.shown.columns):
            return True
    return False


def _origin(
    work: Workplace,
    table: TableName,
    cut: Cut,
    base: MirrorVersion | None,
    parts: tuple[TableContent, ...],
    shown: int,
    plan: MergePlan,
    first: int,
    schema: pa.Schema | None,
) -> RebuildOrigin:
    versions = tuple(versions_between(work, table, first, plan.final))
    line = lineage_over(work, versions, mirror=schema)
    if line.reread:
        raise TableError(line.reread[0], hint="")
    key = line.key_of(plan.versions)
    if key is None:
        raise TableError("no key tells its rows apart in every version it had", hint="")
    return RebuildOrigin(table, cut, base, parts, shown, plan, versions, line, key)


def _through(cut: Cut) -> int | None:
    return None if cut.whole else cut.sequence


def _has_rows(part: TableContent) -> bool:
    read = part.snapshot
    if read is None:
        return False
    return read.columns is not None or any(file.images for file in read.files)


_STOPPED: Final = frozenset(
    {Missing.QUARANTINED, Missing.PAUSED, Missing.LOADING, Missing.BEHIND, Missing.LATER}
)


def require_there(
    work: Workplace, table: TableName, cut: Cut, parts: Sequence[TableContent]
) -> None:
    """Whether the source had it there, and the lake follows it."""
    ledger, source = work.ledger, work.source.name
    if table not in ledger.table_states(source):
        raise NothingMatches(
            f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
        )
    asked = {cut.before, cut.batch.id} - {0}
    for missing in (
        lack for batch in sorted(asked) for lack in ledger.version_set(source, batch).missing
    ):
        if missing.table == table and missing.why in _STOPPED:
            gap = explained(ledger, source, missing)
            raise PastRefused(
                f"{table} cannot be made as of {cut}: {gap.reason}", hint=earliest(work, table)
            )
    held = ledger.schema_at(source, table, batch=cut.batch.id, place=cut.at)
    if held is not None and held.knowledge is Knowledge.DROPPED:
        raise PastRefused(
            f"{table} had been dropped, or had got another name, at {held.since}, before {cut}",
            hint=f"name an earlier place: `lockstep schema {table}` tells when it was there",
        )
    if (why := less_shown(ledger, source, table, cut.batch.id)) is not None:
        raise PastRefused(f"{table} cannot be made as of {cut}: {why}", hint=earliest(work, table))
    if not parts and not ledger.mirror_versions(source, table, cut.before):
        raise PastRefused(
            f"nothing of {table} was captured up to {cut}", hint=earliest(work, table)
        )


def earliest(work: Workplace, table: TableName) -> str:
    """The earliest place that works, in words."""
    ledger, source = work.ledger, work.source.name
    cursor = ledger.cursors(source).acknowledged
    versions = [] if cursor is None else ledger.mirror_versions(source, table, cursor.batch)
    first = earliest_readable(work, versions)
    if first is None:
        return f"`lockstep versions` tells of {table}"
    [batch] = ledger.live_batches(source, first.last_batch, first.last_batch)
    return f"the earliest version of it that is there is as of {end_of(batch)}"
