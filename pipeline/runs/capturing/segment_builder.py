"""Runs of whole transactions → the rows of changelogs, numbered.

Belongs here: numbering images over all tables, and quarantining one table without touching
the others. Does not: reading the log (`log_reader`), decoding (`image_decoder`), what statements
do to tables (`table_changes`), what images carry (`change_rows`), files (`table_files`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import datetime

import numpy as np

from pipeline.arrow_errors import for_one_table
from pipeline.binlog.rows.parts import by_table
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.changes.extents import Extents
from pipeline.changes.marks import TransactionMarks
from pipeline.errors import DamagedEvent, TableError
from pipeline.position import Coordinates
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.cascade_watch import LostRows, Watch
from pipeline.runs.capturing.catch_up_tables import ComingBack
from pipeline.runs.capturing.change_numbers import Numbers
from pipeline.runs.capturing.change_rows import Decoded, Holding, marks_of
from pipeline.runs.capturing.image_decoder import Decoding
from pipeline.runs.capturing.part_rows import put_part
from pipeline.runs.capturing.rename_handover import HandingOver
from pipeline.runs.capturing.snapshot_join import Joining, behind
from pipeline.runs.capturing.source_rows import CountedTransactions, SourceRows
from pipeline.runs.capturing.table_changes import Following, Rules, TakenUp
from pipeline.runs.loading.part import PartRead
from pipeline.schema.evolving.effects import Renamed
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName


class Segmenter:
    """Takes the runs of one buffer; `tables` gets the rows."""

    def __init__(
        self,
        tables: CapturedTables,
        structures: SchemaTracker,
        numbers: Numbers,
        rules: Rules,
        taken_up: TakenUp | None = None,
        *,
        source_rows: SourceRows | None = None,
        handing_over: HandingOver | None = None,
        extents: Extents | None = None,
    ) -> None:
        self._tables = tables
        self._source_rows = source_rows
        self._structures = structures
        self._captured = rules.captured
        self._numbers = numbers
        self._following = Following(
            tables,
            structures,
            numbers,
            rules,
            taken_up or TakenUp(),
            wants_changed=self._ask_again,
            handing_over=handing_over,
            extents=extents,
        )
        self._watch = Watch(structures, self._following.wanted)
        self._decoding = Decoding(structures, updated=tables.files.updated)
        self._holding = Holding(tables, numbers.batch)
        self._undecodable: set[TableName] = set()
        self._renamed: dict[TableName, TableName] = {}

    @property
    def joining(self) -> Joining:
        return self._following.joining

    @property
    def coming_back(self) -> ComingBack:
        return self._following.coming_back

    @property
    def changes(self) -> int:
        """Images so far, marks among them."""
        return self._numbers.changes

    @property
    def rows(self) -> int:
        return self._holding.rows

    @property
    def softened(self) -> Counter[str]:
        return self._holding.softened

    @property
    def unknown(self) -> Counter[str]:
        return self._holding.unknown

    @property
    def filled(self) -> Set[TableName]:
        """Tables whose inserted rows were given defaults that the history has."""
        return self._decoding.filled

    def tables_with_rows(self) -> Iterator[TableName]:
        """Captured tables whose rows this batch has, or keeps while their transaction is
        prepared."""
        mapped = {known.table for known in self._decoding.buffer.maps.known}
        captured = filter(self._captured, mapped - self._undecodable)
        yield from filter(self._tables.wanted, captured)
        yield from self._tables.files.tables - self._undecodable

    def parents(self, others: Iterable[TableName]) -> dict[TableName, frozenset[TableName]]:
        """Parents of foreign keys that this batch has events of, and those among `others`, each
        with the tables in the lake whose rows the server may have changed with the parent's."""
        children = {table: self._watch.children(table) for table in others}
        found = children | self._watch.inspected
        return {
            parent: frozenset(filter(self._tables.known, filter(self.wanted, those)))
            for parent, those in found.items()
        }

    @property
    def renamed(self) -> Mapping[TableName, TableName]:
        """Names that tables had in this batch, each with the one that its table has now."""
        return self._renamed

    def names_since(self, table: TableName) -> set[TableName]:
        """The name, and the one that the table which had it has now."""
        return {table, self._renamed.get(table, table)}

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose runs are put."""
        self._decoding.follow(buffer)

    def wanted(self, table: TableName) -> bool:
        return self._following.wanted(table)

    def watches(self, table: TableName) -> bool:
        return self._watch.watches(table)

    def changed(self, logged: LoggedStatement, followed: FollowedStatement) -> None:
        """A statement changed structures."""
        renames = {one.table: one.to for one in followed.effects if isinstance(one, Renamed)}
        moved = {table: renames.get(name, name) for table, name in self._renamed.items()}
        self._renamed = moved | renames
        actions = self._following.changed(logged, followed)
        if self._watch.moved():
            self._ask_again()
        if (
            self._source_rows is not None
            and self._source_rows.statements < self._structures.statements
        ):
            self._source_rows.statement(logged, followed, actions, self._numbers.last)

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        self._following.lose(table, at, reason)

    def reach(self, at: Coordinates | None) -> None:
        self._following.reach(at)

    def quarantine(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """The table goes no further than `at`."""
        self._following.quarantine(table, at, error)

    def reached(self, table: TableName, at: Coordinates, error: TableError) -> None:
        low = self._following.lows.get(table)
        if not self.joining.waits(table) and (low is None or low <= at):
            self._following.quarantine(table, at, error)

    def refresh(self, part: PartRead, moment: datetime) -> None:
        """Rows that were read by a condition stand before all that the log has."""
        put_part(part, self._tables, self._structures, self._numbers, moment)

    def rebuild(self, table: TableName, why: str) -> None:
        """Its mirror is written anew behind the last change so far."""
        self._following.rebuild(table, why)

    def _ask_again(self) -> None:
        self._decoding.buffer.maps.ask_again()

    def put(self, group: TransactionGroup) -> None:
        """Decode and number a run's rows."""
        marks = marks_of(group)
        counted = CountedTransactions(group, self._numbers.last, self._following.take_emptied())
        for block in group.blocks:
            self._put_block(group, block, marks, counted)
        if group.from_file:
            counted.rows[0] = self._tables.files.rows_in_parts
            self._tables.files.end_parts()
        if self._source_rows is not None:
            self._source_rows.transactions(group, marks, counted)

    def _put_block(
        self,
        group: TransactionGroup,
        block: Block,
        marks: TransactionMarks,
        counted: CountedTransactions,
    ) -> None:
        images_of, rows_of = (np.zeros(len(block.events), np.int64) for _ in range(2))
        lost = self._lost(group, block)
        decoded = self._decoded(group, block, lost)
        self._following.end_at(lost)
        for one in decoded:
            images_of[one.which] = one.images
            rows_of[one.which] = one.rows
        counted.add(block.events, rows_of, images_of)
        first_of = self._numbers.last + 1 + np.cumsum(images_of) - images_of
        for one in decoded:
            self._holding.hold(group, one, first_of[one.which], marks)
        self._numbers.changes += int(images_of.sum())

    def _decoded(
        self, group: TransactionGroup, block: Block, lost: dict[TableName, LostRows]
    ) -> list[Decoded]:
        """A block's rows by their tables, each table's in the order of the log."""
        decoded: list[Decoded] = []
        for name, which, part in by_table(block, self._decoding.buffer.maps.known):
            if not self._captured(name):
                continue
            if name in lost:
                kept = lost[name].before(part.events)
                which, part = which[kept], Block(part.data, part.events[kept])
                if not len(which):
                    continue
            done = self._decoded_table(group, name, which, part)
            if done is not None:
                decoded.append(done)
        return decoded

    def _decoded_table(
        self, group: TransactionGroup, name: TableName, which: Integers, part: Block
    ) -> Decoded | None:
        """Where one of a table's events is bad, none of this block counts: its changes end
        between two transactions, before the first one here."""
        if not self._tables.wanted(name) or self.joining.waits(name):
            return None
        if (low := self._following.lows.get(name)) is not None:
            later = behind(group, part.events, low)
            which, part = which[later], Block(part.data, part.events[later])
            if not len(which):
                return None
        at = group.begin(part.events[0, columns.TRANSACTION])
        try:
            with for_one_table("decode its rows"):
                table, batches = self._decoding.decoded(part, at, self._tables)
        except TableError as error:
            self._undecodable.add(name)
            self._following.quarantine(name, at, error)
            return None
        except DamagedEvent as error:
            # Its event is framed and may be checked: nothing else in the log depends on it.
            self._undecodable.add(name)
            self._following.quarantine(name, at, TableError(error.message, hint=error.hint))
            return None
        return Decoded.of(table, which, part.events, batches)

    # -- rows that no log tells -----------------------------------------------------------

    def _lost(self, group: TransactionGroup, block: Block) -> dict[TableName, LostRows]:
        """Captured tables that the server changed in this block without a word in the log."""
        maps = self._decoding.buffer.maps.known
        losses = self._watch.lost(group, block, maps)
        for table in list(losses):
            if self.joining.waits(table) or not self._has_rows(losses[table], block):
                del losses[table]
            elif (low := self._following.lows.get(table)) is not None:
                later = Block(block.data, block.events[behind(group, block.events, low)])
                again = self._watch.lost(group, later, maps).get(table)
                del losses[table]
                if again is not None:
                    losses[table] = again
        return losses

    def _has_rows(self, loss: LostRows, block: Block) -> bool:
        """Whether the lake may have rows of the table by then."""
        if self._tables.known(loss.table):
            return True
        so_far = block.events[block.events[:, columns.TRANSACTION] <= loss.transaction]
        known = self._decoding.buffer.maps.known
        numbers = set(so_far[:, columns.MAP])
        return any(known[int(number)].table == loss.table for number in numbers)
