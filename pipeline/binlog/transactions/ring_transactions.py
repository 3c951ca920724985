"""The transactions in the arrays of the compiled loop (`loop`): first the complete ones
that are not handed out yet, then the open one, which may have rows in a file.

A transaction with rows in a file is a group of its own: the loop stops at its end, so
that the file never has rows of another transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.control import Query
from lockstep.pipeline.binlog.stream.framing import Event, damaged
from lockstep.pipeline.binlog.stream.ring import Block, MergeTableRows, TransactionGroup, pack_block
from lockstep.pipeline.binlog.transactions.identity import (
    IDENTITY_COLUMNS,
    membership,
    read_identity,
)
from lockstep.pipeline.binlog.transactions.loop import LogPlace, Loop
from lockstep.pipeline.binlog.transactions.spill import Spill
from lockstep.pipeline.ports.segments import Spool
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates


class RingTransactions:
    """The transactions that were read and not yet freed, in the order of the log.
    `gtid_sources`: the `uuid:tag` of all tagged GTIDs so far, to which the index refers
    by number. The register `alone` is 1 if a transaction has rows in a file."""

    def __init__(self, loop: Loop, log: LogPlace, spool: Spool) -> None:
        self.gtid_sources: list[str] = []
        self._loop = loop
        self._registers = loop.registers
        self._log = log
        self._spool = spool
        self._statements: list[tuple[int, Query]] = []
        """Statements that may change a structure or were logged instead of rows, each
        with its transaction's row in the index."""
        self._merge_table_rows: list[tuple[int, MergeTableRows]] = []
        """Changes through MERGE tables, each with its transaction's row."""
        self._prepared_rows: Iterator[Block] | None = None
        self._spill: Spill | None = None
        self._savepoints: dict[str, _Savepoint] = {}
        self._savepoints_of = (-1, -1)
        """FILE and BEGIN_OFFSET of the transaction that has the savepoints."""

    # -- the complete transactions -----------------------------------------------------

    @property
    def count(self) -> int:
        """Number of complete transactions."""
        return self._registers.transactions

    @property
    def event_bytes(self) -> int:
        """Size of the complete transactions' row events in the ring."""
        return self._registers.get - self._registers.ack

    @property
    def is_full(self) -> bool:
        """True if the index has no row for one more transaction."""
        return self.count + 1 >= len(self._loop.ring.transactions)

    @property
    def needs_own_group(self) -> bool:
        """True if the newest complete transaction has to be a group of its own."""
        if self._prepared_rows is not None or (self.count and self._registers.alone):
            return True
        return any(transaction == self.count - 1 for transaction, _ in self._statements)

    def complete(self, last: Event, size: int, blocks: Iterator[Block] | None = None) -> None:
        """Complete the open transaction. `size`: bytes of its last event in the log.
        `blocks`: its rows, if it commits a prepared XA transaction."""
        self._prepared_rows = blocks
        self._loop.finish(last.timestamp, size, last.crc32)

    def end_payload(self, payload: Event) -> None:
        """Set the end of the newest complete transaction to the end of its payload in
        the log."""
        size = payload.size
        self._registers.offset += size
        offset = self._registers.offset
        row = self._loop.ring.transactions[self.count - 1]
        row[columns.END_OFFSET], row[columns.LAST_OFFSET] = offset, offset - size
        row[columns.LAST_SIZE], row[columns.LAST_CRC] = size, payload.crc32
        row[columns.LOG_BYTES] += size
        self._registers.count_transaction(int(row[columns.LOG_BYTES]))

    def group(self) -> TransactionGroup:
        """Return the complete transactions, whose memory is valid until `free`."""
        count, events = self.count, self._registers.complete_events
        is_from_file = True
        if self._spill is not None and self._registers.alone:
            blocks = self._blocks_from_file(self._spill)
        elif self._prepared_rows is not None:
            blocks = self._prepared_rows
        else:
            blocks = iter((self._loop.ring.block(0, events),) if events else ())
            is_from_file = False
        return TransactionGroup(
            transactions=self._loop.ring.transactions[:count].copy(),
            files=self._log.files,
            gtid_sources=self.gtid_sources,
            statements=_first_noted(self._statements, count),
            blocks=map(self._loop.maps.only_captured, blocks),
            texts=self._loop.texts.copy_of_first(self._registers, count),
            is_from_file=is_from_file,
            merge_table_rows=_first_noted(self._merge_table_rows, count),
        )

    def free(self) -> None:
        """Free the room of the complete transactions and move the open one to the
        beginning."""
        registers, ring = self._registers, self._loop.ring
        count, complete, end = self.count, registers.complete_events, registers.events
        if self._spill is not None and registers.alone:
            self._spill.file.close()
            self._spill = None
        self._prepared_rows = None
        ring.events[: end - complete] = ring.events[complete:end]
        ring.events[: end - complete, columns.TRANSACTION] -= count
        if count:
            ring.transactions[0] = ring.transactions[count]
            ring.transactions[0, columns.FIRST_EVENT] = 0
        self._loop.texts.drop_first(registers, count)
        self._statements = _without_first(self._statements, count)
        self._merge_table_rows = _without_first(self._merge_table_rows, count)
        registers.free_complete()

    # -- the open transaction: its identity and its statements -------------------------

    def begin(self, event: Event) -> None:
        """Open a transaction with its GTID event."""
        identity = read_identity(event, self.gtid_sources)
        row = self._loop.begin()
        for column, value in zip(IDENTITY_COLUMNS, identity, strict=True):
            row[column] = value
        row[columns.ORIGIN_SERVER] = event.server_id

    def is_open_in(self, gtids: GtidSet) -> bool:
        """Return whether `gtids` has the open transaction's GTID."""
        row = self._loop.open_row.reshape(1, -1)
        return bool(membership(row, self.gtid_sources, gtids)[0])

    def keep_statement(self, query: Query) -> None:
        """Keep a statement that may change a structure, or that was logged instead of
        rows."""
        self._statements.append((self.count, query))

    def note_merge_table(self, table_id: int) -> None:
        """Note that rows of this MERGE table may be stored in the other tables of its
        statement. A rollback does not remove the note, because those are MyISAM tables,
        which have no transactions and keep the rows."""
        maps = self._loop.maps
        table = maps.table_of(table_id)
        tables = frozenset(maps.tables_of(self._registers.statement) - {table})
        note = self.count, MergeTableRows(table, tables)
        if tables and note not in self._merge_table_rows:
            self._merge_table_rows.append(note)

    # -- the open transaction: its rows, and rolling them back --------------------------

    def set_savepoint(self, name: str) -> None:
        """Set a savepoint; an earlier one of the same name is replaced."""
        registers, texts = self._registers, self._loop.texts
        savepoint = _Savepoint(
            block_count=self._spill.block_count if self._spill else 0,
            event_count=registers.events - registers.complete_events,
            put=registers.put,
            text_count=registers.texts - texts.count_before(registers, self.count),
            text_bytes=int(self._loop.open_row[columns.TEXT_BYTES]),
        )
        savepoints = self._open_savepoints()
        savepoints.pop(name, None)
        savepoints[name] = savepoint

    def roll_back_to(self, name: str, at: Coordinates) -> None:
        """Drop the rows, texts and savepoints after a savepoint. DamagedEvent if the
        transaction does not have it. `at`: the place of the ROLLBACK TO in the log."""
        savepoints = self._open_savepoints()
        if name not in savepoints:
            raise damaged(
                f"a transaction is rolled back to the savepoint {name!r}, which it does not have",
                at,
            )
        while next(reversed(savepoints)) != name:
            savepoints.popitem()
        savepoint = savepoints[name]
        self._cut_texts(savepoint.text_count, savepoint.text_bytes)
        if self._spill is not None and savepoint.block_count < self._spill.block_count:
            self._spill.truncate(savepoint.block_count, savepoint.event_count)
            self._registers.truncate_open()
        else:
            # If no event precedes the savepoint, its `put` may be outdated: when the
            # ring is empty, the loop skips the bytes before the ring's end. Without
            # `put`, the ring goes back to the end of the complete transactions.
            self._registers.truncate_open(
                savepoint.event_count, savepoint.put if savepoint.event_count else None
            )

    def roll_back(self) -> None:
        """Drop the open transaction's rows and texts; it stays open."""
        self._cut_texts(0, 0)
        self._registers.truncate_open()
        if self._spill is not None:
            self._spill.file.close()
        self._forget_open()

    def take_open(self) -> Block | Spill | None:
        """Remove the row events of the open transaction and return them; None if it has
        none. The transaction stays open, and keeps its texts."""
        first, end = self._registers.complete_events, self._registers.events
        block = pack_block(self._loop.ring.block(first, end)) if end > first else None
        if self._spill is not None and block is not None:
            self._spill.add(block, self._loop.maps)
        row_events = self._spill or block
        self._registers.truncate_open()
        self._forget_open()
        return row_events

    def _open_savepoints(self) -> dict[str, _Savepoint]:
        """Return the open transaction's savepoints by name, in the order of the log.
        Savepoints of an earlier transaction are cleared here, because the loop does not
        report its end."""
        row = self._loop.open_row
        transaction = int(row[columns.FILE]), int(row[columns.BEGIN_OFFSET])
        if transaction != self._savepoints_of:
            self._savepoints_of = transaction
            self._savepoints.clear()
        return self._savepoints

    def _cut_texts(self, kept_count: int, kept_bytes: int) -> None:
        self._loop.texts.truncate(self._registers, self.count, kept_count)
        self._loop.open_row[columns.TEXT_BYTES] = kept_bytes

    def _forget_open(self) -> None:
        """Forget the open transaction's file and savepoints, and its statements that
        may change a structure. Statements that were logged instead of rows stay: they
        may have changed tables of an engine without transactions, which a rollback does
        not undo."""
        self._spill = None
        self._savepoints.clear()
        self._statements = [
            (row, query)
            for row, query in self._statements
            if row < self.count or query.replaces_rows
        ]
        self._registers.alone = 0

    # -- the open transaction: its file ------------------------------------------------

    def spill(self) -> Spill:
        """Move the open transaction's row events to its file, and return the file. To
        be called only while the ring has no complete transaction."""
        if self._spill is None:
            self._spill = Spill(self._spool.create_scratch_file())
        self._spill_ring(self._spill)
        self._registers.empty_ring()
        return self._spill

    def spill_rows(self, rows: Block) -> None:
        """Append one event, which is too large for the ring, to the open transaction's
        file."""
        self.spill().add(rows, self._loop.maps)

    def _spill_ring(self, spill: Spill) -> None:
        if events := self._registers.events:
            spill.add(self._loop.ring.block(0, events), self._loop.maps)

    def _blocks_from_file(self, spill: Spill) -> Iterator[Block]:
        self._spill_ring(spill)
        for block in spill.read():
            block.events[:, columns.TRANSACTION] = 0
            yield block


Note = TypeVar("Note")


def _first_noted(notes: Sequence[tuple[int, Note]], count: int) -> tuple[tuple[int, Note], ...]:
    """Return the notes on the first `count` transactions of the index."""
    return tuple((row, note) for row, note in notes if row < count)


def _without_first(notes: Sequence[tuple[int, Note]], count: int) -> list[tuple[int, Note]]:
    """Return the notes on the transactions after the first `count`, with the rows that
    these have once the first are removed."""
    return [(row - count, note) for row, note in notes if row >= count]


@dataclass(frozen=True, slots=True)
class _Savepoint:
    """A savepoint of the open transaction. `block_count`: blocks before the savepoint
    in the transaction's file. `event_count`: events before it in the ring.
    `text_count`, `text_bytes`: texts before it, and their size. `put`: the register
    PUT at the savepoint, which says how far the ring is written."""

    block_count: int
    event_count: int
    put: int
    text_count: int
    text_bytes: int
