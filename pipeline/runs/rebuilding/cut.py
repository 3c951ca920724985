"""Where the past is cut: the last transaction that counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from pipeline.batch import Batch
from pipeline.changes.source_tables import source_table_path
from pipeline.errors import PastRefused, SpanRefused
from pipeline.places import AtMoment, InFile, OfRun, Place, moment_text
from pipeline.position import Coordinates, LogFile
from pipeline.replay.as_of import COLUMNS, batch_at, transactions_up_to
from pipeline.runs.context import Workplace
from pipeline.runs.known_batches import RUNS, batch_of_run, known_batches
from pipeline.segment import SourceTable

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
    gone = work.ledger.forgotten(work.source.name)
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
    cursor = work.ledger.acknowledged_cursor(work.source.name)
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
    """The one that it goes on behind."""
    if batch.follows is None:
        return None
    [found] = work.ledger.live_batches(work.source.name, batch.follows, batch.follows)
    return found


def _transactions(work: Workplace, batch: Batch) -> pa.Table:
    """Those of a batch, in their order. `PastRefused` where the lake does not have them."""
    folder = source_table_path(work.source.name, SourceTable.TRANSACTIONS)
    files = [
        file
        for part in work.ledger.source_parts(batch.id)
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
