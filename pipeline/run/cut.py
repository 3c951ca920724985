"""The cut at a place of the past: the place between two transactions as of which a
table is rebuilt. The ledger knows where batches end. For a place inside a batch, the
lake's table `_transactions` says where its transactions end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa

from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.spans import (
    TRANSACTION_COLUMNS,
    batch_at,
    beginning_sentence,
    count_transactions_up_to,
    is_before_history,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.unpruned_batches import (
    RUNS_HINT,
    batch_of_run,
    history_begin,
    read_until_for,
    unpruned_batches,
)
from lockstep.pipeline.values.errors import PastRefused, SpanRefused
from lockstep.pipeline.values.places import AtMoment, InFile, OfRun, Place, moment_text
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.segment import SystemTable


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
    """Return the cut at a place. Raise `PastRefused` if `_transactions` lacks its batch,
    and `SpanRefused` for a place that occurs in several servers' logs."""
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
        sequence=batch.base + batch.changes,
        at=end.at,
        committed_at=end.committed_at,
        gtid=None if batch.anchor is None else batch.anchor.gtid or None,
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
            sequence=batch.base,
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
        sequence=max(sequences, default=batch.base),
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
