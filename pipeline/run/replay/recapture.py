"""Captures a batch again: the same range of the log, with the tables and structures of
the first capture.

The ledger knows the conditions of the first capture: structures, patterns, and the
tables that have rows or events in the batch. Perhaps it does not know all of them, so
the result is checked. It must have as many changes, the same segments with the same
sequence numbers, the same events, and no structure version that is not recorded.
Otherwise the result is discarded.

Changes that are no longer shown are only counted, since the sequence numbers of all
tables depend on how many there are. Conditions on rows and hidden columns change that
number, and once a table is cleared, the ledger no longer says how it was shown then. So
its changes are counted as if the table had been shown whole. If the result is wrong,
they are counted again as the table's versions are recorded now.

The anchor of a batch is the checksum of the event at its end. If one batch continues in
the log file in which another ended, the later anchor proves the earlier end too,
because a binlog file only grows. The structures at a batch's start are kept for the
next batches until one records new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise

from lockstep.pipeline.model.batch import Batch, BatchContent, Cursor
from lockstep.pipeline.model.table_state import TableEvent, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.begin import RunStart, read_anchor_of, start_at_known_place
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.initial_schemas import (
    RecordedVersions,
    structures_in_batch,
    tracker_of,
)
from lockstep.pipeline.run.dump.log_reader import LogReading
from lockstep.pipeline.run.dump.renames import origins_by_table
from lockstep.pipeline.run.dump.segmenter import Segmenter
from lockstep.pipeline.run.dump.table_changes import TableChanges
from lockstep.pipeline.schema.effects import Effect
from lockstep.pipeline.schema.tracker import InitialStructures
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.supply.plan import FromMirror
from lockstep.pipeline.values.errors import LockstepError, Recovery
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.policies import Deletes, LakePolicies, Truncates
from lockstep.pipeline.values.segment import Segment
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName


class NotRecaptured(Exception):
    """A batch cannot be captured again. `reason`: why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SpanFacts:
    """The facts that a replay needs from the server and the ledger, read once for all
    its batches. `batches`: the batches in their order, at least one.

    `server_facts`: the server's state when the replay began. `first_batches`: each
    table's first batch with changes or events. `special_batches`: batches whose rows are not all
    in their range of the log, batches whose files were replaced, and batches that
    recorded structures.
    """

    def __init__(self, ports: RunPorts, batches: Sequence[Batch]) -> None:
        ledger, source = ports.ledger, ports.source.name
        self._ports = ports
        self.server_facts = ports.server.facts()
        self.first_batches = ledger.first_changes(source, 1, batches[-1].id)
        self.special_batches = ledger.special_batches(source, batches[0].id, batches[-1].id)
        self._later_anchors = _later_anchors(batches)
        self._anchor_readings: dict[int, AnchorReading] = {}
        self._last_structures: tuple[Batch, InitialStructures] | None = None

    def reason_not_recaptured(self, batch: Batch) -> str | None:
        """Return why a batch cannot be captured again from the log; None if it can.
        This reads up to two events of the log."""
        if (reason := self.special_batches.reason_not_in_log(batch)) is not None:
            return reason
        if batch.start.server_uuid != self.server_facts.server_uuid:
            return "it was captured from another server than the one that answers now"
        files = {log.file for log in self.server_facts.binlogs}
        for file in (batch.start.at.file, batch.captured_end.at.file):
            if file not in files:
                return f"its log is gone from the server ({file})"
        anchored_batches = (self._later_anchors.get(batch.id, batch), batch)
        if AnchorReading.SAME not in map(self._read_anchor, anchored_batches):
            return "the server's log is not the one that was captured"
        return None

    def structures(self, batch: Batch) -> InitialStructures:
        """Return the structures at a batch's start. If no batch since the last call
        recorded new ones, return the same as then."""
        if self._last_structures is not None:
            earlier_batch, structures = self._last_structures
            since = range(earlier_batch.id, batch.id + 1)
            if since and self.special_batches.with_structures.isdisjoint(since):
                return structures
        structures = structures_in_batch(self._ports, batch, batch.start.at)
        self._last_structures = batch, structures
        return structures

    def _read_anchor(self, batch: Batch) -> AnchorReading:
        if batch.id not in self._anchor_readings:
            assert batch.anchor is not None, "it is acknowledged"
            cursor = Cursor(batch.id, batch.captured_end, batch.anchor)
            self._anchor_readings[batch.id] = read_anchor_of(self._ports, cursor, self.server_facts)
        return self._anchor_readings[batch.id]


