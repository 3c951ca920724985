"""The texts of statements, where a server logs them beside the rows they made.

MySQL logs a text with `binlog_rows_query_log_events`, MariaDB with `binlog_annotate_row_events`:
the bytes as the client sent them, without its character set. What the log takes back of a
transaction (ROLLBACK, ROLLBACK TO) it takes back with its texts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]

MOST_BYTES: Final = 64 << 10
"""Of one transaction so much text is kept; each statement counts a byte more than its text."""

TRANSACTION, AT, SIZE = range(3)
"""Columns of the index of texts: the row in the index of transactions, and the place."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of a group's transactions: their bytes, one behind the other, and their index
    (n x 3), ascending; those of no transaction of the group have -1 there."""

    data: npt.NDArray[np.uint8]
    index: Integers

    def of(self, keep: npt.NDArray[np.bool_], number: Integers) -> Texts:
        """Those of the transactions that are kept, by their new numbers."""
        index, was = self.index.copy(), self.index[:, TRANSACTION]
        index[:, TRANSACTION] = np.where(keep[was], number[was], -1)
        return replace(self, index=index)

    def lists(self, transactions: int) -> pa.ListArray:
        """Per transaction the texts that the log has, in order; NULL where it has none. Bytes
        that are no UTF-8 are shown as `\\xff`."""
        kind = pa.list_(pa.string())
        kept = np.flatnonzero(self.index[:, TRANSACTION] >= 0)
        if not len(kept):
            return pa.nulls(transactions, kind)
        counts = np.bincount(self.index[kept, TRANSACTION], minlength=transactions)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        values = self._strings().take(pa.array(kept))
        return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(counts == 0))

    def _strings(self) -> pa.StringArray:
        ends = self.index[:, AT] + self.index[:, SIZE]
        offsets = np.concatenate([self.index[:1, AT], ends]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(self.data.tobytes())]
        found = pa.Array.from_buffers(pa.binary(), len(self.index), buffers)
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            shown = [one.decode("utf-8", "backslashreplace") for one in found.to_pylist()]
            return pa.array(shown, pa.string())
