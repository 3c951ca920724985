"""A block's row events in parts: by table map, by table, in portions.

Events keep the order of the log in every part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pipeline.binlog.rows.table_map import TableMap
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Block, Integers
from pipeline.table import TableName

MAX_STRING_BYTES: Final = 1 << 29
"""Events of a portion have so many bytes, so that the 32 bits of Arrow's offsets suffice
whatever a character set makes of them; a larger event is a portion of its own."""


def by_map(block: Block) -> Iterator[tuple[int, Integers, Block]]:
    """The block's events by their table map: its number, which events (rows of the block's
    index, ascending), and those alone. One table may have several maps."""
    maps = block.events[:, columns.MAP]
    if not len(maps):
        return
    if (maps == maps[0]).all():
        yield int(maps[0]), np.arange(len(maps)), block
        return
    order = np.argsort(maps, kind="stable")
    borders = np.flatnonzero(np.diff(maps[order])) + 1
    for which in np.split(order, borders):
        yield int(maps[which[0]]), which, Block(block.data, block.events[which])


def by_table(
    block: Block, tables: Sequence[TableMap]
) -> Iterator[tuple[TableName, Integers, Block]]:
    """The block's events by their table, in the order of the log whatever maps they have;
    else as `by_map`. `tables`: the maps by their numbers."""
    found: dict[TableName, list[tuple[Integers, Block]]] = {}
    for number, which, part in by_map(block):
        found.setdefault(tables[number].table, []).append((which, part))
    for table, parts in found.items():
        if len(parts) == 1:
            yield table, *parts[0]
        else:
            together = np.sort(np.concatenate([which for which, _ in parts]))
            yield table, together, Block(block.data, block.events[together])


def in_portions(block: Block) -> Iterator[tuple[int, Block]]:
    """The block's events in portions that fit one batch of images, each with the first event
    of it (a row of the block's index)."""
    totals = np.cumsum(block.events[:, columns.SIZE])
    first, before = 0, 0
    while first < len(totals):
        fitting = int(np.searchsorted(totals, before + MAX_STRING_BYTES, side="right"))
        end = max(fitting, first + 1)
        yield first, Block(block.data, block.events[first:end])
        first, before = end, int(totals[end - 1])
