"""The transaction that is open: the tail of the arrays, and of it what went into a file.

Belongs here: what is done to it before its end: its identity, savepoints, the file for what the
ring has no room for, its rows taken back or taken away. Does not: row events, which the compiled
loop adds by itself; what becomes of it when it is complete (`complete_transactions`).

A transaction that is in a file stays this one's until it is done with: it is complete alone, so
that no other is open meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.control import Query
from pipeline.binlog.stream.framing import Event
from pipeline.binlog.stream.ring import Block, RowsElsewhere, packed
from pipeline.binlog.transactions.identity import IDENTITY, members, read_identity
from pipeline.binlog.transactions.loop import Loop
from pipeline.binlog.transactions.spill import Spill
from pipeline.binlog.transactions.statements import Statements
from pipeline.errors import DamagedEvent
from pipeline.gtid import GtidSet
from pipeline.ports.spool import Spool
from pipeline.position import Coordinates


class OpenTransaction:
    """Behind the complete ones. `sources`: the `uuid:tag` of all tagged GTIDs so far, in which
    the index counts."""

    def __init__(self, loop: Loop, statements: Statements, spool: Spool) -> None:
        self.sources: list[str] = []
        self._loop = loop
        self._registers = loop.registers
        self._statements = statements
        self._spool = spool
        self._spill: Spill | None = None
        self._savepoints = Savepoints()

    # -- who it is, and what it has beside rows ----------------------------------------

    def begin(self, event: Event) -> None:
        """Open one whose identity the loop does not read."""
        identity = read_identity(event, self.sources, self._registers.server_id)
        row = self._loop.begin()
        for column, value in zip(IDENTITY, identity, strict=True):
            row[column] = value
        row[columns.SERVER] = event.server_id

    def is_in(self, gtids: GtidSet) -> bool:
        """Whether it is one of the set."""
        row = self._loop.open_row.reshape(1, -1)
        return bool(members(row, self.sources, gtids)[0])

    def keep(self, query: Query) -> None:
        """A statement that may change a structure is part of it."""
        self._statements.keep(self._loop.complete, query)

    def tell(self, table_id: int) -> None:
        """Rows of that table may be those of the others whose maps stand in its statement."""
        maps = self._loop.maps
        table = maps.of(table_id)
        others = frozenset(maps.beside(self._registers.statement) - {table})
        if others:
            self._statements.tell(self._loop.complete, RowsElsewhere(table, others))

    def leave(self, size: int) -> None:
        """An event of so many bytes, whose content the loop took, counts as its own."""
        self._loop.open_row[columns.LOG_BYTES] += size

    # -- its rows, back to a savepoint or all -------------------------------------------

    def mark(self, name: str) -> None:
        """A savepoint; one of the same name moves here."""
        registers, texts = self._registers, self._loop.texts
        place = SavedPlace(
            blocks=self._spill.blocks if self._spill else 0,
            events=registers.events - registers.complete_events,
            put=registers.put,
            texts=registers.texts - texts.behind(registers, self._loop.complete),
            text_bytes=int(self._loop.open_row[columns.TEXT_BYTES]),
        )
        self._savepoints.put(self._which, name, place)

    def drop_to(self, name: str, at: Coordinates) -> None:
        """Forget what came after the savepoint, savepoints too; DamagedEvent if there was
        none. `at`: where the log says so."""
        mark = self._savepoints.back_to(self._which, name)
        if mark is None:
            raise DamagedEvent(
                f"a transaction is rolled back to a savepoint {name!r} that it does not have, "
                f"at {at}",
                hint="it was not recorded; look at that place with mysqlbinlog",
            )
        self._cut_texts(mark.texts, mark.text_bytes)
        if self._spill is not None and mark.blocks < self._spill.blocks:
            self._spill.cut(mark.blocks, mark.events)
            self._registers.cut_open()
        else:
            # Without events before it, the ring's sequence may have left a gap since.
            self._registers.cut_open(mark.events, mark.put if mark.events else None)

    def drop(self) -> None:
        """Forget its events, and its texts; it stays open."""
        self._cut_texts(0, 0)
        self._registers.cut_open()
        if self._spill is not None:
            self._spill.file.close()
        self._forget()

    def take(self) -> Block | Spill | None:
        """Its events, to be kept elsewhere; it stays open, without. Its texts stay: it is the
        transaction that the log has them in."""
        first, end = self._registers.complete_events, self._registers.events
        block = packed(self._loop.ring.block(first, end)) if end > first else None
        if self._spill is not None and block is not None:
            self._spill.add(block, self._loop.maps)
        taken = self._spill or block
        self._registers.cut_open()
        self._forget()
        return taken

    @property
    def _which(self) -> tuple[int, int]:
        """Which transaction it is: where it begins."""
        row = self._loop.open_row
        return int(row[columns.FILE]), int(row[columns.BEGIN_OFFSET])

    def _cut_texts(self, texts: int, size: int) -> None:
        self._loop.texts.cut(self._registers, self._loop.complete, texts)
        self._loop.open_row[columns.TEXT_BYTES] = size

    def _forget(self) -> None:
        self._spill = None
        self._savepoints.clear()
        self._statements.cut(self._loop.complete)
        self._registers.join_others()

    # -- its file ----------------------------------------------------------------------

    def spill(self) -> None:
        """Move its events to a file; only when no other transaction is complete."""
        if self._spill is None:
            self._spill = Spill(self._spool.scratch())
        self._spill_ring(self._spill)
        self._registers.empty_ring()

    def spill_rows(self, rows: Block) -> None:
        """Put one event, too large for the ring, behind what is in the file."""
        self.spill()
        assert self._spill is not None, "spill makes one"
        self._spill.add(rows, self._loop.maps)

    def _spill_ring(self, spill: Spill) -> None:
        if events := self._registers.events:
            spill.add(self._loop.ring.block(0, events), self._loop.maps)

    def completed(self) -> Iterator[Block] | None:
        """All events of the one that came to its end, if some are in a file; to be read once."""
        if self._spill is None or not self._registers.alone:
            return None
        return self._from_file(self._spill)

    def _from_file(self, spill: Spill) -> Iterator[Block]:
        self._spill_ring(spill)
        for block in spill.read():
            block.events[:, columns.TRANSACTION] = 0
            yield block
        spill.file.close()

    def discard_completed(self) -> None:
        """Nobody wants the one that came to its end."""
        if self._spill is not None and self._registers.alone:
            self._spill.file.close()

    def release_completed(self) -> None:
        """The one that came to its end is done with."""
        if self._registers.alone:
            self._spill = None


@dataclass(frozen=True, slots=True)
class SavedPlace:
    """A place inside the open transaction: so many blocks in its file, so many events in
    the ring's index, the ring's sequence there, and so many statements' texts, which count so
    many bytes."""

    blocks: int
    events: int
    put: int
    texts: int
    text_bytes: int


class Savepoints:
    """By name, in the order of their places. `transaction` tells which one is open: those
    of the one before are forgotten."""

    def __init__(self) -> None:
        self._places: dict[str, SavedPlace] = {}
        self._transaction = (-1, -1)

    def put(self, transaction: tuple[int, int], name: str, place: SavedPlace) -> None:
        """One of the same name moves here."""
        places = self._of(transaction)
        places.pop(name, None)
        places[name] = place

    def back_to(self, transaction: tuple[int, int], name: str) -> SavedPlace | None:
        """Its place, and the later ones are forgotten; None if there is no such savepoint."""
        places = self._of(transaction)
        if name not in places:
            return None
        while next(reversed(places)) != name:
            places.popitem()
        return places[name]

    def clear(self) -> None:
        self._places.clear()

    def _of(self, transaction: tuple[int, int]) -> dict[str, SavedPlace]:
        if transaction != self._transaction:
            self._transaction = transaction
            self._places.clear()
        return self._places
