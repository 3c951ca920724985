"""A block's row events, split by table map, by table, or into portions.

Every part keeps the events in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.rows.table_map import TableMap
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import Block, Integers
from lockstep.pipeline.values.table import TableName

MAX_STRING_BYTES: Final = 1 << 29
"""Largest size of a portion's events in bytes. It is small enough for Arrow's 32-bit offsets even
if text grows when it is converted to UTF-8. An event larger than this is a portion of its own."""


def by_map(block: Block) -> Iterator[tuple[int, Integers, Block]]:
    """Yield for each table map of the block: the map's number, the places of its events in the
    block's index, ascending, and a block of these events. One table may have several maps."""
    maps = block.events[:, columns.MAP]
    if not len(maps):
        return
    if (maps == maps[0]).all():
        yield int(maps[0]), np.arange(len(maps)), block
        return
    order = np.argsort(maps, kind="stable")
    borders = np.flatnonzero(np.diff(maps[order])) + 1
    for events in np.split(order, borders):
        yield int(maps[events[0]]), events, Block(block.data, block.events[events])


def by_table(
    block: Block, tables: Sequence[TableMap]
) -> Iterator[tuple[TableName, Integers, Block]]:
    """Yield for each table of the block: its name, the places of its events in the block's index,
    ascending, and a block of these events. `tables`: the table maps by number."""
    parts_of: dict[TableName, list[tuple[Integers, Block]]] = {}
    for number, events, part in by_map(block):
        parts_of.setdefault(tables[number].table, []).append((events, part))
    for table, parts in parts_of.items():
        if len(parts) == 1:
            yield table, *parts[0]
        else:
            together = np.sort(np.concatenate([events for events, _ in parts]))
            yield table, together, Block(block.data, block.events[together])


def in_portions(block: Block) -> Iterator[tuple[int, Block]]:
    """Yield the block's events in portions of at most MAX_STRING_BYTES, each after the place of its
    first event in the block's index."""
    totals = np.cumsum(block.events[:, columns.SIZE])
    first, before = 0, 0
    while first < len(totals):
        fitting = int(np.searchsorted(totals, before + MAX_STRING_BYTES, side="right"))
        end = max(fitting, first + 1)
        yield first, Block(block.data, block.events[first:end])
        first, before = end, int(totals[end - 1])
