"""The table maps of a log: which rows belong to which table, and who wants them.

A server gives a table a new id whenever it opens it anew, and writes the whole map again
for each statement. Maps that say the same, whatever their id and flags, have one number here:
the flags of a foreign key's child come and go from statement to statement. A number says what
was seen first and nothing of the order of rows: one table may have several, in any order.
Servers of two versions mean different things by the same bytes: their maps have different numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pipeline.binlog.rows.table_map import TableMap
from pipeline.binlog.stream.description import LogWriter
from pipeline.binlog.stream.framing import HEADER
from pipeline.binlog.stream.ring import MAP, TAKEN, TOLD, Block, Integers
from pipeline.table import TableName

_BEHIND_FLAGS = HEADER.size + 6 + 2
"""Where a map's names begin: behind the header, its table's number and its flags."""

_UNUSED = -1


class TableMaps:
    """Every distinct table map of a log, numbered from 0. `wants`: whether a table's rows are
    to come out; `keeps`: whether the rows of every table are taken while a transaction may be
    prepared, since which of them are wanted is only known where it is committed; `elsewhere`:
    whether the rows of a table that is not wanted may be rows of others, whose maps stand beside
    its own (MERGE); `writer`: who wrote the log from here on."""

    def __init__(
        self,
        wants: Callable[[TableName], bool],
        *,
        keeps: bool = False,
        elsewhere: Callable[[TableName], bool] = lambda _: False,
    ) -> None:
        self._wants = wants
        self._elsewhere = elsewhere
        self._keeps = keeps
        self._preparing = False
        self._asked: Integers = np.zeros(64, np.int64)
        """Per map TAKEN, TOLD, or 0 for rows that are passed over."""
        self._numbers: dict[tuple[LogWriter, bytes], int] = {}
        self.writer = LogWriter()
        self.known: list[TableMap] = []
        self.bytes: npt.NDArray[np.uint8] = np.empty(1 << 16, np.uint8)
        self.places: Integers = np.zeros((64, 3), np.int64)
        self.ids: Integers = _empty_ids(1024)
        self._used = 0
        self._ids = 0

    def add(self, table_map: TableMap) -> int:
        """The number of a map; a new one if none says the same."""
        said = table_map.raw[_BEHIND_FLAGS:]
        key = table_map.writer, said
        if key not in self._numbers:
            self._numbers[key] = len(self.known)
            self._place(said, table_map.table)
            self.known.append(table_map)
        return self._numbers[key]

    def bind(self, table_id: int, number: int) -> None:
        """From now on the id means that map, in the statements that repeat it."""
        if self._ids * 2 >= len(self.ids):
            bound = self.ids[self.ids[:, 0] != _UNUSED]
            self.ids = _empty_ids(2 * len(self.ids))
            for entry in bound:
                self.ids[self._entry(int(entry[0]))] = entry
        at = self._entry(table_id)
        self._ids += self.ids[at, 0] == _UNUSED
        self.ids[at] = table_id, number, _UNUSED

    def begin_file(self, writer: LogWriter) -> None:
        """A file begins that `writer` wrote. A server that started again counts its ids from the
        beginning."""
        self.writer = writer
        self.ids = _empty_ids(1024)
        self._ids = 0

    def wanted(self, block: Block) -> Block:
        """The block without the rows that nobody wants now."""
        kept = self._asked[block.events[:, MAP]] == TAKEN
        return block if kept.all() else Block(block.data, block.events[kept])

    def ask_again(self) -> None:
        """Other tables' rows may be wanted than before."""
        for number, known in enumerate(self.known):
            self._asked[number] = self._ask(known.table)
        self._tell()

    def _ask(self, table: TableName) -> int:
        return TAKEN if self._wants(table) else TOLD if self._elsewhere(table) else 0

    def beside(self, statement: int) -> set[TableName]:
        bound = self.ids[(self.ids[:, 0] != _UNUSED) & (self.ids[:, 2] == statement)]
        return {self.known[int(number)].table for number in bound[:, 1]}

    def of(self, table_id: int) -> TableName:
        return self.known[int(self.ids[self._entry(table_id), 1])].table

    def prepares(self, preparing: bool) -> None:
        """Whether what comes is part of a transaction that may be prepared."""
        if self._keeps:
            self._preparing = preparing
            self._tell()

    def drop(self, table: TableName) -> None:
        for number, known in enumerate(self.known):
            if known.table == table:
                self._asked[number] = 0
        self._tell()

    def _tell(self) -> None:
        """The compiled loop reads from the places whether it takes a table's rows."""
        used = len(self.known)
        self.places[:used, 2] = TAKEN if self._preparing else self._asked[:used]

    def _entry(self, table_id: int) -> int:
        at = table_id & len(self.ids) - 1
        while self.ids[at, 0] not in (table_id, _UNUSED):
            at = at + 1 & len(self.ids) - 1
        return at

    def _place(self, said: bytes, table: TableName) -> None:
        number, asked = len(self.known), self._ask(table)
        begin, end = self._used, self._used + len(said)
        if end > len(self.bytes):
            self.bytes = np.concatenate([self.bytes, np.empty(max(end, begin), np.uint8)])
        if number == len(self.places):
            self.places = np.concatenate([self.places, np.zeros_like(self.places)])
            self._asked = np.concatenate([self._asked, np.zeros_like(self._asked)])
        self.bytes[begin:end] = np.frombuffer(said, np.uint8)
        self.places[number] = begin, len(said), TAKEN if self._preparing else asked
        self._asked[number] = asked
        self._used = end


def _empty_ids(size: int) -> Integers:
    ids = np.zeros((size, 3), np.int64)
    ids[:, 0] = _UNUSED
    return ids
