"""Rows → the places of their cells. The walk checks that the cells make up the whole row.

Format: MySQL manual, "Protocol::ColumnDefinition", "Binary Protocol Value" and "Binary Protocol
Resultset Row": a zero byte; a bitmap, from its third bit on a bit for each column, set if that is
NULL; and the cells of the other columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes, i64, u8, u16, u24
from lockstep.pipeline.binlog.arrays.cells import NULL, Places, validity
from lockstep.pipeline.binlog.arrays.compiled import kernel
from lockstep.pipeline.resultset.packets import Integers


@dataclass(frozen=True, slots=True)
class Definition:
    """A column as the result defines it: its type code in the protocol, whether it is unsigned,
    and its display length in characters or bytes."""

    code: int
    unsigned: bool
    length: int

    @property
    def size(self) -> int:
        """Bytes of a cell; 0 if each cell has a length before it."""
        return _FIXED.get(self.code, 0)


_FIXED: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 4, 13: 2}
"""TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, YEAR."""


@dataclass(slots=True)
class ColumnValues:
    """One column's cells of many rows: `data[at[n] : at[n] + size[n]]`, or NULL as `at[n]`.
    `size` is unused if the definition has a size. `nulls` is the number of NULLs."""

    data: Bytes
    at: Places
    size: Places
    nulls: int
    definition: Definition

    def __len__(self) -> int:
        return len(self.at)

    def validity(self) -> pa.Buffer | None:
        return validity(self.at) if self.nulls else None


@kernel
def walk(
    data: Bytes,
    starts: Integers,
    rows: int,
    sizes: Integers,
    at: npt.NDArray[np.int32],
    size: npt.NDArray[np.int32],
    nulls: Integers,
) -> int:
    """Set places, lengths and numbers of NULLs, by column and row; return the first malformed row,
    or -1. `sizes`: each column's size, 0 if each cell has a length before it."""
    columns = len(sizes)
    flags = columns + 9 >> 3
    for row in range(rows):
        end = starts[row + 1]
        bitmap = starts[row] + 1
        place = bitmap + flags
        if place > end:
            return row
        for column in range(columns):
            bit = column + 2
            if u8(data, bitmap + (bit >> 3)) >> (bit & 7) & 1:
                at[column, row] = NULL
                size[column, row] = 0
                nulls[column] += 1
                continue
            count = sizes[column]
            if count == 0:
                if place >= end:
                    return row
                count = u8(data, place)
                place += 1
                if count > 250:
                    if count == 252 and end - place >= 2:
                        count = u16(data, place)
                        place += 2
                    elif count == 253 and end - place >= 3:
                        count = u24(data, place)
                        place += 3
                    elif count == 254 and end - place >= 8:
                        count = i64(data, place)
                        place += 8
                    else:
                        return row
                size[column, row] = count
            if count < 0 or count > end - place:
                return row
            at[column, row] = place
            place += count
        if place != end:
            return row
    return -1
