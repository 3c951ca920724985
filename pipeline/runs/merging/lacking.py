"""What each table's mirror lacks, and the one write that brings it.

Belongs here: which batches, and the intent over all of them. Does not: what the write is made of
(`job`), intents that are open already (`merge`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.batch import Batch
from pipeline.changes.layout import application_id
from pipeline.intent import Intent
from pipeline.runs.context import Workplace
from pipeline.table import TableName
from pipeline.table_state import TableState


def lacking_of(work: Workplace) -> Mapping[TableName, list[Batch]]:
    """The batches that each table's mirror lacks, oldest first, those among them that were
    acknowledged without it."""
    source = work.source.name
    pending = work.ledger.pending(source)
    known = {batch.id: batch for batch in work.ledger.unfinished(source)}
    missed = {number for numbers in pending.values() for number in numbers} - known.keys()
    if missed:
        batches = work.ledger.live_batches(source, min(missed), max(missed))
        known |= {batch.id: batch for batch in batches}
    return {table: [known[number] for number in pending[table]] for table in sorted(pending)}


def intent_over(source: str, state: TableState, batches: Sequence[Batch]) -> Intent:
    """One over all batches, not yet recorded."""
    numbers = [batch.id for batch in batches]
    app_id = application_id(source, state, "mirror")
    return Intent(0, state.table, app_id, 0, min(numbers), max(numbers), "merge")
