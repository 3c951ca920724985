"""The table maps of a log: which rows belong to which table, and which tables are
captured.

A server gives a table a new id whenever it opens the table again, and writes a whole
TABLE_MAP for each statement. Here, all maps with the same content have one number. Ids
and flags do not count as content: the flags of a foreign key's child change from
statement to statement. A table whose structure changes has several numbers, not
necessarily in the order of its rows. The maps of two server versions have different
numbers, because the same bytes may have different meanings.

The row events of a block (`ring.Block`) are split by table map, by table, or into
portions. Every part has its events in the order of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.rows.table_map import TableMap
from lockstep.pipeline.binlog.stream import ring
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.binlog.stream.framing import HEADER_BYTES
from lockstep.pipeline.binlog.stream.ring import INSPECTED, MAP, TAKEN, Block, Integers
from lockstep.pipeline.values.table import TableName

_NAMES_AT = HEADER_BYTES + 6 + 2
"""Offset of a map's names: after the header, the table id and the flags."""

_UNUSED = -1
"""In place of a table id: the slot is free. In place of a statement: none had the map."""


class TableMaps:
    """Every distinct table map of a log, numbered from 0.

    `is_captured` returns whether a table's rows are captured. `may_be_merge_table`
    returns whether the rows of a table that is not captured may be stored in other
    tables of the same statement (MERGE). `keeps_all_prepared`: take the rows of every
    table in an XA transaction; when it is committed, `is_captured` decides which of
    them are captured. `writer`: the server that wrote the current file. `contents`: the
    contents of the maps, one after another.
    """

    def __init__(
        self,
        is_captured: Callable[[TableName], bool],
        *,
        keeps_all_prepared: bool = False,
        may_be_merge_table: Callable[[TableName], bool] = lambda _: False,
    ) -> None:
        self._is_captured = is_captured
        self._may_be_merge_table = may_be_merge_table
        self._keeps_all_prepared = keeps_all_prepared
        self._is_preparing = False
        self._handling: Integers = np.zeros(64, np.int64)
        """For each map TAKEN, INSPECTED, or 0 if its rows are skipped (`ring`)."""
        self._numbers_by_content: dict[tuple[LogWriter, bytes], int] = {}
        self.writer = LogWriter()
        self.table_maps: list[TableMap] = []
        self.contents: npt.NDArray[np.uint8] = np.empty(1 << 16, np.uint8)
        self.entries: Integers = np.zeros((64, 3), np.int64)
        """For each map its offset and length in `contents`, and its handling."""
        self.ids: Integers = _empty_ids(1024)
        """A hash table with open addressing: table id, number of its map, and number of
        the last statement that had the map."""
        self._used_bytes = 0
        self._id_count = 0

    def add(self, table_map: TableMap) -> int:
        """Return the number of a map, a new one if no map has the same content."""
        content = table_map.raw[_NAMES_AT:]
        key = table_map.writer, content
        if key not in self._numbers_by_content:
            self._numbers_by_content[key] = len(self.table_maps)
            self._store(content, table_map.table)
            self.table_maps.append(table_map)
        return self._numbers_by_content[key]

    def bind(self, table_id: int, number: int) -> None:
        """Let a table id refer to a map from now on."""
        if self._id_count * 2 >= len(self.ids):
            used_slots = self.ids[self.ids[:, 0] != _UNUSED]
            self.ids = _empty_ids(2 * len(self.ids))
            for used_slot in used_slots:
                self.ids[self._slot_of(int(used_slot[0]))] = used_slot
        slot = self._slot_of(table_id)
        self._id_count += self.ids[slot, 0] == _UNUSED
        self.ids[slot] = table_id, number, _UNUSED

    def begin_file(self, writer: LogWriter) -> None:
        """Begin a log file that `writer` wrote, and forget all table ids: a restarted
        server counts them from the beginning."""
        self.writer = writer
        self.ids = _empty_ids(1024)
        self._id_count = 0

    def only_captured(self, block: Block) -> Block:
        """Return the block without the rows of tables that are not captured now."""
        is_taken = self._handling[block.events[:, MAP]] == TAKEN
        return block if is_taken.all() else block.subset(is_taken)

    def update_captured(self) -> None:
        """Call `is_captured` and `may_be_merge_table` again for every table."""
        for number, table_map in enumerate(self.table_maps):
            self._handling[number] = self._handling_of(table_map.table)
        self._update_entries()

    def _handling_of(self, table: TableName) -> int:
        if self._is_captured(table):
            return TAKEN
        return INSPECTED if self._may_be_merge_table(table) else 0

    def tables_of(self, statement: int) -> set[TableName]:
        """Return the tables that have a map in the statement with this number."""
        slots = self.ids[(self.ids[:, 0] != _UNUSED) & (self.ids[:, 2] == statement)]
        return {self.table_maps[int(number)].table for number in slots[:, 1]}

    def table_of(self, table_id: int) -> TableName:
        return self.table_maps[int(self.ids[self._slot_of(table_id), 1])].table

    def set_preparing(self, is_preparing: bool) -> None:
        """Set whether the next events belong to an XA transaction."""
        if self._keeps_all_prepared:
            self._is_preparing = is_preparing
            self._update_entries()

    def skip_table(self, table: TableName) -> None:
        """Skip the rows of a table's maps so far, until `update_captured` is called."""
        for number, table_map in enumerate(self.table_maps):
            if table_map.table == table:
                self._handling[number] = 0
        self._update_entries()

    def _update_entries(self) -> None:
        """Pass the handling on to `entries`, where the compiled loop reads it."""
        used = len(self.table_maps)
        self.entries[:used, 2] = TAKEN if self._is_preparing else self._handling[:used]

    def _slot_of(self, table_id: int) -> int:
        slot = table_id & len(self.ids) - 1
        while self.ids[slot, 0] not in (table_id, _UNUSED):
            slot = slot + 1 & len(self.ids) - 1
        return slot

    def _store(self, content: bytes, table: TableName) -> None:
        number, handling = len(self.table_maps), self._handling_of(table)
        begin, end = self._used_bytes, self._used_bytes + len(content)
        if end > len(self.contents):
            self.contents = np.concatenate([self.contents, np.empty(max(end, begin), np.uint8)])
        if number == len(self.entries):
            self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
            self._handling = np.concatenate([self._handling, np.zeros_like(self._handling)])
        self.contents[begin:end] = np.frombuffer(content, np.uint8)
        self.entries[number] = begin, len(content), TAKEN if self._is_preparing else handling
        self._handling[number] = handling
        self._used_bytes = end


