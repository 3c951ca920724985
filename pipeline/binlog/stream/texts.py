"""The texts of statements, which a server may log before the rows that they changed.

MySQL logs a text with `binlog_rows_query_log_events`, MariaDB with `binlog_annotate_row_events`:
the bytes as the client sent them, without its character set. ROLLBACK and ROLLBACK TO remove
texts together with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]

MOST_BYTES: Final = 64 << 10
"""Most bytes of text that are kept of one transaction; each text counts as one byte more."""

TRANSACTION, AT, SIZE = range(3)
"""Columns of the index of texts: row in the index of transactions, offset, length."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of a group's transactions: their bytes, one after another, and their index (n x 3),
    ascending. The index has -1 for texts of transactions that were removed from the group."""

    data: npt.NDArray[np.uint8]
    index: Integers

    def of(self, keep: npt.NDArray[np.bool_], new_rows: Integers) -> Texts:
        """Return the texts with their transactions' new rows; -1 for transactions not in `keep`."""
        index, old = self.index.copy(), self.index[:, TRANSACTION]
        index[:, TRANSACTION] = np.where(keep[old], new_rows[old], -1)
        return replace(self, index=index)

    def lists(self, transactions: int) -> pa.ListArray:
        """Return the texts of each transaction, in order; NULL if the log has none. Bytes that
        are not UTF-8 are shown as `\\xff`."""
        kind = pa.list_(pa.string())
        rows = np.flatnonzero(self.index[:, TRANSACTION] >= 0)
        if not len(rows):
            return pa.nulls(transactions, kind)
        counts = np.bincount(self.index[rows, TRANSACTION], minlength=transactions)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        values = self._strings().take(pa.array(rows))
        return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(counts == 0))

    def _strings(self) -> pa.StringArray:
        ends = self.index[:, AT] + self.index[:, SIZE]
        offsets = np.concatenate([self.index[:1, AT], ends]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(self.data.tobytes())]
        texts = pa.Array.from_buffers(pa.binary(), len(self.index), buffers)
        try:
            return texts.cast(pa.string())
        except pa.ArrowInvalid:
            escaped = [text.decode("utf-8", "backslashreplace") for text in texts.to_pylist()]
            return pa.array(escaped, pa.string())
