"""How a table comes back that was paused or in quarantine: one decision, with its reason.

| the table | how it comes back |
|---|---|
| lacks what only the source has | `READ_AGAIN` |
| stopped where the newest batch ends | `NOTHING` |
| … and lacks new columns of which the log has no values | `BACKFILL` |
| … and is to be reloaded, and its changelog is complete | `REBUILD` |
| … and its mirror refused a write, or values may have changed that no log tells | `READ_AGAIN` |
| the log behind its place is there, in one unbroken chain of batches | a `span` of it, and one of \
the others |
| any other | `READ_AGAIN` |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from pipeline.batch import Batch
from pipeline.changes.layout import application_id, changelog_path
from pipeline.changes.merging import SETTLES
from pipeline.changes.reload import FromChangelog, Origin, reload_origin
from pipeline.errors import Remedy, TableError
from pipeline.position import Coordinates, Position, Witness
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.schema.history import Knowledge
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableCondition, TableOrder, TableState


@dataclass(frozen=True, slots=True)
class LogSpan:
    """What a table lacks of the log: from `low` on. `batch` read that place, and from
    `start`, its beginning or its end, the log can be read with what `batch` knew there."""

    batch: Batch
    start: Position
    witness: Witness | None
    low: Coordinates


LogReach = LogSpan | str | None
"""What the log brings of a table; None: it has nothing that the table lacks; a sentence: why it
cannot bring it."""


class Besides(Enum):
    """What a table needs besides the log."""

    NOTHING = auto()
    BACKFILL = auto()
    """New columns are read from the source, by key."""
    REBUILD = auto()
    """Its mirror is written anew from its changelog."""
    READ_AGAIN = auto()
    """All of it is read from the source."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """How a table comes back. `span`: a batch of its own reads the log behind its place."""

    besides: Besides = Besides.NOTHING
    why: str = ""
    span: LogSpan | None = None

    @property
    def reads_source(self) -> bool:
        return self.besides in (Besides.BACKFILL, Besides.READ_AGAIN)


def remedy_of(state: TableState) -> Remedy | None:
    """What a table owes besides the rows that the log has of it; None where that is all."""
    lost = state.mirror_generation > 1 and state.mirror_version is None
    if state.condition is TableCondition.DROPPED or lost:
        return Remedy.RESNAPSHOT
    return None if state.remedy is Remedy.CATCH_UP else state.remedy


def must_be_read(state: TableState) -> bool:
    """Whether a table lacks what only the source has: nobody catches it up by the log."""
    return remedy_of(state) in (Remedy.RESNAPSHOT, Remedy.RELEASED_RESNAPSHOT)


def why_owed(state: TableState) -> str:
    """Why a table is to be read from the source."""
    return state.reason or "the next run reads it from the source"


def only_the_source(order: TableOrder, state: TableState, *, goes_on: bool) -> Rejoin | None:
    """What no log has to be asked for. `goes_on`: whether a table that lacks new columns is
    otherwise complete."""
    owes = must_be_read(state)
    if remedy_of(state) is Remedy.BACKFILL:
        owes = order.kind is OrderKind.RELOAD or order.schema is not None or not goes_on
    return Rejoin(Besides.READ_AGAIN, why_owed(state)) if owes else None


def rejoin(order: TableOrder, state: TableState, reach: LogReach, origin: Origin | None) -> Rejoin:
    """How the table comes back that `only_the_source` leaves to the log. `origin`: where the
    rows of a mirror come from that is to be reloaded; None for any other order."""
    if isinstance(reach, str):
        return Rejoin(Besides.READ_AGAIN, reach)
    if isinstance(origin, str):
        why = f"{order.author} has it reloaded, and {origin}"
        return Rejoin(Besides.READ_AGAIN, why)
    if origin is not None:
        return Rejoin(Besides.REBUILD, origin.told, reach)
    remedy = remedy_of(state)
    if state.generation > 1 and state.mirror_version is None:
        return Rejoin(Besides.READ_AGAIN, f"it gets a new mirror: {state.reason}", reach)
    if remedy is Remedy.REWRITE_MIRROR:
        return Rejoin(Besides.READ_AGAIN, f"its mirror refused a write: {state.reason}", reach)
    if remedy is Remedy.BACKFILL:
        return Rejoin(Besides.BACKFILL, why_owed(state), reach)
    return Rejoin(span=reach)


def origin_of(work: Workplace, state: TableState, *, files: bool = True) -> Origin:
    """Where the rows of a mirror come from that is written anew; `files`: whether the
    changelog's are looked at, byte by byte."""
    source, table = work.source.name, state.table
    gone, newest = work.ledger.forgotten(source), work.ledger.captured_cursor(source)
    origin = reload_origin(
        [] if newest is None else work.ledger.contents(source, table, 1, newest.batch),
        adopted=state.adopted is not None,
        gaps=[gap.batch for gap in work.ledger.gaps(source)],
        overlaps=[batch.id for batch in work.ledger.overlaps(source)],
        tried=state.behind,
        forgotten=0 if gone is None else gone.through,
    )
    if isinstance(origin, str):
        return origin
    why = _not_followed(work, table, origin) or (_damage(work, table, origin) if files else None)
    return origin if why is None else why


def _not_followed(work: Workplace, table: TableName, origin: FromChangelog) -> str | None:
    """Why its rows of then cannot be told in the columns of today."""
    history = work.ledger.schema_versions(work.source.name, table)
    if not history or history[-1].knowledge is not Knowledge.KNOWN:
        return "its present structure is not known"
    try:
        last = history[-1].version
        line = lineage_over(work, versions_between(work, table, origin.version, last))
    except TableError as error:
        return error.reason
    written = {segment.schema_version for part in origin.parts for segment in part.segments}
    if line.reread or line.asked:
        return (*line.reread, f"values of {', '.join(line.asked)} are not in it")[0]
    if line.key_of((written & line.versions.keys()) | {history[-1].version}) is None:
        return "no key tells its rows apart in every version it had"
    return None


def _damage(work: Workplace, table: TableName, origin: FromChangelog) -> str | None:
    """What of the changelog is missing, or is not what was written."""
    wrong: list[str] = []
    for part in origin.parts:
        for segment in part.segments:
            version = work.ledger.schema_version(work.source.name, table, segment.schema_version)
            folder = changelog_path(work.source.name, table, version.generation)
            wrong += work.segments.damaged(folder, segment.files)
    if not wrong:
        return None
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"its changelog is damaged: {wrong[0]}{more}"


def goes_on(work: Workplace, state: TableState) -> bool:
    """Whether the mirror's rows are those that the table had: it was written, and nothing
    since settles anew what the table holds."""
    source = work.source.name
    settled = work.ledger.newest_writes(source, application_id(source, state, "mirror")).settled
    cursor = work.ledger.captured_cursor(source)
    if settled is None or cursor is None or state.mirror_version is None:
        return False
    return not any(
        event.table == state.table and event.kind in SETTLES
        for batch in work.ledger.live_batches(source, settled.intent.last_batch + 1, cursor.batch)
        for event in work.ledger.table_events(source, batch.id)
    )
