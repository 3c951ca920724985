"""One table's changes in a delivery (the batches that a consumer reads and acknowledges
together): their files, their columns, and the changes in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lockstep.pipeline.mirror.generations import (
    SharedColumn,
    all_columns,
    one_table,
    shared_columns,
    sorted_by_sequence,
)
from lockstep.pipeline.mirror.layout import (
    changelog_path,
    changelog_schema,
    columns_or_nulls,
    published_schema,
)
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import Batches, Ledger, Structures
from lockstep.pipeline.ports.segments import SegmentStore
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.values.consumers import Delivery
from lockstep.pipeline.values.errors import (
    NothingMatches,
    SegmentsLost,
    TableError,
    TableQuarantined,
)
from lockstep.pipeline.values.segment import Segment, SegmentFile
from lockstep.pipeline.values.table import TableName

LOST_FILE_CURE: Final = (
    "`lockstep replay --from earliest --to latest` brings the file back if the server still has "
    "its part of the log; else restore it from a copy of the lake"
)


@dataclass(frozen=True, slots=True)
class DeliveredPart:
    """Changelog files whose rows have one structure of the table. `schema`: their
    columns. `folder`: the folder of the changelog's `generation`, relative to the
    lake."""

    folder: str
    generation: int
    files: tuple[SegmentFile, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of a changelog: one of its Delta tables, counted from 1, and its
    columns. The next generation begins when a new structure does not fit the
    columns."""

    number: int
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class DeliveredTable:
    """A table's part of a delivery. `parts` are in the order of the source's changes.
    `columns`: the columns of all parts read as one table. `SharedColumn.sources` has a
    column's name in each part."""

    table: TableName
    parts: tuple[DeliveredPart, ...]
    columns: tuple[SharedColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def generations(self) -> tuple[Generation, ...]:
        """The parts' generations, oldest first; a part can lack columns of its
        generation."""
        schemas: dict[int, list[pa.Schema]] = {}
        for part in self.parts:
            schemas.setdefault(part.generation, []).append(part.schema)
        return tuple(Generation(number, all_columns(schemas[number])) for number in sorted(schemas))


def delivered_segments(ledger: Batches, delivery: Delivery) -> tuple[Segment, ...]:
    """Return all segments of the delivery's batches, as they were recorded."""
    batches = delivery.batches
    contents = ledger.contents(delivery.source, batches[0], batches[-1])
    return tuple(
        segment for content in contents if content.batch in batches for segment in content.segments
    )


def delivered_table(
    ledger: Ledger,
    delivery: Delivery,
    segments: Sequence[Segment],
    table: TableName,
    *,
    incomplete: bool,
) -> DeliveredTable:
    """Return a table's part of a delivery. `segments`: all segments of the delivery.

    Raise `NothingMatches` if the table was never captured. Raise `TableQuarantined` if
    the columns of its changes are not known; without `incomplete`, also if changes can
    be missing because the table was stopped.
    """
    state = ledger.table_states(delivery.source).get(table)
    if state is None:
        raise NothingMatches(
            f"No run has captured a table {table} of {delivery.source!r}.",
            hint="see `lockstep tables` for the captured tables",
        )
    if not incomplete and _has_stopped_before_end(state, delivery.last_batch):
        raise _quarantine_error(state)
    table_segments = [segment for segment in segments if segment.table == table]
    try:
        parts = _parts_of(ledger, delivery.source, table, table_segments)
        schemas = [part.schema for part in parts]
        columns = shared_columns(
            schemas or [_newest_schema(ledger, delivery.source, table)],
            [part.generation for part in parts],
        )
    except TableError as error:
        raise TableQuarantined(
            f"the columns of {table}'s changelog are not known: {error.reason}",
            hint=state.hint or error.hint,
        ) from error
    return DeliveredTable(table, parts, columns)


def require_files(store: SegmentStore, table: DeliveredTable) -> None:
    """Raise `SegmentsLost` if a file of the delivery is missing or is not what was
    captured."""
    damages = [
        damage for part in table.parts for damage in store.damage_sentences(part.folder, part.files)
    ]
    if damages:
        raise SegmentsLost(
            f"The changelog of {table.table} has lost changes of this delivery: {damages[0]}",
            hint=f"{LOST_FILE_CURE}; or give up these changes: drop the consumer, and create it "
            "again after a batch whose files are complete",
        )


def read_changes(store: SegmentStore, table: DeliveredTable) -> pa.Table:
    """Return the changes in the order of `_sequence`. In changes from before a column
    was added, the column is NULL."""
    require_files(store, table)
    if not table.parts:
        return table.schema.empty_table()
    return sorted_by_sequence(
        one_table([_read_part(store, part) for part in table.parts], table.columns)
    )


def _parts_of(
    ledger: Structures, source: str, table: TableName, segments: Sequence[Segment]
) -> tuple[DeliveredPart, ...]:
    files: dict[int, list[SegmentFile]] = {}
    for segment in segments:
        files.setdefault(segment.schema_version, []).extend(segment.files)
    return tuple(
        _part_of(ledger.schema_version(source, table, number), source, files[number])
        for number in sorted(files)
    )


def _part_of(version: SchemaVersion, source: str, files: Sequence[SegmentFile]) -> DeliveredPart:
    folder = changelog_path(source, version.table, version.generation)
    schema = published_schema(version.shown_structure, files)
    return DeliveredPart(folder, version.generation, tuple(files), schema)


def _newest_schema(ledger: Structures, source: str, table: TableName) -> pa.Schema:
    """Return the columns of the table's newest known structure. Raise `TableError` if
    the lake cannot show it, or none is known."""
    for version in reversed(ledger.schema_versions(source, table)):
        if version.shown_schema is not None:
            return changelog_schema(version.shown_structure)
    raise TableError(
        "Lockstep never read a structure of it", hint="see `lockstep tables` for its state"
    )


def _read_part(store: SegmentStore, part: DeliveredPart) -> pa.Table:
    pieces = store.pieces(part.folder, part.files)
    return pa.concat_tables(
        pa.table(columns_or_nulls(piece, part.schema), schema=part.schema) for piece in pieces
    )


def _has_stopped_before_end(state: TableState, batch: int) -> bool:
    """Return whether capture of the table stopped in or before a batch, so that changes
    up to the batch's end can be missing. A stopped table whose place of the stop is
    unknown was never captured."""
    if not state.has_stopped:
        return False
    return state.stopped is None or state.stopped.batch <= batch


def _quarantine_error(state: TableState) -> TableQuarantined:
    return TableQuarantined(
        f"{state.table} was {state.in_words} at {state.position}, and its changes after that are "
        f"missing: {state.reason}",
        hint=f"{state.hint}; or read the changes up to there with incomplete=True",
    )
