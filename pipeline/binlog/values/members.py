"""ENUM and SET: the log has numbers, the table's structure has the members' names.

Format: an ENUM is a member's index from 1 in one or two bytes, 0 for the empty string that MySQL
stores in place of an invalid value; a SET is a bit for each member in one to eight bytes. Both are
little-endian.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes, u8
from lockstep.pipeline.binlog.arrays.cells import Cells, Places, room
from lockstep.pipeline.binlog.arrays.compiled import kernel
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.binlog.text.ambiguous_text import is_canonical_number, may_be_ambiguous
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column


def enums(column: Column, cells: Cells) -> pa.Array:
    """Return the member's name of each ENUM, '' for index 0."""
    numbers = _numbers(cells)
    names = pa.array(["", *column.members], pa.string())
    if len(numbers) and int(numbers.max()) >= len(names):
        raise _unknown(column)
    if cells.keyed and may_be_ambiguous(column):
        ambiguous = [n for n in range(len(names)) if not is_canonical_number(column, n)]
        _note_ambiguous(cells, numbers, ambiguous)
    return names.take(_indexes(cells, numbers))


def sets(column: Column, cells: Cells) -> pa.Array:
    """Return the names of each SET in the order of the definition, separated by commas."""
    numbers = _numbers(cells)
    distinct, number_of = np.unique(numbers, return_inverse=True)
    texts = []
    for number in (int(value) & (1 << 64) - 1 for value in distinct):
        if number >> len(column.members):
            raise _unknown(column)
        texts.append(_listed(m for bit, m in enumerate(column.members) if number >> bit & 1))
    if cells.keyed and may_be_ambiguous(column):
        ambiguous = [
            n for n, value in enumerate(distinct) if not is_canonical_number(column, int(value))
        ]
        _note_ambiguous(cells, number_of.astype(np.int64), ambiguous)
    return pa.array(texts, pa.string()).take(_indexes(cells, number_of.astype(np.int64)))


def _listed(members: Iterable[str]) -> str:
    """Join names as `Field_set::val_str` of MySQL's source does: there is no comma as long as the
    text is empty, so a leading member '' leaves no trace."""
    text = ""
    for member in members:
        text = f"{text},{member}" if text else member
    return text


def _note_ambiguous(cells: Cells, numbers: Integers, ambiguous: Sequence[int]) -> None:
    """Note the first cell with one of the numbers `ambiguous`, whose text is another number's."""
    if ambiguous:
        images = np.flatnonzero(np.isin(numbers, ambiguous) & (cells.at >= 0))
        cells.ambiguous = int(images[0]) if len(images) else -1


def _unknown(column: Column) -> TableError:
    return TableError(
        f"column {column.name!r} holds a member that its {column.type.upper()} does not have",
        hint="report this log to us",
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
