"""ENUM and SET: numbers in the log, their members' names in the table's structure.

Format: ENUM is a member's index from 1 in one or two bytes, 0 the empty value that an
invalid one became; SET is a bit per member in one to eight bytes, both little-endian.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, u8
from pipeline.binlog.arrays.cells import Cells, Places, room
from pipeline.binlog.arrays.compiled import kernel
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.text.twins import is_own_number, may_stray
from pipeline.errors import TableError
from pipeline.table import Column


def enums(column: Column, cells: Cells) -> pa.Array:
    """ENUM → the member's name, '' for index 0."""
    numbers = _numbers(cells)
    names = pa.array(["", *column.members], pa.string())
    if len(numbers) and int(numbers.max()) >= len(names):
        raise _unknown(column)
    if cells.keyed and may_stray(column):
        _note(cells, numbers, [n for n in range(len(names)) if not is_own_number(column, n)])
    return names.take(_indexes(cells, numbers))


def sets(column: Column, cells: Cells) -> pa.Array:
    """SET → names in the order of the definition, with commas between."""
    numbers = _numbers(cells)
    distinct, which = np.unique(numbers, return_inverse=True)
    known = len(column.members)
    texts = []
    for number in (int(value) & (1 << 64) - 1 for value in distinct):
        if number >> known:
            raise _unknown(column)
        texts.append(_listed(m for bit, m in enumerate(column.members) if number >> bit & 1))
    if cells.keyed and may_stray(column):
        several = [n for n, value in enumerate(distinct) if not is_own_number(column, int(value))]
        _note(cells, which.astype(np.int64), several)
    return pa.array(texts, pa.string()).take(_indexes(cells, which.astype(np.int64)))


def _listed(members: Iterable[str]) -> str:
    """As `Field_set::val_str` of MySQL's source: no comma before anything was printed."""
    text = ""
    for member in members:
        text = f"{text},{member}" if text else member
    return text


def _note(cells: Cells, numbers: Integers, others: Sequence[int]) -> None:
    """`others`: numbers whose text is another number's."""
    if others:
        found = np.flatnonzero(np.isin(numbers, others) & (cells.at >= 0))
        cells.astray = int(found[0]) if len(found) else -1


def _unknown(column: Column) -> TableError:
    return TableError(
        f"column {column.name!r} holds a member that its {column.type.upper()} does not have",
        hint="the log and the table's structure disagree; report this log to us",
    )


def _indexes(cells: Cells, numbers: Integers) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(cells), [cells.validity(), pa.py_buffer(numbers)])


def _numbers(cells: Cells) -> Integers:
    _, out = room(len(cells), 8)
    numbers = out.view(np.int64)
    _read(cells.data, cells.at, cells.layout.size, numbers)
    return numbers


@kernel
def _read(data: Bytes, at: Places, size: int, out: Integers) -> None:
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            for byte in range(size):
                value |= u8(data, at[i] + byte) << 8 * byte
        out[i] = value
