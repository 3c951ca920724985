"""Rebuild: a mirror as of a transaction of the past, or the live one made again.

Belongs here: the order, and what is reported. Does not: where the past is cut (`cut`), what the
rows are made from (`origin`), making them (`build`).

The live mirror is made aside first and brought over in one commit, so a reader sees the old rows or
the new ones. Nothing moves the source's position.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from pipeline.batch import Batch
from pipeline.changes.layout import DELETED_AT
from pipeline.decisions import Decision, Lease
from pipeline.errors import NothingMatches, PastRefused, TableError
from pipeline.lake_commit import WriteKind
from pipeline.places import Place
from pipeline.policies import Deletes
from pipeline.ports.copies import Copies
from pipeline.ports.mirrors import Mirrors
from pipeline.runs.agreement.claim import require_agreement, require_claim
from pipeline.runs.agreement.lake_logs import look_at
from pipeline.runs.context import Workplace
from pipeline.runs.cures import reload_hint
from pipeline.runs.rebuilding.build import NAME, build, staged_rows
from pipeline.runs.rebuilding.cut import Cut, cut_at, end_of_batch
from pipeline.runs.rebuilding.origin import RebuildOrigin, live_origin, origin_at
from pipeline.runs.replaying.counted_changes import require_mirror
from pipeline.runs.replaying.mirror_commit import MirrorCommitting
from pipeline.runs.replaying.selection import require_merged
from pipeline.runs.replaying.settle import settle_replays
from pipeline.table import TableName
from pipeline.table_state import TableState


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """`origin`: what it is made from, and as of where. `into`: where the table is, an absolute
    path; None for the live mirror, which has `delta_version` then. `rows`: what a reader sees; None
    where nobody counted. Neither is there for a plan."""

    origin: RebuildOrigin
    into: str | None = None
    delta_version: int | None = None
    rows: int | None = None
    seconds: float = 0.0

    @property
    def table(self) -> TableName:
        return self.origin.table

    @property
    def cut(self) -> Cut:
        return self.origin.cut


def plan_rebuild(work: Workplace, table: TableName, place: Place | None) -> RebuildReport:
    """What it would be made from; reads no rows, and needs no lease."""
    if place is None:
        return RebuildReport(_live(work, table).origin(work))
    return RebuildReport(origin_at(work, table, cut_at(work, place)))


def rebuild_as_of(
    work: Workplace, copies: Copies, table: TableName, place: Place, into: str
) -> RebuildReport:
    """The table as it was, in a place of its own; needs no lease. `PastRefused` where the lake
    does not have it any more, or not yet."""
    clock = perf_counter()
    origin = origin_at(work, table, cut_at(work, place))
    with copies.begun(into) as copy:
        version = build(work, copy, origin)
        size = copy.mirrors.size(NAME, version)
        copy.finish(NAME)
    rows = None if size is None else size.rows
    return RebuildReport(origin, into, None, rows, perf_counter() - clock)


def rebuild_live(work: Workplace, lease: Lease, copies: Copies, table: TableName) -> RebuildReport:
    """The live mirror once more, as of what is acknowledged, in one commit. `BatchesWait` while
    captured batches are not merged. Cut off, the next run finds the commit or gives it up."""
    clock = perf_counter()
    require_agreement(work)
    require_claim(work)
    for note in settle_replays(work, lease):
        work.progress.note(note)
    require_merged(work)
    live = _live(work, table)
    origin = live.origin(work)
    with copies.begun(None) as copy:
        made = build(work, copy, origin)
        version = live.brought(work, lease, origin, copy.mirrors, made)
        size = copy.mirrors.size(NAME, made)
    rows = None if size is None else size.rows
    report = RebuildReport(origin, None, version, rows, perf_counter() - clock)
    work.ledger.decide(lease, _decision(report))
    return report


@dataclass(frozen=True, slots=True)
class _Live:
    """A mirror as it stands: `own` are its columns, without the one that marks rows."""

    state: TableState
    own: pa.Schema
    soft: bool
    last: Batch

    def origin(self, work: Workplace) -> RebuildOrigin:
        return live_origin(work, self.state.table, end_of_batch(self.last), self.own)

    def brought(
        self, work: Workplace, lease: Lease, origin: RebuildOrigin, aside: Mirrors, made: int
    ) -> int:
        """Its rows are those of a table made aside from here on; its Delta version."""
        files = [file for segment in origin.plan.segments for file in segment.files]
        with staged_rows(aside, NAME, made, work.mirrors, soft=self.soft) as rows:
            committing = MirrorCommitting.begun(work, lease, self.state, self.last)
            target = committing.target(self.own, WriteKind.REWRITE, files)
            reason = f"a rebuild: made again {_made_from(origin)}"
            return committing.settled(rows.write(target, origin.key), reason)


def _live(work: Workplace, table: TableName) -> _Live:
    """`PastRefused` unless the mirror is there, and shows all that was captured of its table."""
    source = work.source.name
    state = work.ledger.table_states(source).get(table)
    cursor = work.ledger.acknowledged_cursor(source)
    if state is None or cursor is None:
        raise NothingMatches(
            f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
        )
    try:
        require_mirror(state)
        version = look_at(work, state, work.ledger.looked(source).get(state.mirror))
    except TableError as error:
        raise PastRefused(
            f"{table} cannot be made again: {error.reason}", hint=error.hint
        ) from error
    if version is None:
        raise PastRefused(f"the mirror of {table} is not there", hint=reload_hint(table))
    shown = work.mirrors.schema(state.mirror, version)
    soft = work.source.lake.deletes == Deletes.SOFT
    if soft is not (DELETED_AT.name in shown.names):
        raise PastRefused(
            f"the mirror of {table} was made with another `deletes` than is configured now",
            hint=reload_hint(table),
        )
    own = pa.schema([field for field in shown if not (soft and field.name == DELETED_AT.name)])
    [last] = work.ledger.live_batches(source, cursor.batch, cursor.batch)
    return _Live(state, own, soft, last)


def _made_from(origin: RebuildOrigin) -> str:
    if origin.base is None:
        return f"from its changelog, since batch {origin.first}"
    entry = origin.base.entry
    return f"from version {entry.delta_version} of {entry.mirror} and what was captured since"


def _decision(report: RebuildReport) -> Decision:
    origin = report.origin
    return Decision(
        "rebuild",
        "mirror-rebuilt",
        f"the mirror of {report.table} was made again {_made_from(origin)}",
        {
            "table": str(report.table),
            "base": None if origin.base is None else origin.base.entry.delta_version,
            "first_batch": origin.first,
            "delta_version": report.delta_version,
        },
    )
