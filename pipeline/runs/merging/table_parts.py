"""What batches have of one table, as the ledger recorded it."""

from __future__ import annotations

from pipeline.changes.merging import BatchPart
from pipeline.runs.context import Workplace
from pipeline.table import TableName


def parts_within(work: Workplace, table: TableName, first: int, last: int) -> list[BatchPart]:
    """What the captured batches from one to another have of a table, oldest first."""
    return [
        BatchPart(content.batch, content.segments, content.events, content.snapshot)
        for content in work.ledger.contents(work.source.name, table, first, last)
    ]
