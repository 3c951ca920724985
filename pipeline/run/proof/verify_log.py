"""Reads the log after the acknowledged cursor (the place that the lake shows), for the
tables that are compared. It writes nothing. Its memory does not grow with the tables'
sizes: readers keep hashes of row images, and rows only of keys that they are given."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.rows.maps import split_by_table
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import GtidCollector, gtid_set, union
from lockstep.pipeline.mirror.marks import row_counts
from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.proof.hashes import Hashes, RowHasher
from lockstep.pipeline.proof.rows import RowsBeforeLog, RowTally
from lockstep.pipeline.proof.running_sum import (
    Counts,
    RunningSum,
    Transactions,
    sums_by_transaction,
)
from lockstep.pipeline.run.begin import start_to_continue
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis, basis_of
from lockstep.pipeline.run.dump.cascade_watch import CascadeWatch
from lockstep.pipeline.run.dump.image_decoder import ImageDecoder
from lockstep.pipeline.run.dump.log_reader import (
    LogReading,
    require_complete,
    require_prepared_after_start,
)
from lockstep.pipeline.run.reports import UncomparedTable
from lockstep.pipeline.run.stop_errors import arrow_errors_as_table_error
from lockstep.pipeline.schema.consequences import Action, consequences
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.start.bounds import Budget, RunBounds
from lockstep.pipeline.values.errors import DamagedEvent, TableError
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages, unpack_bits
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import TableName

AGAIN_HINT: Final = "`lockstep run`, then `lockstep verify` again"
"""The hint for a table that could not be compared just now."""


class TableReader(Protocol):
    """A receiver of one table's row images (rows before and after changes)."""

    hasher: RowHasher
    """Computes the hashes; images must have its columns."""

    def take(self, images: RowImages, transaction_indexes: Integers) -> None:
        """Take images in the order of the log. `transaction_indexes`: by image, the
        index of its transaction in the group."""

    def end_group(self, transactions: Transactions) -> None:
        """End a group of transactions: its images were taken since the last call."""


def read_log(
    ports: RunPorts, cursor: Cursor, readers: Mapping[TableName, TableReader]
) -> dict[TableName, UncomparedTable]:
    """Read from the cursor to the end of the log, and give each reader the images of
    its table. Return the tables whose changes could not be read, with the reasons.
    Raise the errors that would end a run over the same range."""
    run_start = start_to_continue(ports, cursor)
    bounds = RunBounds.of(run_start.facts, Budget())
    basis = basis_of(ports, run_start, bounds, cursor.batch + 1, ())
    taker = ImageTaker(basis, readers)
    reading = LogReading(basis, taker)
    reading.run()
    require_complete(ports, run_start, bounds, reading.end.gtid_set)
    require_prepared_after_start(run_start, reading)
    return taker.uncompared_tables


