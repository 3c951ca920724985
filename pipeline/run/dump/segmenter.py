"""Turns groups of whole transactions into numbered rows of changelogs (Delta tables
with all changes), and into rows of the system tables, which list the transactions and
the DDL statements of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.rows.maps import split_by_table
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import commit_times
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES, Block, Integers, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import gtid_texts
from lockstep.pipeline.mirror.marks import (
    TransactionMarks,
    images_per_event,
    row_counts,
    rows_per_event,
    sequences,
    with_marks,
)
from lockstep.pipeline.mirror.system_tables import (
    SYSTEM_TABLE_SCHEMAS,
    PlacedStatement,
    statement_rows,
    system_table_path,
    transaction_rows,
)
from lockstep.pipeline.ports.segments import SegmentStore, SegmentWriter
from lockstep.pipeline.run.dump.captured_tables import CapturedTables, TableSegment
from lockstep.pipeline.run.dump.cascade_watch import CascadeWatch, UnloggedCascade
from lockstep.pipeline.run.dump.image_decoder import ImageDecoder
from lockstep.pipeline.run.dump.table_changes import TableChanges
from lockstep.pipeline.run.stop_errors import arrow_errors_as_table_error
from lockstep.pipeline.schema.consequences import Consequence
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement, Renamed
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.values.errors import DamagedEvent, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_groups import RowBuffer
from lockstep.pipeline.values.row_images import RowImages
from lockstep.pipeline.values.segment import SystemTable, SystemTableSegment
from lockstep.pipeline.values.table import TableName


class Segmenter:
    """The `log_reader.LogTaker` of a capture: decodes the rows of one buffer's groups
    and adds them to `tables`. `table_changes` applies statements, and starts and stops
    tables. `unshaped_tables`: tables of `tables.counted_only` whose rows are all
    counted, including rows that the settings hide.

    `nulled_counts`: number of values, by column, that a policy replaced by NULL.
    `undefined_code_counts`: number of texts, by column, with a code that has no
    character and became U+FFFD."""

    def __init__(
        self,
        tables: CapturedTables,
        structures: SchemaTracker,
        shaping: Shaping,
        table_changes: TableChanges,
        system_table_rows: SystemTableRows | None = None,
        *,
        unshaped_tables: Collection[TableName] = (),
    ) -> None:
        self._tables = tables
        self._structures = structures
        self._table_changes = table_changes
        self._system_table_rows = system_table_rows
        self.watch = CascadeWatch(structures, tables.is_wanted)
        self._decoder = ImageDecoder(
            structures,
            shaping,
            policies_of=tables.policies_of,
            unshaped_tables=unshaped_tables,
        )
        self.row_count = 0
        self.nulled_counts, self.undefined_code_counts = Counter[str](), Counter[str]()
        self.present_names: dict[TableName, TableName] = {}
        """Former name of each table that this batch renamed → the table's present
        name."""

    @property
    def tables_with_defaults(self) -> Set[TableName]:
        """Tables with inserted rows that lacked a column in the log, and got the
        DEFAULT that the history has for it."""
        return self._decoder.tables_with_defaults

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        self._decoder.use_buffer(buffer)
        self._table_changes.use_buffer(buffer)

    def is_wanted(self, table: TableName) -> bool:
        return self._tables.is_wanted(table)

    def reach(self, at: Coordinates | None) -> None:
        self._table_changes.reach(at)

    def tables_with_rows(self) -> Iterator[TableName]:
        """Yield the captured tables that have rows in this batch, or in an XA
        transaction that is prepared and not yet committed."""
        tables_with_events = {table_map.table for table_map in self._decoder.buffer.maps.table_maps}
        for table in list(self._tables):
            has_rows = table.segments or (table.name in tables_with_events and table.is_wanted)
            if has_rows and not table.is_undecodable:
                yield table.name

    def parents_with_children(
        self, more_parents: Iterable[TableName]
    ) -> dict[TableName, frozenset[TableName]]:
        """Return, for each parent of foreign keys that has events in this batch, and
        for each of `more_parents`, its children in the lake whose rows a cascade may
        have changed."""
        by_parent = {table: self.watch.children(table) for table in more_parents}
        by_parent |= self.watch.inspected_parents
        return {
            parent: frozenset(
                child
                for child in children
                if self.is_wanted(child) and self._tables[child].is_known
            )
            for parent, children in by_parent.items()
        }

    def apply_statement(self, statement: LoggedStatement, followed: FollowedStatement) -> None:
        """Apply a statement that changed structures to the tables."""
        for effect in followed.effects:
            if isinstance(effect, Renamed):
                # A statement may rename a table to a name that it renames again.
                for former_name, present_name in self.present_names.items():
                    if present_name == effect.table:
                        self.present_names[former_name] = effect.to
                self.present_names[effect.table] = effect.to
        consequences = self._table_changes.apply_statement(statement, followed)
        # The system table `_ddl` gets only statements that the history recorded.
        if (
            self._system_table_rows is not None
            and self._system_table_rows.statement_count < self._structures.statement_count
        ):
            self._system_table_rows.add_statement(
                statement, followed, consequences, self._tables.last_sequence
            )

    def note_unlogged_change(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """Stop the table if a change of it at `at` would be taken."""
        if self._tables[table].takes(at):
            self._table_changes.stop(table, at, error)

    def note_lost_rows(self, table: TableName, at: Coordinates, reason: str) -> None:
        self._table_changes.stop_with_lost_rows(table, at, reason)

    def put(self, group: TransactionGroup) -> None:
        """Decode a group's rows, number them, and add them to the segments of their
        tables."""
        transaction_marks = _transaction_marks(group)
        counts = _TransactionCounts(
            group, self._tables.last_sequence, self._table_changes.take_mark_sequences()
        )
        for block in group.blocks:
            self._put_block(group, block, transaction_marks, counts)
        if group.is_from_file:
            # The group is one transaction. Rows of tables that stopped in it do not count.
            counts.row_counts[0] = self._tables.rows_of_transaction
            self._tables.end_parts()
        if self._system_table_rows is not None:
            self._system_table_rows.add_transactions(group, transaction_marks, counts)

    def _put_block(
        self,
        group: TransactionGroup,
        block: Block,
        transaction_marks: TransactionMarks,
        counts: _TransactionCounts,
    ) -> None:
        cascades = self._unlogged_cascades(group, block)
        # Rows before an unlogged change are decoded while their table is still wanted.
        decoded_tables = self._decode(group, block, cascades)
        self._table_changes.stop_cascaded_tables(cascades)
        event_image_counts, event_row_counts = np.zeros((2, len(block.events)), np.int64)
        for decoded in decoded_tables:
            event_image_counts[decoded.event_indexes] = decoded.event_image_counts
            event_row_counts[decoded.event_indexes] = decoded.event_row_counts
        counts.add(block.events, event_row_counts, event_image_counts)
        # Sequence numbers ascend in the order of the log over all tables, so every
        # table has to be decoded before the first row gets its number.
        images_before = np.cumsum(event_image_counts) - event_image_counts
        first_sequences = self._tables.last_sequence + 1 + images_before
        for decoded in decoded_tables:
            self._add(group, decoded, first_sequences[decoded.event_indexes], transaction_marks)
        self._tables.change_count += int(event_image_counts.sum())

    def _decode(
        self, group: TransactionGroup, block: Block, cascades: dict[TableName, UnloggedCascade]
    ) -> list[_DecodedEvents]:
        """Return the decoded events of a block, table by table. `cascades`: tables that
        stop inside the block, because of a change that is not logged."""
        decoded_tables: list[_DecodedEvents] = []
        maps = self._decoder.buffer.maps.table_maps
        for name, event_indexes, sub_block in split_by_table(block, maps):
            taken = event_indexes[self._tables[name].taken_events(group, sub_block.events)]
            if name in cascades:
                taken = taken[cascades[name].before(block.events[taken])]
            if len(taken):
                decoded = self._decode_table(group, name, taken, block.subset(taken))
                if decoded is not None:
                    decoded_tables.append(decoded)
        return decoded_tables

    def _decode_table(
        self, group: TransactionGroup, name: TableName, event_indexes: Integers, sub_block: Block
    ) -> _DecodedEvents | None:
        """Return a table's decoded events. If an event cannot be decoded, return None
        and stop the table before its first transaction in this block: a transaction is
        captured whole or not at all."""
        at = group.begin(sub_block.events[0, columns.TRANSACTION])
        try:
            with arrow_errors_as_table_error("decode its rows"):
                version, _ = self._decoder.decoder_of_map(int(sub_block.events[0, columns.MAP]), at)
                segment = self._tables.segment(version)
                batches = [*self._decoder.images(sub_block, at)]
        except (TableError, DamagedEvent) as error:
            # A damaged event's frame and checksum are right, so the rest of the log can
            # be read.
            self._tables[name].is_undecodable = True
            if isinstance(error, DamagedEvent):
                error = TableError(error.message, hint=error.hint)
            self._table_changes.stop(name, at, error)
            return None
        return _DecodedEvents.of(segment, event_indexes, sub_block.events, batches)

    def _add(
        self,
        group: TransactionGroup,
        decoded: _DecodedEvents,
        first_sequences: Integers,
        transaction_marks: TransactionMarks,
    ) -> None:
        """Add a table's rows to its segment. `first_sequences`: for each event, the
        sequence number of its first image."""
        segment = decoded.segment
        if segment.version.table in self._tables.counted_only:
            return
        if group.is_from_file:
            self._tables.begin_part(segment)
        first_rows = _continue_rows(segment, group, decoded)
        images_so_far = np.zeros(len(decoded.event_indexes), np.int64)
        for images in decoded.batches:
            first_event = int(images.event[0].as_py())
            sequence_numbers = sequences(images, first_sequences, int(images_so_far[first_event]))
            rows = with_marks(
                images,
                sequence_numbers,
                decoded.events,
                first_rows,
                transaction_marks,
                segment.schema,
                batch=self._tables.batch_id,
                schema_version=segment.version.version,
            )
            images_so_far += images_per_event(images, len(images_so_far))
            self._count(segment, images, sequence_numbers)
            self._tables.add(segment, rows)

    def _count(self, segment: TableSegment, images: RowImages, sequence_numbers: Integers) -> None:
        segment.first_sequence = segment.first_sequence or int(sequence_numbers[0])
        segment.last_sequence = int(sequence_numbers[-1])
        counts = row_counts(images)
        segment.counts += counts
        self.row_count += counts.total
        for column, count in images.nulled_counts.items():
            self.nulled_counts[f"{segment.version.table}.{column}"] += count
        for column, count in images.undefined_code_counts.items():
            self.undefined_code_counts[f"{segment.version.table}.{column}"] += count

    # -- changes by foreign keys that are not logged ------------------------------------------

    def _unlogged_cascades(
        self, group: TransactionGroup, block: Block
    ) -> dict[TableName, UnloggedCascade]:
        """Return the captured tables in which the server changed rows during this block
        without logging the change."""
        maps = self._decoder.buffer.maps.table_maps
        cascades: dict[TableName, UnloggedCascade] = {}
        for table, cascade in self.watch.find_unlogged(group, block, maps).items():
            if not self._has_rows(cascade, block):
                continue
            captured_table = self._tables[table]
            if captured_table.begin is None:
                cascades[table] = cascade
                continue
            # Only the events from `begin` on count for this table.
            taken_block = block.subset(captured_table.taken_events(group, block.events))
            taken_cascades = self.watch.find_unlogged(group, taken_block, maps)
            if table in taken_cascades:
                cascades[table] = taken_cascades[table]
        return cascades

    def _has_rows(self, cascade: UnloggedCascade, block: Block) -> bool:
        """Return whether the table may have rows in the lake, or in this block up to
        the transaction with the unlogged change."""
        if self._tables[cascade.table].is_known:
            return True
        is_before = block.events[:, columns.TRANSACTION] <= cascade.transaction_index
        maps = self._decoder.buffer.maps.table_maps
        map_indexes = np.unique(block.events[is_before, columns.MAP])
        return any(maps[map_index].table == cascade.table for map_index in map_indexes)


@dataclass(frozen=True, slots=True)
class _DecodedEvents:
    """The decoded events of one table in a block.

    `event_indexes`: indexes of the events in the block. `events`: their entries in the
    block's index. `batches`: the row images of all events. `event_image_counts`,
    `event_row_counts`: for each event, the number of images and of rows that are taken.
    `event_spans`: for each event, the number of its rows up to the last one that is
    taken.
    """

    segment: TableSegment
    event_indexes: Integers
    events: Integers
    batches: list[RowImages]
    event_image_counts: Integers
    event_row_counts: Integers
    event_spans: Integers

    @classmethod
    def of(
        cls,
        segment: TableSegment,
        event_indexes: Integers,
        events: Integers,
        batches: list[RowImages],
    ) -> _DecodedEvents:
        count = len(event_indexes)
        event_image_counts, event_row_counts, event_spans = np.zeros((3, count), np.int64)
        for batch in batches:
            event_image_counts += images_per_event(batch, count)
            event_row_counts += rows_per_event(batch, count)
            np.maximum.at(event_spans, batch.event.to_numpy(), batch.row.to_numpy() + 1)
        counts = event_image_counts, event_row_counts, event_spans
        return cls(segment, event_indexes, events, batches, *counts)


def _transaction_marks(group: TransactionGroup) -> TransactionMarks:
    """Return, for each transaction of a group, the metadata that its images share: log
    file, GTID and commit time."""
    names = pa.array([str(file) for file in group.files], pa.string())
    return TransactionMarks(
        file=names.take(pa.array(group.transactions[:, columns.FILE])),
        gtid=gtid_texts(group.transactions, group.gtid_sources),
        committed_at=commit_times(group.transactions),
    )


def _continue_rows(
    segment: TableSegment, group: TransactionGroup, decoded: _DecodedEvents
) -> Integers:
    """Return the `_row` of each event's first row. Usually it is 0. Events inside a
    compressed payload, or at an XA COMMIT, have the same offset as the event before.
    These continue its count, so that file, offset and `_row` identify a change. The
    segment notes the last count for the next events."""
    offsets = decoded.events[:, columns.OFFSET]
    files = group.transactions[decoded.events[:, columns.TRANSACTION], columns.FILE]
    is_other_place = np.ones(len(offsets), bool)
    is_other_place[1:] = (np.diff(offsets) != 0) | (np.diff(files) != 0)
    place_starts = np.flatnonzero(is_other_place)
    events_at_place = np.diff(place_starts, append=len(offsets))
    # Each event's rows are counted from the first event at the same place.
    rows_before = np.cumsum(decoded.event_spans) - decoded.event_spans
    first_rows = rows_before - np.repeat(rows_before[place_starts], events_at_place)
    if segment.last_place == (str(group.files[files[0]]), int(offsets[0])):
        first_rows[: events_at_place[0]] += segment.rows_at_last_place
    segment.last_place = (str(group.files[files[-1]]), int(offsets[-1]))
    segment.rows_at_last_place = int(first_rows[-1] + decoded.event_spans[-1])
    return first_rows


_VERSION: Final = 1
"""Version of the structure of the system tables. Their structure never changed."""


class _TransactionCounts:
    """The numbers of rows and images of each transaction of a group, counted block by
    block. `last_before`: sequence number of the last change before the group.
    `mark_sequences`: sequence numbers of marks that belong to the group's first
    transaction (a mark stands for all rows of a table, for example at a TRUNCATE)."""

    def __init__(
        self, group: TransactionGroup, last_before: int, mark_sequences: tuple[int, ...] = ()
    ) -> None:
        self._last_before, self._mark_sequences = last_before, mark_sequences
        self.row_counts: Integers = np.zeros(len(group.transactions), np.int64)
        self._image_counts: Integers = np.zeros(len(group.transactions), np.int64)

    def add(self, events: Integers, rows: Integers, images: Integers) -> None:
        """Add the numbers of rows and images of a block's events."""
        indexes, count = events[:, columns.TRANSACTION], len(self.row_counts)
        # bincount returns doubles, which are exact for any possible number of rows.
        self.row_counts += np.bincount(indexes, rows, count).astype(np.int64)
        self._image_counts += np.bincount(indexes, images, count).astype(np.int64)

    @property
    def sequence_ranges(self) -> tuple[Integers, Integers]:
        """The sequence numbers of each transaction's first and last change; 0 if it has
        none."""
        has_images = self._image_counts > 0
        ends = self._last_before + np.cumsum(self._image_counts)
        firsts = np.where(has_images, ends - self._image_counts + 1, 0)
        lasts = np.where(has_images, ends, 0)
        if self._mark_sequences:
            firsts[0] = self._mark_sequences[0]
            lasts[0] = max(self._mark_sequences[-1], lasts[0])
        return firsts, lasts


