"""Rows → where each cell lies.

Belongs here: the bitmap of NULLs and the cells' lengths; every cell is proven to lie in its row,
and a row to be used up by its cells. Does not: what is in a cell.

Format: MySQL manual, "Binary Protocol Resultset Row": a zero byte, a bit for each column from the
third on that is set where it is NULL, and the cells of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, i64, u8, u16, u24
from pipeline.binlog.arrays.cells import NULL, Places, validity
from pipeline.binlog.arrays.compiled import kernel
from pipeline.resultset.forms import Definition
from pipeline.resultset.packets import Integers


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
        """Arrow's validity bitmap; None if every value is there."""
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
