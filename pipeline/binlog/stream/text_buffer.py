"""Statements' texts on their way: those of complete transactions, then those of the open one.

Formats: `Rows_query_event` in `libs/mysql/binlog/event/rows_event.h` of MySQL's source: a length
1, which wraps, and the text up to the event's end; `Annotate_rows_log_event` in
`sql/log_event.h` of MariaDB's: the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.binlog.arrays.array_access import Bytes, copy, u8
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import HEADER_BYTES, EventType
from pipeline.binlog.stream.outcomes import FULL, NONE
from pipeline.binlog.stream.registers import TEXT_PUT, TEXTS, Registers
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.stream.texts import AT, MOST_BYTES, SIZE, TRANSACTION, Texts

BUFFER_BYTES: Final = 4 << 20
"""Texts of all transactions that wait to be handed out; at least `MOST_BYTES`."""

_LONGEST: Final = 3
"""Bytes of a character of UTF-8 behind its first."""


@part
def keep_text(
    wire: Bytes,
    event: int,
    end: int,
    code: int,
    state: Integers,
    transaction: int,
    one: Integers,
    data: Bytes,
    index: Integers,
) -> int:
    """Copy a statement's text, or what there is room for in its transaction; FULL if there
    is none in the arrays. `one`: the transaction's row."""
    begin = event + HEADER_BYTES + (1 if code == EventType.ROWS_QUERY else 0)
    size = max(end - begin, 0)
    room = MOST_BYTES - one[columns.TEXT_BYTES]
    if room < 0:
        return NONE
    whole = size < room
    if not whole:
        size = _cut(wire, begin, max(room - 1, 0))
    if whole or size > 0:
        if state[TEXTS] == len(index) or state[TEXT_PUT] + size > len(data):
            return FULL
        copy(data, state[TEXT_PUT], wire, begin, size)
        row = index[state[TEXTS]]
        row[TRANSACTION], row[AT], row[SIZE] = transaction, state[TEXT_PUT], size
        state[TEXTS] += 1
        state[TEXT_PUT] += size
    one[columns.TEXT_BYTES] = one[columns.TEXT_BYTES] + size + 1 if whole else MOST_BYTES + 1
    return NONE


@part
def _cut(wire: Bytes, begin: int, size: int) -> int:
    """At most so many bytes, without a part of a character at their end."""
    for back in range(min(_LONGEST, size) + 1):
        if u8(wire, begin + size - back) & 0xC0 != 0x80:
            return size - back
    return size


@dataclass(frozen=True, slots=True)
class TextBuffer:
    """The texts' bytes, and their index (n x 3). The loop's registers, of every method, say how
    much of both is in use."""

    data: npt.NDArray[np.uint8]
    index: Integers

    @classmethod
    def of(cls, size: int) -> TextBuffer:
        """With room for so many bytes, or for all that is kept of one transaction."""
        return cls(np.empty(max(size, MOST_BYTES), np.uint8), np.empty((MOST_BYTES, 3), np.int64))

    def behind(self, registers: Registers, transaction: int) -> int:
        """How many texts are of transactions before that one."""
        texts = registers.texts
        return int(self.index[:texts, TRANSACTION].searchsorted(transaction)) if texts else 0

    def cut(self, registers: Registers, transaction: int, texts: int) -> None:
        """Forget those of the newest transaction but its first so many."""
        kept = self.behind(registers, transaction) + texts
        registers.texts, registers.text_put = kept, self._end(kept)

    def complete(self, registers: Registers, transactions: int) -> Texts:
        """A copy of those of the first so many."""
        texts = self.behind(registers, transactions)
        return Texts(self.data[: self._end(texts)].copy(), self.index[:texts].copy())

    def drop(self, registers: Registers, transactions: int) -> None:
        """Forget those of the first so many; the others move up."""
        texts, end = self.behind(registers, transactions), registers.texts
        begin, put = self._end(texts), registers.text_put
        if end:
            self.data[: put - begin] = self.data[begin:put].copy()
            self.index[: end - texts] = self.index[texts:end] - (transactions, begin, 0)
            registers.texts, registers.text_put = end - texts, put - begin

    def _end(self, texts: int) -> int:
        return int(self.index[texts - 1, AT] + self.index[texts - 1, SIZE]) if texts else 0
