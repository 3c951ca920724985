"""The log behind a mirror's place, read for what it says of tables that are compared: a reading
that writes nothing, and what is kept of its images, as hashes. The memory for these does not grow
with a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Cursor
from pipeline.binlog.rows.parts import by_table
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from pipeline.binlog.transactions.identity import GtidsRead, gtid_set, together
from pipeline.bounds import Budget, RunBounds
from pipeline.errors import DamagedEvent, TableError
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates
from pipeline.proof.hashes import Hashes, RowHasher
from pipeline.proof.prefixes import Carried, Counts, Transactions, grouped
from pipeline.proof.rows import FirstTouch, RowTally
from pipeline.row_images import CHANGE_TYPES, RowImages, unpacked
from pipeline.runs.begin import place_to_go_on
from pipeline.runs.capturing.basis import Basis, basis_of
from pipeline.runs.capturing.cascade_watch import Watch
from pipeline.runs.capturing.image_decoder import Decoding
from pipeline.runs.capturing.log_reader import LogReading, require_followed, require_whole
from pipeline.runs.context import Workplace
from pipeline.runs.reports import NotCompared
from pipeline.schema.consequences import Action, consequences
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.segment import ChangeType
from pipeline.table import TableName

AGAIN: Final = "`lockstep run`, then `lockstep verify` again"
"""What lets a table be compared that just now could not be."""


class TableReader(Protocol):
    """Who takes one table's images."""

    hasher: RowHasher
    """Of the columns that images must have."""

    def take(self, images: RowImages, transactions: Integers) -> None:
        """Images in the order of the log; `transactions`: of each, its number in the run."""

    def end(self, transactions: Transactions) -> None:
        """The run whose images were taken since the last call."""


def read_log(
    work: Workplace, cursor: Cursor, readers: Mapping[TableName, TableReader]
) -> dict[TableName, NotCompared]:
    """Read from the cursor to the log's end, everything of these tables to their readers; the
    tables of which that could not be done. Raises what would end a run that reads there."""
    run_start = place_to_go_on(work, cursor)
    bounds = RunBounds.fixed(run_start.facts, Budget())
    basis = basis_of(work, run_start, bounds, cursor.batch + 1, ())
    taker = LogOfTables(basis, readers)
    reading = LogReading(basis, taker)
    reading.run()
    require_whole(work, run_start, bounds, reading.end.gtid_set)
    require_followed(run_start, reading)
    return taker.unfollowed