class ImageTaker:
    """A `log_reader.LogTaker` that passes images to readers and captures nothing."""

    def __init__(self, basis: Basis, readers: Mapping[TableName, TableReader]) -> None:
        self._readers = readers
        self._policies_of = basis.ports.source.policies_of
        self._column_uses_of = basis.ports.shaping.column_uses
        self._decoding = ImageDecoder(basis.structures, basis.ports.shaping)
        self.watch = CascadeWatch(basis.structures, self.is_wanted)
        self._start_gtids = basis.run_start.start.gtid_set
        self._gtids = GtidCollector()
        self.uncompared_tables: dict[TableName, UncomparedTable] = {}
        self.row_count = 0

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        self._decoding.use_buffer(buffer)

    def is_wanted(self, table: TableName) -> bool:
        return table in self._readers and table not in self.uncompared_tables

    def reach(self, at: Coordinates | None) -> None:
        """Do nothing: each table is read from the log's start to its end."""

    def apply_statement(self, logged: LoggedStatement, followed: FollowedStatement) -> None:
        effects = consequences(followed, self._policies_of, logged, self._column_uses_of)
        for table, consequence in effects.items():
            if consequence.action is not Action.NOTHING and self.is_wanted(table):
                self._stop_comparing(
                    table, f"it was altered at {logged.begin}: {consequence.reason}"
                )

    def note_unlogged_change(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self._stop_comparing(table, f"{error.reason}, at {at}")

    def note_lost_rows(self, table: TableName, at: Coordinates, reason: str) -> None:
        self._stop_comparing(table, f"{reason}, at {at}")

    def put(self, group: TransactionGroup) -> None:
        tables_with_images: set[TableName] = set()
        for block in group.blocks:
            maps = self._decoding.buffer.maps.table_maps
            for table, loss in self.watch.find_unlogged(group, block, maps).items():
                reason = f"rows changed at {loss.at} without being logged: {loss.reason}"
                self._stop_comparing(table, reason)
            for table, _, part in split_by_table(block, maps):
                if self.is_wanted(table) and self._take(table, part, group):
                    tables_with_images.add(table)
        transactions = _Transactions(
            group, lambda: union(self._start_gtids, self._gtids.merged_set())
        )
        for table in tables_with_images:
            if self.is_wanted(table):
                self._readers[table].end_group(transactions)
        self._gtids.add(group.transactions, group.gtid_sources)

    def _take(self, table: TableName, part: Block, group: TransactionGroup) -> bool:
        """Give the reader of a table its images. Return whether all could be read."""
        reader = self._readers[table]
        at = group.begin(int(part.events[0, columns.TRANSACTION]))
        transactions = part.events[:, columns.TRANSACTION]
        try:
            with arrow_errors_as_table_error("decode its rows"):
                for images in self._decoding.images(part, at):
                    if images.columns.schema != reader.hasher.schema:
                        self._stop_comparing(
                            table, f"its structure at {at} differs from the source's now"
                        )
                        return False
                    self.row_count += row_counts(images).total
                    reader.take(images, transactions[images.event.to_numpy()])
        except TableError as error:
            self._stop_comparing(table, error.reason, error.hint)
            return False
        except DamagedEvent as error:
            self._stop_comparing(table, error.message, error.hint)
            return False
        return True

    def _stop_comparing(self, table: TableName, reason: str, hint: str = "") -> None:
        self.uncompared_tables[table] = UncomparedTable(
            table, reason, hint or AGAIN_HINT, is_readable=True
        )
        self._decoding.buffer.maps.skip_table(table)


@dataclass(slots=True)
class _Transactions:
    """The transactions of a group, in the form that `pipeline.proof` needs.
    `gtids_before`: returns the GTIDs that were read before the group."""

    group: TransactionGroup
    gtids_before: Callable[[], GtidSet]

    @property
    def count(self) -> int:
        return len(self.group.transactions)

    def end(self, number: int) -> Coordinates:
        return self.group.end(number)

    def through(self, at: Coordinates) -> int:
        return bisect_right(range(self.count), at, key=self.group.end)

    def gtids(self, number: int) -> str:
        group_gtids = gtid_set(self.group.transactions[: number + 1], self.group.gtid_sources)
        return str(union(self.gtids_before(), group_gtids))


_EXISTS_AFTER: Final = np.array(
    [kind in (ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE) for kind in CHANGE_TYPES]
)


def _exists_after(images: RowImages) -> npt.NDArray[np.bool_]:
    """Return, for each image, whether it shows the row after a change, not before."""
    return np.asarray(_EXISTS_AFTER[images.change_type.to_numpy()])


def _has_all_columns(images: RowImages) -> npt.NDArray[np.bool_]:
    """Return, for each image, whether it has every column."""
    if images.present is None:
        return np.ones(len(images.event), np.bool_)
    return np.asarray(images.present.is_null().to_numpy(zero_copy_only=False))


def _key_hashes(hasher: RowHasher, images: RowImages) -> Hashes:
    """Return the hash of each image's key. A postimage without the key columns has the
    key of its preimage, which is the image before it."""
    keys = hasher.key_hashes(images.columns)
    if images.present is None:
        return keys
    key_indexes = [hasher.structure.names.index(name) for name in hasher.key_columns]
    has_key = unpack_bits(images.present, images.columns.num_columns)[:, key_indexes].all(axis=1)
    for index in np.flatnonzero(~has_key & _exists_after(images)).tolist():
        keys[index] = keys[index - 1]
    return keys


def _signed_hashes(hasher: RowHasher, images: RowImages) -> tuple[Counts, Hashes]:
    """Return for each image 1 if it shows the row after a change, else -1; and its hash."""
    return np.where(_exists_after(images), 1, -1), hasher.row_hashes(images.columns)


@dataclass(slots=True)
class SumReader:
    """A `TableReader` that carries the mirror's sum through the log.
    `has_partial_images`: an image lacked columns, so the sum is void from there on."""

    hasher: RowHasher
    carried_sum: RunningSum
    has_partial_images: bool = False
    _group_images: list[tuple[Integers, Counts, Hashes]] = field(default_factory=list)

    def take(self, images: RowImages, transaction_indexes: Integers) -> None:
        self.has_partial_images = self.has_partial_images or not _has_all_columns(images).all()
        self._group_images.append((transaction_indexes, *_signed_hashes(self.hasher, images)))

    def end_group(self, transactions: Transactions) -> None:
        images, self._group_images = self._group_images, []
        if not images:
            return
        transaction_indexes, signs, hashes = (
            np.concatenate(arrays) for arrays in zip(*images, strict=True)
        )
        self.carried_sum.put(transactions, *sums_by_transaction(transaction_indexes, signs, hashes))


@dataclass(slots=True)
class BeforeHashReader:
    """A `TableReader` that records each row as it was before its first change."""

    hasher: RowHasher
    rows_before_log: RowsBeforeLog

    def take(self, images: RowImages, transaction_indexes: Integers) -> None:
        keys, rows = _key_hashes(self.hasher, images), self.hasher.row_hashes(images.columns)
        self.rows_before_log.put(keys, rows, _exists_after(images), _has_all_columns(images))

    def end_group(self, transactions: Transactions) -> None:
        """Do nothing: the order of images suffices, whatever their transactions."""


@dataclass(slots=True)
class TallyReader:
    """A `TableReader` for a table without a key. It counts rows by their hashes. `low`:
    the end of the log just before the source was read."""

    hasher: RowHasher
    tally: RowTally
    low: Coordinates
    _group_images: list[tuple[Integers, Counts, Hashes]] = field(default_factory=list)

    def take(self, images: RowImages, transaction_indexes: Integers) -> None:
        self._group_images.append((transaction_indexes, *_signed_hashes(self.hasher, images)))

    def end_group(self, transactions: Transactions) -> None:
        images, self._group_images = self._group_images, []
        first_after = transactions.through(self.low)
        for transaction_indexes, signs, hashes in images:
            for after_low in (False, True):
                is_in_half = (transaction_indexes >= first_after) == after_low
                self.tally.put(hashes[is_in_half], signs[is_in_half].tolist(), after_low=after_low)


@dataclass(slots=True)
class BeforeRowReader:
    """A `TableReader` that keeps rows as they were before their first change.
    `key_hashes`: hashes of the keys of these rows; `rows`: the rows by these hashes,
    None if a row did not exist."""

    hasher: RowHasher
    key_hashes: Hashes
    rows: dict[int, pa.RecordBatch | None] = field(default_factory=dict)

    def take(self, images: RowImages, transaction_indexes: Integers) -> None:
        keys, exists_after = _key_hashes(self.hasher, images), _exists_after(images)
        for index in np.flatnonzero(np.isin(keys, self.key_hashes)).tolist():
            # A row's first image is its preimage, or the insert of a row that did not
            # exist.
            row = None if exists_after[index] else images.columns.slice(index, 1)
            self.rows.setdefault(int(keys[index]), row)

    def end_group(self, transactions: Transactions) -> None:
        """Do nothing: the order of images suffices, whatever their transactions."""
