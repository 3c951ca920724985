"""Runs of whole transactions → how much of what they hold; nothing of it is kept.

Belongs here: rows, events and bytes per table, statements, the largest transaction, tables
that a capture would quarantine. Does not: reading the log (`log_reader`), decoding values,
writing anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.binlog.rows.images import AFTER, DELETE, INSERT
from pipeline.binlog.rows.parts import by_map, by_table
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.binlog.transactions.unkept import UnkeptSpool
from pipeline.errors import TableError
from pipeline.position import Coordinates
from pipeline.row_images import CHANGE_TYPES
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.image_decoder import Decoding
from pipeline.runs.cures import release_hint
from pipeline.schema.consequences import Action, Consequence, consequences
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.shown import first_words
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import Quarantine

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
    literals, and what a run does there. `stops_the_run`: it ends the run with a refusal."""

    position: Coordinates
    text: str
    effect: str
    stops_the_run: bool


@dataclass(frozen=True, slots=True)
class Largest:
    """The transaction with the most bytes of log; `rows` of captured tables."""

    position: Coordinates
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a block holds: per table, and per transaction of its run."""

    tables: dict[TableName, TableTally]
    rows: Integers


class LogTally:
    """Takes the runs of one buffer as a segmenter does. The basis says what a capture would
    quarantine, and by which structures its rows would be read."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._captured = basis.tables
        self._patterns = basis.work.source.patterns
        self._policies = basis.work.source.lake
        self._decoding = Decoding(basis.structures)
        self.rereads: dict[TableName, str] = {}
        """Tables that would be read from the source, and why."""
        self.replaced: set[TableName] = set()
        """Tables whose rows of before would not count any more."""
        self._out: list[_Seen] = []
        self.tables: dict[TableName, TableTally] = {}
        self.quarantined: list[Quarantine] = []
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
        return sum(table.counts.total for table in self.tables.values())

    def keeping_nothing(self) -> Basis:
        """The basis of a reading whose transactions are counted where they do not fit."""
        work = self._basis.work
        spool = UnkeptSpool(work.spool, self._spilled, self._out.append)
        return replace(self._basis, work=replace(work, spool=spool))

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose runs are put."""
        self._decoding.follow(buffer)

    def wanted(self, table: TableName) -> bool:
        return self._captured.wanted(table)

    def watches(self, table: TableName) -> bool:
        """Nothing is counted of a table that is not captured."""
        return False

    def reach(self, at: Coordinates | None) -> None:
        """Nothing that is read from the source is part of a plan."""

    def changed(self, logged: LoggedStatement, followed: FollowedStatement) -> None:
        """A statement of the log, and what it would do."""
        found = consequences(followed, self._policies, logged)
        told = []
        for table, consequence in found.items():
            if not self._patterns.matches(table) or not self._captured.wanted(table):
                continue
            told.append(f"{table}: {consequence.action}, {consequence.reason}")
            self._tell(table, consequence, logged)
        why = followed.not_understood
        stops = why is not None and why.may_touch is None
        if len(self.statements) < STATEMENTS:
            effect = "; ".join(told) or ("passed: no captured table" if found else "passed")
            if stops:
                effect = "stops a run: it is not understood and may change any table"
            text = first_words(logged.text)
            self.statements.append(StatementSeen(logged.begin, text, effect, stops))
        else:
            self.more_statements += 1

    def _tell(self, table: TableName, consequence: Consequence, logged: LoggedStatement) -> None:
        if consequence.action is Action.QUARANTINED:
            self._quarantine(
                table, logged.begin, TableError(consequence.reason, hint=release_hint(table))
            )
        elif consequence.action in (Action.CREATE, Action.EMPTY):
            self.replaced.add(table)
        elif consequence.action is Action.REREAD:
            self._reread(table, consequence.reason)

    def _reread(self, table: TableName, reason: str) -> None:
        self.replaced.add(table)
        self.rereads[table] = reason
        self._decoding.buffer.maps.drop(table)

    def reached(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """A table that a statement may have changed whose rows are not in the log."""
        if self._patterns.matches(table):
            self._quarantine(table, at, error)

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        """A table that would be read from the source."""
        if self._patterns.matches(table) and self._captured.wanted(table):
            self._reread(table, reason)

    def put(self, group: TransactionGroup) -> None:
        rows = np.zeros(len(group.transactions), np.int64)
        ours = np.zeros(len(group.transactions), np.bool_)
        for block in group.blocks:
            ours[block.events[:, columns.TRANSACTION]] = True
            self._add(self._look(block, group), rows)
        for seen in self._out:
            ours[0] = True  # what comes out of a file is a run of its own
            self._add(seen, rows)
        self._out.clear()
        self._take_transactions(group, rows, ours)

    # -- rows -----------------------------------------------------------------------

    def _spilled(self, block: Block) -> _Seen:
        """A block on its way into a file: all of one transaction, which begins where the
        last one handed out ends."""
        return self._seen(block, 1, lambda _: self._decoding.buffer.at)

    def _look(self, block: Block, group: TransactionGroup) -> _Seen:
        return self._seen(block, len(group.transactions), group.begin)

    def _seen(self, block: Block, count: int, begin: Callable[[int], Coordinates]) -> _Seen:
        """`begin`: where the transaction of a number begins."""
        tables: dict[TableName, TableTally] = {}
        rows = np.zeros(count, np.int64)
        for name, _, part in by_table(block, self._decoding.buffer.maps.known):
            if not self._captured.wanted(name):
                continue
            of = np.minimum(part.events[:, columns.TRANSACTION], count - 1)
            at = begin(int(of[0]))
            try:
                counted = [
                    (which, self._decoder(number, at).count(events))
                    for number, which, events in by_map(part)
                ]
            except TableError as error:
                self._quarantine(name, at, error)
                continue
            for which, one in counted:
                np.add.at(rows, of[which], one.rows)
            kinds = sum((one.kinds for _, one in counted), np.zeros(len(CHANGE_TYPES), np.int64))
            size = int(part.events[:, columns.SIZE].sum())
            tables[name] = TableTally(_row_counts(kinds), len(part.events), size)
        return _Seen(tables, rows)

    def _decoder(self, number: int, at: Coordinates) -> TableDecoder:
        version, decoder = self._decoding.decoder(number, at)
        self._captured.opened(version, at)
        return decoder

    def _quarantine(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self.quarantined.append(self._captured.quarantine(table, at, error))
        self._decoding.buffer.maps.drop(table)

    def _add(self, seen: _Seen, rows: Integers) -> None:
        rows += seen.rows
        for table, tally in seen.tables.items():
            self.tables[table] = self.tables.get(table, TableTally()) + tally

    def _take_transactions(
        self, group: TransactionGroup, rows: Integers, ours: npt.NDArray[np.bool_]
    ) -> None:
        sizes = group.transactions[:, columns.LOG_BYTES]
        self.foreign += int((~ours).sum())
        self.foreign_bytes += int(sizes[~ours].sum())
        most = int(np.argmax(sizes))
        if self.largest is None or sizes[most] > self.largest.bytes:
            self.largest = Largest(group.begin(most), int(sizes[most]), int(rows[most]))


def _row_counts(kinds: Integers) -> RowCounts:
    return RowCounts(int(kinds[INSERT]), int(kinds[AFTER]), int(kinds[DELETE]))