def _empty_ids(size: int) -> Integers:
    ids = np.zeros((size, 3), np.int64)
    ids[:, 0] = _UNUSED
    return ids


MAX_STRING_BYTES: Final = 1 << 29
"""Most bytes of events in a portion: few enough for Arrow's 32-bit offsets even if text
grows when it is converted to UTF-8. A larger event is a portion of its own."""


def split_by_map(block: Block) -> Iterator[tuple[int, Integers, Block]]:
    """Yield for each table map its number, the indexes of its events in the block
    (ascending), and a block of these events. A table may have several maps."""
    maps = block.events[:, ring.MAP]
    if not len(maps):
        return
    if (maps == maps[0]).all():
        yield int(maps[0]), np.arange(len(maps)), block
        return
    order = np.argsort(maps, kind="stable")
    borders = np.flatnonzero(np.diff(maps[order])) + 1
    for indexes in np.split(order, borders):
        yield int(maps[indexes[0]]), indexes, block.subset(indexes)


def split_by_table(
    block: Block, tables: Sequence[TableMap]
) -> Iterator[tuple[TableName, Integers, Block]]:
    """Yield for each table its name, the indexes of its events in the block
    (ascending), and a block of these events. `tables`: the table maps by number."""
    parts_of: dict[TableName, list[tuple[Integers, Block]]] = {}
    for number, indexes, part in split_by_map(block):
        parts_of.setdefault(tables[number].table, []).append((indexes, part))
    for table, parts in parts_of.items():
        if len(parts) == 1:
            yield table, *parts[0]
        else:
            merged_indexes = np.sort(np.concatenate([indexes for indexes, _ in parts]))
            yield table, merged_indexes, block.subset(merged_indexes)


def split_portions(block: Block) -> Iterator[tuple[int, Block]]:
    """Yield portions of at most MAX_STRING_BYTES: the index of a portion's first event
    in the block, and a block of the portion's events."""
    totals = np.cumsum(block.events[:, ring.SIZE])
    first, bytes_before = 0, 0
    while first < len(totals):
        fitting = int(np.searchsorted(totals, bytes_before + MAX_STRING_BYTES, side="right"))
        end = max(fitting, first + 1)
        yield first, block.subset(slice(first, end))
        first, bytes_before = end, int(totals[end - 1])
