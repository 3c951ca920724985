"""Runs of whole transactions → how much of what they hold; nothing of it is kept.

Belongs here: rows, events and bytes per table, statements, the largest transaction, tables
that a capture would set aside. Does not: reading the log (`reading`), decoding values,
writing anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.batch import RowCounts, SetAside
from pipeline.binlog import ring as columns
from pipeline.binlog.buffer import TransactionBuffer
from pipeline.binlog.control import Query
from pipeline.binlog.images import AFTER, DELETE, INSERT
from pipeline.binlog.ring import Block, Integers, Run
from pipeline.binlog.rows import TableDecoder, by_map
from pipeline.binlog.table_map import read_layouts, read_structure
from pipeline.binlog.unkept import UnkeptSpool
from pipeline.errors import TableError
from pipeline.ports import Spool
from pipeline.position import Coordinates
from pipeline.runs.captured import CapturedTables
from pipeline.schema.ddl import Creates, Passed, first_words, read_statement, why_it_stops
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName, TableStructure
from pipeline.tables import TablePatterns

STATEMENTS: Final = 200
"""So many are kept; more are counted."""


@dataclass(frozen=True, slots=True)
class TableTally:
    """Rows by operation, row events, and the bytes of those (before any compression)."""

    counts: RowCounts = field(default_factory=RowCounts)
    events: int = 0
    size: int = 0

    def __add__(self, other: TableTally) -> TableTally:
        return TableTally(
            self.counts + other.counts, self.events + other.events, self.size + other.size
        )


@dataclass(frozen=True, slots=True)
class StatementSeen:
    """A statement in the log: where its transaction begins, how it begins without its
    literals, and what a run does there. `stops`: it ends the run with a refusal."""

    at: Coordinates
    text: str
    effect: str
    stops: bool


@dataclass(frozen=True, slots=True)
class Largest:
    """The transaction with the most bytes of log; `rows` of captured tables."""

    at: Coordinates
    log_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a block holds: per table, and per transaction of its run."""

    tables: dict[TableName, TableTally]
    rows: Integers