class LogOfTables:
    """`log_reader.Taker` that hands images on, and numbers and keeps nothing."""

    changes = 0
    """Nothing is to be merged: no Spark is wanted."""

    def __init__(self, basis: Basis, readers: Mapping[TableName, TableReader]) -> None:
        self._readers = readers
        self._policies_of = basis.work.source.policies_of
        self._treated = basis.work.shaping.treated
        self._decoding = Decoding(basis.structures, basis.work.shaping)
        self._watch = Watch(basis.structures, self.wanted)
        self.watches, self.follow = self._watch.watches, self._decoding.follow
        self._start, self._gtids = basis.run_start.start.gtid_set, GtidsRead()
        self.unfollowed: dict[TableName, NotCompared] = {}
        self.rows = 0

    def wanted(self, table: TableName) -> bool:
        return table in self._readers and table not in self.unfollowed

    def reach(self, at: Coordinates | None) -> None:
        """Nothing waits for a place."""

    def changed(self, logged: LoggedStatement, followed: FollowedStatement) -> None:
        found = consequences(followed, self._policies_of, logged, self._treated)
        for table, consequence in found.items():
            if consequence.action is not Action.NOTHING and self.wanted(table):
                self._leave(table, f"it was altered at {logged.begin}: {consequence.reason}")
        if self._watch.moved():
            self._decoding.buffer.maps.ask_again()

    def reached(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self._leave(table, f"{error.reason}, at {at}")

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        if self.wanted(table):
            self._leave(table, f"{reason}, at {at}")

    def put(self, group: TransactionGroup) -> None:
        taken: set[TableName] = set()
        for block in group.blocks:
            maps = self._decoding.buffer.maps.known
            for table, loss in self._watch.lost(group, block, maps).items():
                if self.wanted(table):
                    why = f"rows changed at {loss.at} without being logged: {loss.reason}"
                    self._leave(table, why)
            for name, _, part in by_table(block, maps):
                if self.wanted(name) and self._take(name, part, group):
                    taken.add(name)
        transactions = _Transactions(group, lambda: together(self._start, self._gtids.set()))
        for table in taken:
            if self.wanted(table):
                self._readers[table].end(transactions)
        self._gtids.add(group.transactions, group.sources)

    def _take(self, name: TableName, part: Block, group: TransactionGroup) -> bool:
        reader = self._readers[name]
        at = group.begin(int(part.events[0, columns.TRANSACTION]))
        of = part.events[:, columns.TRANSACTION]
        try:
            with for_one_table("decode its rows"):
                for images in self._decoding.images(part, at):
                    if images.columns.schema != reader.hasher.schema:
                        self._leave(name, f"its structure at {at} differs from the source's now")
                        return False
                    self.rows += images.columns.num_rows
                    reader.take(images, of[images.event.to_numpy()])
        except TableError as error:
            self._leave(name, error.reason, error.hint)
            return False
        except DamagedEvent as error:
            self._leave(name, error.message, error.hint)
            return False
        return True

    def _leave(self, table: TableName, reason: str, hint: str = "") -> None:
        self.unfollowed[table] = NotCompared(table, reason, hint or AGAIN, readable=True)
        self._decoding.buffer.maps.drop(table)


@dataclass(slots=True)
class _Transactions:
    """A group's, as `pipeline.proof` asks of them. `before`: GTIDs read before it."""

    group: TransactionGroup
    before: Callable[[], GtidSet]

    @property
    def count(self) -> int:
        return len(self.group.transactions)

    def end(self, number: int) -> Coordinates:
        return self.group.end(number)

    def through(self, at: Coordinates) -> int:
        return bisect_right(range(self.count), at, key=self.group.end)

    def gtids(self, number: int) -> str:
        read = gtid_set(self.group.transactions[: number + 1], self.group.sources)
        return str(together(self.before(), read))


_COMES: Final = np.array(
    [kind in (ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE) for kind in CHANGE_TYPES]
)


def comes(images: RowImages) -> npt.NDArray[np.bool_]:
    """Whether the row is there behind each image."""
    return np.asarray(_COMES[images.change_type.to_numpy()])


def whole(images: RowImages) -> npt.NDArray[np.bool_]:
    """Whether each image has every column."""
    if images.present is None:
        return np.ones(len(images.event), np.bool_)
    return np.asarray(images.present.is_null().to_numpy(zero_copy_only=False))


def keys_of(hasher: RowHasher, images: RowImages) -> Hashes:
    """Of each image. One after an update that leaves the key out has that of the one before."""
    keys = hasher.keys(images.columns)
    if images.present is None:
        return keys
    places = [hasher.structure.names.index(name) for name in hasher.key]
    bits = unpacked(images.present)
    if not bits.shape[1]:
        return keys
    for at in np.flatnonzero(~bits[:, places].all(axis=1) & comes(images)).tolist():
        keys[at] = keys[at - 1]
    return keys


@dataclass(slots=True)
class SumReader:
    """`verify_log.TableReader` that carries a sum. `partial`: an image lacked columns, and the
    sum says nothing since."""

    hasher: RowHasher
    carried: Carried
    partial: bool = False
    _taken: list[tuple[Counts, Counts, Hashes]] = field(default_factory=list)

    def take(self, images: RowImages, transactions: Counts) -> None:
        self.partial = self.partial or not whole(images).all()
        signs = np.where(comes(images), 1, -1)
        self._taken.append((transactions, signs, self.hasher.rows(images.columns)))

    def end(self, transactions: Transactions) -> None:
        taken, self._taken = self._taken, []
        if not taken:
            return
        which, signs, hashes = (np.concatenate(one) for one in zip(*taken, strict=True))
        self.carried.put(transactions, *grouped(which, signs, hashes))


@dataclass(slots=True)
class TouchReader:
    """`verify_log.TableReader` that notes what rows were."""

    hasher: RowHasher
    touch: FirstTouch

    def take(self, images: RowImages, transactions: Counts) -> None:
        keys, rows = keys_of(self.hasher, images), self.hasher.rows(images.columns)
        self.touch.put(keys, rows, comes(images), whole(images))

    def end(self, transactions: Transactions) -> None:
        """What was taken counts whatever transaction it is of."""


@dataclass(slots=True)
class TallyReader:
    """The same for a table without a key. `low`: the mark before the source's read."""

    hasher: RowHasher
    tally: RowTally
    low: Coordinates
    _taken: list[tuple[Counts, Counts, Hashes]] = field(default_factory=list)

    def take(self, images: RowImages, transactions: Counts) -> None:
        signs = np.where(comes(images), 1, -1)
        self._taken.append((transactions, signs, self.hasher.rows(images.columns)))

    def end(self, transactions: Transactions) -> None:
        taken, self._taken = self._taken, []
        behind = transactions.through(self.low)
        for which, signs, hashes in taken:
            for later in (False, True):
                of = (which >= behind) == later
                self.tally.put(hashes[of], signs[of].tolist(), behind_low=later)


@dataclass(slots=True)
class BeforeReader:
    """`verify_log.TableReader` that keeps what some rows were: by the hash of the key, None
    where there was none."""

    hasher: RowHasher
    wanted: Hashes
    was: dict[int, pa.RecordBatch | None] = field(default_factory=dict)

    def take(self, images: RowImages, transactions: Counts) -> None:
        keys, there = keys_of(self.hasher, images), comes(images)
        for at in np.flatnonzero(np.isin(keys, self.wanted)).tolist():
            row = None if there[at] else images.columns.slice(at, 1)
            self.was.setdefault(int(keys[at]), row)

    def end(self, transactions: Transactions) -> None:
        """What was taken counts whatever transaction it is of."""
