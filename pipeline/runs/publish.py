"""Publish: captured segments become part of their changelog tables, and what a batch adds to
the source's own tables part of those.

The first part of the step *merged*. Metadata commits only; a batch that a changelog
already has is skipped, so publishing again is always right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.batch import Batch, BatchState
from pipeline.changes.generations import all_columns
from pipeline.changes.layout import application_id, changelog_path, published_schema
from pipeline.changes.source_tables import SCHEMAS, source_table_id, source_table_path
from pipeline.decisions import Lease
from pipeline.ports.held import Held
from pipeline.runs.context import Workplace
from pipeline.schema.history import SchemaVersion
from pipeline.segment import Segment, SourcePart, SourceTable
from pipeline.table import TableName
from pipeline.table_state import TableState


@dataclass(frozen=True, slots=True)
class _Versioned:
    """A segment and the version its rows were written under."""

    segment: Segment
    version: SchemaVersion

    @property
    def table(self) -> TableName:
        return self.segment.table


def publish(work: Workplace, lease: Lease) -> None:
    """Add every captured batch's segments to their changelogs, and its parts to the source's
    own tables, oldest batch first."""
    source = work.source.name
    states = work.ledger.table_states(source)

    def held() -> None:
        work.ledger.require_held(lease)

    for batch in work.ledger.unfinished(source):
        if batch.state is not BatchState.CAPTURED:
            continue
        for segments in _together(work, batch):
            _publish(work, batch, segments, states[segments[0].table], held)
        for part in work.ledger.source_parts(batch.id):
            _publish_part(work, batch, part, held)


def _together(work: Workplace, batch: Batch) -> list[list[_Versioned]]:
    """A batch's segments by table and generation of its changelog: one commit each."""
    found: dict[tuple[TableName, int], list[_Versioned]] = {}
    for segment in work.ledger.segments(batch.id):
        version = work.ledger.schema_version(batch.source, segment.table, segment.schema_version)
        one = _Versioned(segment, version)
        found.setdefault((segment.table, version.generation), []).append(one)
    return list(found.values())


def _publish(
    work: Workplace, batch: Batch, together: Sequence[_Versioned], state: TableState, held: Held
) -> None:
    table, generation = together[0].table, together[0].version.generation
    files = [file for one in together for file in one.segment.files]
    work.changelog.publish(
        changelog_path(batch.source, table, generation),
        app_id=application_id(batch.source, state, "changelog", generation),
        batch=batch.id,
        schema=all_columns(
            published_schema(one.version.structure, one.segment.files) for one in together
        ),
        files=files,
        user_metadata=commit_metadata(table, [batch]),
        held=held,
    )


def _publish_part(work: Workplace, batch: Batch, part: SourcePart, held: Held) -> None:
    work.changelog.publish(
        source_table_path(batch.source, part.table),
        app_id=source_table_id(batch.source, part.table),
        batch=batch.id,
        schema=SCHEMAS[part.table],
        files=part.files,
        user_metadata=commit_metadata(part.table, [batch]),
        held=held,
    )


def commit_metadata(table: TableName | SourceTable, batches: Iterable[Batch]) -> str:
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
