"""Damaged dumps, given to the code that reads dumps; and every way into the engine by its name.

One function for each way in takes one random input, lets whatever is raised pass, and returns how
much came out whole. The decoders alone are in `decoding`, the damage itself in `mutations`; which
exceptions may come is decided in `process`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Final
from uuid import UUID

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.search.log_scan import read_file_head
from lockstep.pipeline.binlog.search.places import (
    find_boundary,
    find_end_of,
    find_moment,
    find_moment_in_file,
    read_anchor,
)
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.control import to_datetime
from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import gtid_set, gtid_texts
from lockstep.pipeline.ports.source import BinlogSize, Received
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, Position
from tests.fuzz.decoding import Decoding, Results
from tests.fuzz.guarded import GuardedBuffer, GuardedPieces
from tests.fuzz.mutations import cut, disturbed, framed, lying_log, sent
from tests.fuzz.recorded import AT, Corpus
from tests.pipeline.made import received, rotate
from tests.twins.spool import MemorySpool

_RING_BYTES: Final = 1 << 12
_EVENTS, _TRANSACTIONS = 16, 4
_NOW: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST_BYTES: Final = 1 << 20


def ways_in(corpus: Corpus) -> Mapping[str, Callable[[Random], int]]:
    """Every way into the engine, over one server's corpus."""
    decoding = Decoding(corpus)
    dumps = Dumps(corpus, decoding)
    return {
        "stream": dumps.stream,
        "places": dumps.places,
        "rows": decoding.rows,
        "maps": decoding.maps,
        "spill": decoding.spill,
        "documents": decoding.documents,
        "lies": dumps.lies,
        "results": Results().read,
    }


def _gtids(announced: bytes) -> GtidSet:
    """The set of the GTID that an event gives to its transaction; tagged ones left out."""
    match announced[4]:
        case EventType.GTID:
            uuid, (number,) = UUID(bytes=announced[20:36]), struct.unpack_from("<Q", announced, 36)
            return GtidSet.parse(f"{uuid}:{number}")
        case EventType.MARIADB_GTID:
            server = HEADER.unpack_from(announced)[2]
            number, domain = struct.unpack_from("<QI", announced, HEADER.size)
            return GtidSet.parse(f"{domain}-{server}-{number}")
        case _:
            return GtidSet()


class Again:
    """A server that gives the same pieces whatever is asked for."""

    def __init__(self, pieces: Sequence[Received]) -> None:
        self._pieces = pieces
        self.begins = AT

    def dump(self, _: Coordinates) -> Again:
        return self

    def __iter__(self) -> Iterator[Received]:
        return iter(self._pieces)

    def close(self) -> None:
        """There is nothing to close."""


