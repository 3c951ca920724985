"""Publish: captured segments become part of their changelog tables.

The first part of the step *merged*. Metadata commits only; a batch that a changelog
already has is skipped, so publishing again is always right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pipeline.batch import Batch, BatchState, Segment, TableState
from pipeline.changes.layout import application_id, changelog_schema
from pipeline.runs.context import Workplace
from pipeline.table import TableName


def publish(work: Workplace) -> None:
    """Add every captured batch's segments to their changelogs, oldest batch first."""
    source = work.source.name
    states = work.ledger.table_states(source)
    for batch in work.ledger.unfinished(source):
        if batch.state is not BatchState.CAPTURED:
            continue
        for segment in work.ledger.segments(batch.id):
            _publish(work, batch, segment, states[segment.table])


def _publish(work: Workplace, batch: Batch, segment: Segment, state: TableState) -> None:
    version = work.ledger.table_version(batch.source, segment.table, segment.schema_version)
    work.changelog.publish(
        state.changelog,
        app_id=application_id(batch.source, state, "changelog"),
        batch=batch.id,
        schema=changelog_schema(version.structure),
        files=segment.files,
        user_metadata=commit_metadata(segment.table, [batch]),
    )


def commit_metadata(table: TableName, batches: Iterable[Batch]) -> str:
    """What a commit in the lake says of itself: source, table, batches, and the position
    it shows (JSON, keys sorted)."""
    ordered = list(batches)
    last = ordered[-1]
    position = last.end.at if last.end is not None else None
    return json.dumps(
        {
            "lockstep": {
                "source": last.source,
                "table": str(table),
                "batches": [ordered[0].id, last.id],
                "position": str(position),
            }
        },
        sort_keys=True,
    )


def captured_segments(
    work: Workplace, batches: Iterable[int], table: TableName
) -> Iterator[Segment]:
    """A table's segments in these batches, oldest first."""
    for batch in batches:
        for segment in work.ledger.segments(batch):
            if segment.table == table:
                yield segment
