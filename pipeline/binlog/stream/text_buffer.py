"""The buffer of statement texts: those of complete transactions, then those of the open one.

Formats: `Rows_query_event` in `libs/mysql/binlog/event/rows_event.h` of MySQL's source: the length
modulo 256 in 1 byte, and the text up to the event's end; `Annotate_rows_log_event` in
`sql/log_event.h` of MariaDB's: the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.array_access import Bytes, copy, u8
from lockstep.pipeline.binlog.arrays.compiled import part
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import HEADER_BYTES, EventType
from lockstep.pipeline.binlog.stream.outcomes import FULL, NONE
from lockstep.pipeline.binlog.stream.registers import TEXT_PUT, TEXTS, Registers
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.binlog.stream.texts import AT, MOST_BYTES, SIZE, TRANSACTION, Texts

BUFFER_BYTES: Final = 4 << 20
"""Room for the texts of all transactions that are not handed out yet; at least `MOST_BYTES`."""

_LONGEST: Final = 3
"""Most continuation bytes of a character in UTF-8."""


@part
def keep_text(
    wire: Bytes,
    event: int,
    end: int,
    code: int,
    state: Integers,
    transaction: int,
    row: Integers,
    data: Bytes,
    index: Integers,
) -> int:
    """Copy a statement's text, cut off at the transaction's limit; return FULL if the arrays have
    no room. `row`: the transaction's index row."""
    begin = event + HEADER_BYTES + (1 if code == EventType.ROWS_QUERY else 0)
    size = max(end - begin, 0)
    room = MOST_BYTES - row[columns.TEXT_BYTES]
    if room < 0:
        return NONE
    whole = size < room
    if not whole:
        size = _cut(wire, begin, max(room - 1, 0))
    if whole or size > 0:
        if state[TEXTS] == len(index) or state[TEXT_PUT] + size > len(data):
            return FULL
        copy(data, state[TEXT_PUT], wire, begin, size)
        entry = index[state[TEXTS]]
        entry[TRANSACTION], entry[AT], entry[SIZE] = transaction, state[TEXT_PUT], size
        state[TEXTS] += 1
        state[TEXT_PUT] += size
    row[columns.TEXT_BYTES] = row[columns.TEXT_BYTES] + size + 1 if whole else MOST_BYTES + 1
    return NONE


@part
def _cut(wire: Bytes, begin: int, size: int) -> int:
    """Return the largest length up to `size` that does not split a character."""
    for back in range(min(_LONGEST, size) + 1):
        if u8(wire, begin + size - back) & 0xC0 != 0x80:
            return size - back
    return size


@dataclass(frozen=True, slots=True)
class TextBuffer:
    """The texts' bytes and their index (n x 3); the loop's registers say how much is in use."""

    data: npt.NDArray[np.uint8]
    index: Integers

    @classmethod
    def of(cls, size: int) -> TextBuffer:
        """Return a buffer of `size` bytes, or as large as one transaction's texts may become."""
        return cls(np.empty(max(size, MOST_BYTES), np.uint8), np.empty((MOST_BYTES, 3), np.int64))

    def count_before(self, registers: Registers, transaction: int) -> int:
        """Return the number of texts of the transactions before this one."""
        texts = registers.texts
        return int(self.index[:texts, TRANSACTION].searchsorted(transaction)) if texts else 0

    def cut(self, registers: Registers, transaction: int, texts: int) -> None:
        """Keep only the first `texts` texts of `transaction`, the newest."""
        count = self.count_before(registers, transaction) + texts
        registers.texts, registers.text_put = count, self._end(count)

    def complete(self, registers: Registers, transactions: int) -> Texts:
        """Return a copy of the texts of the first `transactions` transactions."""
        texts = self.count_before(registers, transactions)
        return Texts(self.data[: self._end(texts)].copy(), self.index[:texts].copy())

    def drop(self, registers: Registers, transactions: int) -> None:
        """Remove the texts of the first `transactions` transactions; the others move up."""
        texts, end = self.count_before(registers, transactions), registers.texts
        begin, put = self._end(texts), registers.text_put
        if end:
            self.data[: put - begin] = self.data[begin:put].copy()
            self.index[: end - texts] = self.index[texts:end] - (transactions, begin, 0)
            registers.texts, registers.text_put = end - texts, put - begin

    def _end(self, texts: int) -> int:
        return int(self.index[texts - 1, AT] + self.index[texts - 1, SIZE]) if texts else 0