class Dumps:
    """The ways in for the packets of a dump."""

    def __init__(self, corpus: Corpus, decoding: Decoding) -> None:
        self._corpus = corpus
        self._decoding = decoding
        self._buffers = GuardedBuffer(_RING_BYTES, _EVENTS, _TRANSACTIONS)
        self._pieces = GuardedPieces(_MOST_BYTES)

    def stream(self, chance: Random) -> int:
        """Packets → transactions → rows, all the way."""
        begins = AT if chance.random() < 0.1 else None
        start = Coordinates(AT.file, chance.randrange(4, 3000)) if begins else AT
        return self._read(chance, sent(chance, self._log(chance)), start, begins)

    def lies(self, chance: Random) -> int:
        """Packets of a log that says it is enormous."""
        data = lying_log(chance)
        match chance.randrange(8):
            case 0:
                read_anchor(Again([received(data)]), AT)
            case 1:
                read_file_head(Again([received(data)]), AT.file)
            case _:
                return self._read(chance, data, AT, None)
        return 1

    def places(self, chance: Random) -> int:
        """Packets → places in a log: boundaries, ends of GTID sets, moments."""
        data = sent(chance, self._log(chance))
        pieces = [received(piece) for piece in cut(chance, data)]
        at = Coordinates(AT.file, chance.choice((4, *range(100, 3000, 50))))
        dumps, head = Again(pieces), Coordinates(AT.file, 4 + len(data))
        announced = chance.choice(self._corpus.transactions)[0]
        moment = datetime.fromtimestamp(HEADER.unpack_from(announced)[0], UTC)
        match chance.randrange(8):
            case 0:
                read_file_head(dumps, AT.file)
            case 1:
                read_anchor(dumps, at)
            case 2:
                find_end_of(dumps, Position(AT, GtidSet(), ""), head, _gtids(announced))
            case 3:
                files = [BinlogSize(AT.file, head.offset)]
                find_moment(dumps, files, head, moment, _NOW)
            case 4:
                find_moment_in_file(dumps, AT.file, moment, head, _NOW)
            case _:
                find_boundary(dumps, at)
        return 1

    def _log(self, chance: Random) -> list[bytes]:
        """The events of one to five transactions behind a format description."""
        corpus = self._corpus
        count = chance.choice((1, 1, 2, 3, 5))
        first = chance.randrange(len(corpus.transactions))
        groups = corpus.transactions[first : first + count]
        if chance.random() < 0.3:
            groups = tuple(chance.choices(corpus.transactions, k=count))
        events = [corpus.description, *(event for group in groups for event in group)]
        if chance.random() < 0.1:
            name = rotate(f"binlog.{chance.randrange(1, 4):06d}")
            places = [n for n, event in enumerate(events) if event[4] == EventType.XID]
            made = HEADER.pack(1, EventType.ROTATE, 1, 0, 0, 0) + name
            events.insert(chance.choice(places) + 1 if places else 1, made)
        if chance.random() < 0.1:
            return framed(events)
        if chance.random() < 0.95:
            return framed([events[0], *disturbed(chance, events[1:], corpus)])
        return framed(disturbed(chance, events, corpus))

    def _read(
        self, chance: Random, data: bytes, start: Coordinates, begins: Coordinates | None
    ) -> int:
        buffer = TransactionBuffer(
            start,
            begins=begins,
            is_captured=lambda name: name.name != "small" or len(data) & 1 == 0,
            spool=MemorySpool(),
            ring_bytes=_RING_BYTES,
            group_bytes=1 << chance.randrange(13),
            events=_EVENTS,
            transactions=_TRANSACTIONS,
        )
        self._buffers.lend(buffer._loop)
        out = 0
        for piece in cut(chance, data):
            buffer.put(self._pieces.received(piece))
            out += self._take_runs(buffer)
            if buffer.has_ended or buffer.has_stopped:
                break
        buffer.end()
        out += self._take_runs(buffer)
        buffer.prepared.seal(1, buffer.maps)
        return out

    def _take_runs(self, buffer: TransactionBuffer) -> int:
        out = 0
        while (run := buffer.get()) is not None:
            self._take(buffer, run)
            out += len(run.transactions)
            buffer.ack()
        assert buffer.at.offset >= 0
        assert buffer.anchor is None or buffer.anchor.length > 0
        return out

    def _take(self, buffer: TransactionBuffer, group: TransactionGroup) -> None:
        """Ask a run everything that a capture asks it."""
        gtid_texts(group.transactions, group.gtid_sources)
        statements = group.texts.lists_by_transaction(len(group.transactions))
        statements.validate(full=True)
        kept = sum(len(text) for text in statements.flatten().to_pylist())
        # What is no UTF-8 is shown with four letters for a byte.
        assert kept <= 4 * MOST_TEXT_BYTES
        found = gtid_set(group.transactions, group.gtid_sources)
        assert GtidSet.parse(str(found)) == found
        for at in group.transactions[:, columns.ORIGINAL_TIME].tolist():
            to_datetime(at)
        for block in group.blocks:
            for number, _, part in split_by_map(block):
                try:
                    self._decoding.decode(buffer.maps.table_maps[number].raw, part)
                except TableError:
                    buffer.maps.skip_table(buffer.maps.table_maps[number].table)