def _later_anchors(batches: Sequence[Batch]) -> dict[int, Batch]:
    """Return, for each batch, the last batch of the chain that continues from its end
    and ends in the same file: its anchor proves the same log file."""
    anchors: dict[int, Batch] = {}
    for before, later in reversed(list(pairwise(batches))):
        is_same_file = later.captured_end.at.file == before.captured_end.at.file
        if later.continued_batch == before.id and is_same_file:
            anchors[before.id] = anchors.get(later.id, later)
    return anchors


def recapture(
    ports: RunPorts, batch: Batch, facts: SpanFacts, hidden_tables: Set[TableName] = frozenset()
) -> tuple[Segment, ...]:
    """Capture the batch again and return its segments, whose files are in the scratch
    folder. Nothing else is written, and of `hidden_tables` nothing at all. Raise
    `NotRecaptured` if the batch cannot be captured again, or if the result differs from
    what was recorded."""
    if (reason := facts.reason_not_recaptured(batch)) is not None:
        raise NotRecaptured(reason)
    try:
        if hidden_tables:
            with suppress(NotRecaptured):
                return _capture_again(
                    ports, batch, facts, hidden_tables, unshaped_tables=hidden_tables
                )
        return _capture_again(ports, batch, facts, hidden_tables)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        raise NotRecaptured(error.message) from error


def _capture_again(
    ports: RunPorts,
    batch: Batch,
    facts: SpanFacts,
    hidden_tables: Set[TableName],
    *,
    unshaped_tables: Set[TableName] = frozenset(),
) -> tuple[Segment, ...]:
    """Capture a batch again under the conditions of its first capture, and compare the
    result with what was recorded."""
    ledger, source = ports.ledger, ports.source.name
    ports = replace(ports, shaping=ports.shaping.without_rules_of(unshaped_tables))
    original = _ports_of_original(ports, batch)
    content = batch_content(ledger, source, batch.id)
    changed_tables = content.changed_tables
    tables = CapturedTables(
        ports.segments,
        source=source,
        batch_id=batch.id,
        last_sequence_before=batch.base,
        is_captured=lambda table: (
            original.source.patterns.matches(table) and table in changed_tables
        ),
        states=_original_states(ports, changed_tables, facts.first_batches, batch.id),
        policies_of=partial(_original_policies, ports, content),
        in_scratch_folder=True,
        counted_only=hidden_tables,
    )
    basis = Basis(
        original,
        _original_start(ports, batch, facts.server_facts),
        RunBounds(batch.captured_end.at, GtidSet()),
        tables=tables,
        structures=tracker_of(
            ports,
            facts.structures(batch),
            facts.server_facts,
            recorded=RecordedVersions(ledger, source, batch.id),
        ),
        prepared_transactions={},
    )
    table_changes = TableChanges(
        tables,
        basis.structures,
        ports.shaping,
        decide_copies=partial(_original_copies, content.events),
    )
    segmenter = Segmenter(
        tables,
        basis.structures,
        ports.shaping,
        table_changes,
        unshaped_tables=unshaped_tables,
    )
    LogReading(basis, segmenter, keeps_all_prepared=True, starts_spark=False).run()
    segments = tables.finish()
    if tables.change_count != batch.changes:
        raise NotRecaptured(
            f"the log has {pluralize(tables.change_count, 'change')} now where "
            f"{batch.changes} were captured"
        )
    shown_content = content.for_tables(changed_tables - hidden_tables)
    _require_same_sequences(shown_content.segments, segments)
    if any(
        version.table in shown_content.changed_tables
        for version in basis.structures.history.versions
    ):
        raise NotRecaptured(
            "its statements would yield structures that are not in the recorded history"
        )
    events = [event for event in tables.events if event.table not in hidden_tables]
    if _comparable_events(shown_content.events) != _comparable_events(events):
        raise NotRecaptured("its statements would affect the tables differently")
    return segments


