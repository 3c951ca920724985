"""The log that the next run would read: how much it holds, how long that would take, and how each
table's changes would be merged, as far as a plan can tell.

Belongs here: reading it without keeping anything. Does not: where the run would start, what else it
would do (`plan`), the decision how changes are merged (`changes.strategy`). How many bytes the
images have, and whether the mirror is small, is known once they are captured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from pipeline.batch import Batch
from pipeline.binlog.search.log_scan import log_between
from pipeline.changes.strategy import Facts, choose, only_inserts
from pipeline.decisions import Continuity
from pipeline.errors import LockstepError, Recovery, TableError
from pipeline.policies import Deletes
from pipeline.position import Coordinates, Position
from pipeline.runs.begin import RunStart
from pipeline.runs.capturing.basis import basis_of, bounds_of
from pipeline.runs.capturing.completeness import require_followed, require_whole
from pipeline.runs.capturing.log_reader import LogReading
from pipeline.runs.context import NoSegments, Workplace
from pipeline.runs.inspecting.log_tally import Largest, LogTally, StatementSeen, TableTally
from pipeline.runs.rejoining.log_reach import ReturnPlan
from pipeline.schema.row_keys import merge_key
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName
from pipeline.table_state import Quarantine

BATCHES: Final = 1_000
_RATED: Final = 10
_LEAST_BYTES: Final = 1 << 20
"""A batch of fewer bytes says nothing about how fast bytes are read."""


@dataclass(frozen=True, slots=True)
class PlannedReading:
    """What the run would read. `why` it ends at `end`; `runs`: so many like this one reach
    the end it is aimed at. `foreign`: transactions that change no captured table. `refusal`:
    what would end it before anything is recorded. `merges`: how each table's changes would be
    merged, and why. `passed`: what is said of statements that stand in the log instead of rows and
    change no captured table. `end_is_behind`: nothing is read because the end that a person fixed
    is not behind the start."""

    end: Position
    why: str
    runs: int
    transactions: int
    log_bytes: int
    tables: Mapping[TableName, TableTally]
    foreign: int
    foreign_bytes: int
    statements: tuple[StatementSeen, ...]
    more_statements: int
    largest: Largest | None
    quarantined: tuple[Quarantine, ...]
    refusal: LockstepError | None
    rereads: Mapping[TableName, str] = field(default_factory=dict)
    merges: Mapping[TableName, str] = field(default_factory=dict)
    end_is_behind: bool = False
    passed: tuple[str, ...] = ()


def read_ahead(work: Workplace, run_start: RunStart, returns: ReturnPlan) -> PlannedReading:
    bounds = bounds_of(work, run_start)
    bounds = replace(bounds, budget=replace(bounds.budget, max_seconds=None))
    newest = work.ledger.batches(work.source.name, limit=1)
    batch = newest[0].id + 1 if newest else 1
    active = [order.table for order in returns.orders]
    basis = basis_of(replace(work, segments=NoSegments()), run_start, bounds, batch, active)
    tally = LogTally(basis)
    stops: list[LockstepError] = []
    reading = LogReading(tally.keeping_nothing(), tally, stops=stops.append)
    try:
        reading.run()
        if reading.spent is None:
            require_whole(work, run_start, bounds, reading.end.gtid_set)
        require_followed(run_start, reading)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        stops.append(error)
    left = log_between(reading.end.at, bounds.end, run_start.facts.binlogs)
    whole = not reading.spent or left <= 0
    return PlannedReading(
        end=reading.end,
        why=_why(work, reading.spent, bounds.end, run_start.facts.head),
        runs=1 if whole else 1 + -(-left // max(reading.log_bytes, 1)),
        transactions=reading.transactions,
        log_bytes=reading.log_bytes,
        tables=dict(sorted(tally.tables.items())),
        foreign=tally.foreign,
        foreign_bytes=tally.foreign_bytes,
        statements=tuple(tally.statements),
        more_statements=tally.more_statements,
        largest=tally.largest,
        quarantined=tuple(tally.quarantined),
        refusal=stops[0] if stops else None,
        rereads=dict(sorted(tally.rereads.items())),
        merges=foreseen_merges(work, run_start, basis.structures, tally.tables, tally.replaced),
        end_is_behind=bounds.end < run_start.facts.head and bounds.reached(run_start.start.at),
        passed=tuple(reading.row_statements.lines()),
    )


def _why(work: Workplace, spent: str | None, end: Coordinates, head: Coordinates) -> str:
    if spent is not None:
        return spent
    if end < head:
        return f"--until {work.source.until}"
    return "the log ends there"


def seconds_of(work: Workplace, reading: PlannedReading | None) -> float | None:
    if reading is None:
        return None
    rate = bytes_per_second(work.ledger.batches(work.source.name, limit=BATCHES))
    return None if rate is None else round(reading.log_bytes / rate, 1)


def bytes_per_second(batches: Sequence[Batch]) -> float | None:
    """How fast the newest batches of some size were captured; None if there is none."""
    taken = [
        (batch.log_bytes, batch.captured_at - batch.created_at)
        for batch in batches
        if batch.captured_at is not None and batch.log_bytes >= _LEAST_BYTES
    ][:_RATED]
    spent = sum((seconds for _, seconds in taken), timedelta()).total_seconds()
    return sum(size for size, _ in taken) / spent if spent > 0 else None


def foreseen_merges(
    work: Workplace,
    run_start: RunStart,
    structures: SchemaTracker,
    tables: Mapping[TableName, TableTally],
    replaced: Collection[TableName],
) -> dict[TableName, str]:
    """A sentence for each table with changes. `replaced`: those that are emptied, made or read
    anew meanwhile."""
    soft = work.source.lake.deletes == Deletes.SOFT
    continues = run_start.decision.continuity not in (Continuity.GAP, Continuity.OVERLAP)
    all_new = continues and not work.ledger.gaps(work.source.name)
    found = {}
    for table, tally in tables.items():
        schema = structures.last_known(table)
        counts = tally.counts
        facts = Facts(
            keyed=schema is not None and bool(merge_key(schema)),
            soft=soft,
            replaces=table in replaced,
            images=counts.total + counts.updated,
            inserts_only=only_inserts([counts]),
            all_new=all_new,
            marked=soft,
        )
        try:
            strategy = choose(facts)
        except TableError as error:
            found[table] = f"cannot be merged: {error.reason}"
        else:
            found[table] = f"{strategy.way}: {strategy.reason}"
    return found