class SystemTableRows:
    """The rows that one capture adds to the system tables. `hides_values`: the settings
    hide values of some table. Then no transaction shows its statements, whose text may
    contain such values."""

    def __init__(
        self, store: SegmentStore, *, source: str, batch_id: int, hides_values: bool = False
    ) -> None:
        self._store = store
        self._source, self._batch_id, self._hides_values = source, batch_id, hides_values
        self._writer: SegmentWriter | None = None
        self._unwritten = RowBuffer()
        self._statements: list[PlacedStatement] = []

    @property
    def statement_count(self) -> int:
        """The number of DDL statements so far."""
        return len(self._statements)

    def add_statement(
        self,
        statement: LoggedStatement,
        followed: FollowedStatement,
        consequences: Mapping[TableName, Consequence],
        sequence: int,
    ) -> None:
        """Add a statement that the history records. `consequences`: by table.
        `sequence`: the sequence number of the last change before it."""
        self._statements.append(PlacedStatement(statement, followed, dict(consequences), sequence))

    def add_transactions(
        self,
        group: TransactionGroup,
        transaction_marks: TransactionMarks,
        counts: _TransactionCounts,
    ) -> None:
        """Add the transactions of a group."""
        texts = group.texts.lists_by_transaction(len(group.transactions))
        rows = transaction_rows(
            transaction_marks,
            begin=group.transactions[:, columns.BEGIN_OFFSET],
            end=group.transactions[:, columns.END_OFFSET],
            server_id=group.transactions[:, columns.ORIGIN_SERVER],
            rows=counts.row_counts,
            sequences=counts.sequence_ranges,
            statements=pa.nulls(len(texts), texts.type) if self._hides_values else texts,
            cut=group.transactions[:, columns.TEXT_BYTES] > MOST_TEXT_BYTES,
            batch=self._batch_id,
        )
        self._unwritten.add(rows)
        if self._unwritten.is_full:
            self._write()

    def finish(self, history: BatchHistory) -> tuple[SystemTableSegment, ...]:
        """Write and close all files, which makes them durable. `history`: the versions
        of table structures, and the statements, that this capture records."""
        self._write()
        segments = []
        if self._statements:
            writer = self._open(SystemTable.DDL)
            writer.write(statement_rows(history, self._statements, batch=self._batch_id))
            segments.append(SystemTableSegment(SystemTable.DDL, writer.close()))
        if self._writer is not None:
            segments.append(SystemTableSegment(SystemTable.TRANSACTIONS, self._writer.close()))
        return tuple(segments)

    def drop(self) -> None:
        """Discard the rows in memory and in files."""
        self._unwritten.clear()
        if self._writer is not None:
            self._writer.drop(0)

    def _write(self) -> None:
        if not self._unwritten.batches:
            return
        if self._writer is None:
            self._writer = self._open(SystemTable.TRANSACTIONS)
        self._writer.write(pa.Table.from_batches(self._unwritten.batches))
        self._unwritten.clear()

    def _open(self, table: SystemTable) -> SegmentWriter:
        return self._store.open(
            system_table_path(self._source, table),
            batch=self._batch_id,
            schema_version=_VERSION,
            schema=SYSTEM_TABLE_SCHEMAS[table],
        )