def _ports_of_original(ports: RunPorts, batch: Batch) -> RunPorts:
    """Return the ports with the patterns that the batch was captured with."""
    scopes = ports.ledger.capture_scopes(ports.source.name)
    patterns = [scope.patterns for scope in scopes if scope.batch <= batch.id]
    if not patterns:
        return ports
    return replace(ports, source=replace(ports.source, patterns=patterns[-1]))


def _original_start(ports: RunPorts, batch: Batch, facts: ServerFacts) -> RunStart:
    """Return where reading begins: at the batch's start, proven by its continued_batch's
    anchor."""
    anchor = None
    if batch.previous_batch is not None:
        predecessors = ports.ledger.live_batches(
            ports.source.name, batch.previous_batch, batch.previous_batch
        )
        anchor = next((before.anchor for before in predecessors if before.end == batch.start), None)
    # A batch that started by its GTID set began at the start of a log file.
    # Transactions of the set that are in that file precede the batch.
    gtids_read = batch.start.gtid_set if batch.continued_batch is None else GtidSet()
    reason = f"batch {batch.id} is read again"
    return start_at_known_place(
        batch.start, anchor, facts, reason, leave_out=gtids_read, by_gtid=batch.by_gtid
    )


def _original_states(
    ports: RunPorts, tables: Iterable[TableName], first_batches: Mapping[TableName, int], batch: int
) -> dict[TableName, TableState]:
    """Return the states of the tables that have changes or events in earlier batches,
    each with the condition FOLLOWING. A table that this ledger took over from the lake
    is included: its changes may begin with this batch."""
    states = ports.ledger.table_states(ports.source.name)
    return {
        table: states[table].as_started()
        for table in tables
        if first_batches[table] < batch or states[table].adopted_version is not None
    }


def _original_policies(ports: RunPorts, content: BatchContent, table: TableName) -> LakePolicies:
    """Return the table's policies, changed to what the first capture did. The recorded
    events show whether it followed or ignored a TRUNCATE; the recorded files show
    whether it listed the changed columns of updates."""
    followed_truncate = any(
        event.table == table and event.kind is TableEventKind.TRUNCATED for event in content.events
    )
    policies = replace(
        ports.source.policies_of(table),
        deletes=Deletes.REMOVE,
        truncates=Truncates.DELETE if followed_truncate else Truncates.IGNORE,
    )
    files = [
        file for segment in content.segments if segment.table == table for file in segment.files
    ]
    if files:
        policies = replace(policies, updated_columns=any(file.has_updated for file in files))
    return policies


def _original_copies(
    events: Sequence[TableEvent], effects: Sequence[Effect]
) -> Mapping[TableName, FromMirror]:
    """Return the tables whose rows were copied from another mirror in the first
    capture, as the recorded events show."""
    copies = {(event.table, event.origin) for event in events}
    return {
        table: FromMirror(origin)
        for table, origin in origins_by_table(effects).items()
        if (table, origin) in copies
    }


# -- the comparison with what was recorded ---------------------------------------------


def _require_same_sequences(recorded: Sequence[Segment], segments: Sequence[Segment]) -> None:
    before, after = _sequences(recorded), _sequences(segments)
    for table, version in sorted(before.keys() | after.keys()):
        if before.get((table, version)) != after.get((table, version)):
            raise NotRecaptured(
                f"the changes of {table} would have other sequence numbers than were recorded"
            )


def _sequences(segments: Sequence[Segment]) -> dict[tuple[TableName, int], tuple[object, ...]]:
    return {
        (segment.table, segment.schema_version): (
            segment.counts,
            segment.first_sequence,
            segment.last_sequence,
            sum(file.images for file in segment.files),
        )
        for segment in segments
    }


def _comparable_events(events: Sequence[TableEvent]) -> list[tuple[object, ...]]:
    return [
        (event.table, event.kind, event.sequence, event.version, event.place)
        for event in sorted(events, key=lambda event: event.table)
        if event.kind is not TableEventKind.REBUILT
    ]
