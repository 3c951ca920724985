"""The engine as benchmarks use it: reads a dump into Arrow columns, which are discarded."""

from __future__ import annotations

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import read_layouts, read_structure
from lockstep.pipeline.binlog.stream.ring import TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_images import CHANGE_TYPES
from lockstep.pipeline.values.table import TablePatterns
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.twins.spool import MemorySpool

_AFTER = 2
assert CHANGE_TYPES[_AFTER] == "update_postimage"


def read_all(
    settings: ConnectionSettings, start: Coordinates, end: Coordinates, patterns: TablePatterns
) -> tuple[int, int]:
    """Return the numbers of rows (an update is one) and transactions between two places of the
    log."""
    reading = _Reading(start, end, patterns)
    dump = MySqlServer(settings).dump(start)
    try:
        for received in dump:
            reading.buffer.put(received)
            while (group := reading.buffer.get()) is not None:
                reading.take(group)
                reading.buffer.ack()
            if reading.buffer.has_stopped or reading.buffer.has_ended:
                break
    finally:
        dump.close()
    return reading.rows, reading.transactions


class _Reading:
    def __init__(self, start: Coordinates, end: Coordinates, patterns: TablePatterns) -> None:
        self.buffer = TransactionBuffer(
            start, is_captured=patterns.matches, spool=MemorySpool(), limits=Limits(end=end)
        )
        self._decoders: dict[int, TableDecoder] = {}
        self.rows = self.transactions = 0

    def take(self, group: TransactionGroup) -> None:
        self.transactions += len(group.transactions)
        for block in group.blocks:
            for number, _, part in split_by_map(block):
                for images in self._decoder(number).decode(part):
                    kinds = images.change_type.to_numpy()
                    self.rows += len(kinds) - int((kinds == _AFTER).sum())

    def _decoder(self, number: int) -> TableDecoder:
        if number not in self._decoders:
            mapped = self.buffer.maps.table_maps[number]
            structure = read_structure(mapped)
            schema = arrow_schema(structure)
            self._decoders[number] = TableDecoder(structure, read_layouts(mapped), schema)
        return self._decoders[number]