class Tally:
    """Takes the runs of one buffer as a segmenter does. `tables` says what a capture would
    set aside; it is asked until a statement stops the run, which changes structures."""

    def __init__(self, tables: CapturedTables, patterns: TablePatterns) -> None:
        self._captured = tables
        self._patterns = patterns
        self._buffer: TransactionBuffer | None = None
        self._decoders: dict[int, tuple[TableStructure, TableDecoder]] = {}
        self._stopped = False
        self._out: list[_Seen] = []
        self.tables: dict[TableName, TableTally] = {}
        self.set_aside: list[SetAside] = []
        self.statements: list[StatementSeen] = []
        self.more_statements = 0
        self.largest: Largest | None = None
        self.foreign = 0
        """Transactions that change no captured table …"""
        self.foreign_bytes = 0
        """… and their bytes of log."""
        self.changes = 0
        """Images to be merged; none, whatever was read."""

    @property
    def rows(self) -> int:
        return sum(one.counts.total for one in self.tables.values())

    def spool(self, recorded: Spool) -> UnkeptSpool[_Seen]:
        """Where the buffer puts transactions that do not fit."""
        return UnkeptSpool(recorded, self._spilled, self._out.append)

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose runs are put."""
        self._buffer = buffer

    def wanted(self, table: TableName) -> bool:
        return self._captured.wanted(table)

    def created(self, table: TableName) -> None:
        self._captured.created(table)

    def put(self, run: Run) -> None:
        for number, query in run.statements:
            self._take_statement(query, _begin(run, number))
        rows = np.zeros(len(run.transactions), np.int64)
        ours = np.zeros(len(run.transactions), np.bool_)
        for block in run.blocks:
            ours[block.events[:, columns.TRANSACTION]] = True
            self._add(self._look(block, run), rows)
        for seen in self._out:
            ours[0] = True  # what comes out of a file is a run of its own
            self._add(seen, rows)
        self._out.clear()
        self._take_transactions(run, rows, ours)

    # -- statements -----------------------------------------------------------------

    def _take_statement(self, query: Query, at: Coordinates) -> None:
        statement = read_statement(query.text, query.database)
        why = why_it_stops(statement, self._patterns)
        if why is not None:
            effect = f"stops a run: {why} is not followed yet"
        elif isinstance(statement, Creates) and self._patterns.matches(statement.table):
            effect = f"{statement.table} is captured from its first row on"
        elif isinstance(statement, Passed):
            effect = "passed"
        else:
            effect = "passed: no captured table"
        self._stopped = self._stopped or why is not None
        if len(self.statements) < STATEMENTS:
            text = first_words(query.text)
            self.statements.append(StatementSeen(at, text, effect, why is not None))
        else:
            self.more_statements += 1

    # -- rows -----------------------------------------------------------------------

    def _spilled(self, block: Block) -> _Seen:
        """A block on its way into a file: all of one transaction, which begins where the
        last one handed out ends."""
        return self._seen(block, 1, lambda _: self._following.at)

    def _look(self, block: Block, run: Run) -> _Seen:
        return self._seen(block, len(run.transactions), lambda number: _begin(run, number))

    def _seen(self, block: Block, count: int, begin: Callable[[int], Coordinates]) -> _Seen:
        """`begin`: where the transaction of a number begins."""
        tables: dict[TableName, TableTally] = {}
        rows = np.zeros(count, np.int64)
        for number, _, part in by_map(block):
            name = self._following.maps.known[number].table
            if not self._captured.wanted(name):
                continue
            of = np.minimum(part.events[:, columns.TRANSACTION], count - 1)
            at = begin(int(of[0]))
            try:
                counted = self._decoder(number, at).count(part)
                self._require_complete(number)
            except TableError as error:
                self.set_aside.append(self._captured.put_aside(name, at, error))
                self._following.maps.drop(name)
                continue
            np.add.at(rows, of, counted.rows)
            found = TableTally(
                _row_counts(counted.kinds),
                len(part.events),
                int(part.events[:, columns.SIZE].sum()),
            )
            tables[name] = tables.get(name, TableTally()) + found
        return _Seen(tables, rows)

    def _decoder(self, number: int, at: Coordinates) -> TableDecoder:
        if number not in self._decoders:
            buffer = self._following
            raw = buffer.maps.known[number].raw
            flavour = buffer.description.flavour if buffer.description else "mysql"
            structure = read_structure(raw, flavour)
            layouts = read_layouts(raw, flavour)
            decoder = TableDecoder(structure, layouts, arrow_schema(structure))
            self._decoders[number] = structure, decoder
        structure, decoder = self._decoders[number]
        if not self._stopped:
            self._captured.opened(structure, at)
        return decoder

    def _require_complete(self, number: int) -> None:
        if not self._decoders[number][1].complete:
            raise TableError(
                "its row images are incomplete (binlog_row_image is not FULL in some session)",
                hint="set binlog_row_image=FULL for every session that writes this table",
            )

    def _add(self, seen: _Seen, rows: Integers) -> None:
        rows += seen.rows
        for table, found in seen.tables.items():
            self.tables[table] = self.tables.get(table, TableTally()) + found

    def _take_transactions(self, run: Run, rows: Integers, ours: npt.NDArray[np.bool_]) -> None:
        sizes = run.transactions[:, columns.LOG_BYTES]
        self.foreign += int((~ours).sum())
        self.foreign_bytes += int(sizes[~ours].sum())
        most = int(np.argmax(sizes))
        if self.largest is None or sizes[most] > self.largest.log_bytes:
            self.largest = Largest(_begin(run, most), int(sizes[most]), int(rows[most]))

    @property
    def _following(self) -> TransactionBuffer:
        if self._buffer is None:
            raise RuntimeError("follow a buffer first")
        return self._buffer


def _begin(run: Run, number: int) -> Coordinates:
    row = run.transactions[number]
    return Coordinates(run.files[row[columns.FILE]], int(row[columns.BEGIN_OFFSET]))


def _row_counts(kinds: Integers) -> RowCounts:
    return RowCounts(int(kinds[INSERT]), int(kinds[AFTER]), int(kinds[DELETE]))
