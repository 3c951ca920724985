"""Rows → where each cell lies: in its row, which is proven, and a row is used up by its cells.

Format: MySQL manual, "Protocol::ColumnDefinition", "Binary Protocol Value" and "Binary Protocol
Resultset Row": a zero byte, a bit for each column from the third on that is set where it is NULL,
and the cells of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, i64, u8, u16, u24
from pipeline.binlog.arrays.cells import NULL, Places, validity
from pipeline.binlog.arrays.compiled import kernel
from pipeline.resultset.packets import Integers


@dataclass(frozen=True, slots=True)
class Definition:
    """A column as the result defines it: its type code of the protocol; whether it is unsigned;
    how many characters or bytes it shows at most."""

    code: int
    unsigned: bool
    length: int

    @property
    def size(self) -> int:
        """Bytes of a cell; 0 where a length stands before it."""
        return _FIXED.get(self.code, 0)


_FIXED: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 4, 13: 2}
"""TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, YEAR."""


@dataclass(slots=True)
class Answers:
    """One column's cells of many rows: `data[at[n] : at[n] + size[n]]`, or NULL as `at[n]`;
    where the definition has a size, `size` says nothing. `nulls` counts the NULLs."""

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
    forms: Integers,
    at: npt.NDArray[np.int32],
    size: npt.NDArray[np.int32],
    nulls: Integers,
) -> int:
    """Set places, lengths and counts of NULLs, by column and row; `forms`: each column's size, 0
    where a length stands before a cell. The first row that is not as it must be, or -1."""
    columns = len(forms)
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
            count = forms[column]
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
