"""Made logs through a segmenter into memory: what a capture makes of them.

Belongs here: tables of one INT column, told by the log itself, and the rows, segments and
tables quarantined that come of their events.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.segmenter import Segmenter, SystemTableRows
from lockstep.pipeline.run.dump.table_changes import TableChanges
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.values.segment import Segment
from tests.pipeline.buffered import a_buffer
from tests.pipeline.made import Log, gtid, query, received, rows, table_map
from tests.twins.lake import MemoryLake
from tests.twins.segments import MemorySegments


def named(table: str, table_id: int) -> bytes:
    """A table map with full metadata: one INT column `i`, the key."""
    return table_map(table_id, table) + b"\x01\x01\x00" + b"\x04\x02\x01i" + b"\x08\x01\x00"


def write(log: Log, table: str, table_id: int, *values: int) -> None:
    log.add(EventType.TABLE_MAP, named(table, table_id))
    log.add(EventType.WRITE_ROWS, rows(*values, table_id=table_id))


def odd(log: Log, table: str, table_id: int) -> None:
    """Rows of two columns, where the table map has one."""
    log.add(EventType.TABLE_MAP, named(table, table_id))
    head = struct.pack("<IHHH", table_id, 0, 1, 2) + b"\x02\xff"
    log.add(EventType.WRITE_ROWS, head + bytes(9))


@dataclass(frozen=True, slots=True)
class Captured:
    """What one capture made: rows and segment of each table by name, and what was quarantined."""

    tables: dict[str, pa.Table]
    segments: dict[str, Segment]
    quarantined: list[StoppedTable]
    changes: int


def made_segmenter(tables: CapturedTables, system: SystemTableRows | None = None) -> Segmenter:
    """Over structures in memory, without shapes."""
    structures, shaping = SchemaTracker(StructuresInMemory()), Shaping()
    changes = TableChanges(tables, structures, shaping)
    return Segmenter(tables, structures, shaping, changes, system)


def captured(log: Log, *, ring_bytes: int = 1 << 20) -> Captured:
    lake = MemoryLake()
    store = MemorySegments(lake)
    tables = CapturedTables(store, source="shop", batch_id=3, last_sequence_before=100, states={})
    segmenter = made_segmenter(tables)
    buffer = a_buffer(is_captured=segmenter.is_wanted, ring_bytes=ring_bytes, group_bytes=1 << 9)
    segmenter.use_buffer(buffer)
    buffer.put(received(log.wire()))
    while (run := buffer.get()) is not None:
        segmenter.put(run)
        buffer.ack()
    segments = {segment.table.name: segment for segment in tables.finish()}
    found = {
        name: pa.concat_tables(store.pieces(f"shop/_changes/shop/{name}", segment.files))
        for name, segment in segments.items()
    }
    return Captured(found, segments, [*tables.quarantines.values()], tables.change_count)


def begin(log: Log, number: int) -> None:
    log.add(EventType.GTID, gtid(number))
    log.add(EventType.QUERY, query("BEGIN"))
