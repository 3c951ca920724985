"""The registers: the state that the compiled loop (`stream`) keeps between calls, as an
array of integers.

The loop copies the row events of whole transactions into a ring buffer, and indexes the
events and the transactions (`ring`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.binlog.stream.rules import Phase

(
    AT,
    NEXT,
    EVENT_AT,
    EVENT_SIZE,
    EVENT_CRC,
    PHASE,
    CHECKSUM,
    SEQUENCE,
    FILE,
    OFFSET,
    STATEMENT,
    PUT,
    GET,
    ACK,
    EVENTS,
    COMPLETE_EVENTS,
    TRANSACTIONS,
    ALL_TRANSACTIONS,
    ALL_BYTES,
    STOP_OFFSET,
    STOP_TRANSACTIONS,
    STOP_BYTES,
    ALONE,
    TEXTS,
    TEXT_PUT,
    SERVER_ID,
) = range(26)
REGISTER_COUNT: Final = 26
"""AT: the next unread byte of the input. EVENT_AT, EVENT_SIZE, EVENT_CRC: the current
event's first byte, its bytes (checksum included) and its CRC32. NEXT: the byte after
it. PHASE: the buffer's state (`rules`). CHECKSUM: 1 if the log has CRC32s, 0 if not, -1
before its format description. SEQUENCE: sequence number of the next packet. FILE,
OFFSET: the place in the log of the event at AT. STATEMENT: number of the statement
whose table maps are valid now. PUT, GET, ACK: the ring's sequences. EVENTS,
TRANSACTIONS: rows used in the indexes. COMPLETE_EVENTS: how many of the events belong
to complete transactions. STOP_…: limits; reading stops at the end of the first
transaction that reaches one. ALL_…: counts that are compared with the limits. ALONE: 1
if the open transaction must be handed out as a group of its own, because a file has
some of its rows. TEXTS, TEXT_PUT: rows used in the index of statements' texts, and
bytes that the texts use. SERVER_ID: id of the server that wrote the log, -1 before its
format description."""

_NEVER: Final = int(np.iinfo(np.int64).max)
"""A limit that no count and no offset reaches."""


class _Register:
    """A descriptor for one register, as a Python integer."""

    __slots__ = ("_index",)

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, registers: Registers, _: object = None) -> int:
        return registers.array.item(self._index)

    def __set__(self, registers: Registers, value: int) -> None:
        registers.array[self._index] = value


class Registers:
    """The registers of one dump. The compiled loop works on `array`; all other code
    reads and sets the registers by name."""

    __slots__ = ("array",)

    at = _Register(AT)
    next = _Register(NEXT)
    event_at = _Register(EVENT_AT)
    event_size = _Register(EVENT_SIZE)
    event_crc = _Register(EVENT_CRC)
    sequence = _Register(SEQUENCE)
    file = _Register(FILE)
    offset = _Register(OFFSET)
    statement = _Register(STATEMENT)
    put = _Register(PUT)
    get = _Register(GET)
    ack = _Register(ACK)
    events = _Register(EVENTS)
    complete_events = _Register(COMPLETE_EVENTS)
    transactions = _Register(TRANSACTIONS)
    texts = _Register(TEXTS)
    text_put = _Register(TEXT_PUT)
    server_id = _Register(SERVER_ID)
    alone = _Register(ALONE)
    """1 if a file has rows of the open transaction, or of the only complete one."""

    def __init__(self, offset: int) -> None:
        """Set the registers for a dump that begins at `offset` of its first file."""
        self.array: Integers = np.zeros(REGISTER_COUNT, np.int64)
        self.array[CHECKSUM] = self.array[SERVER_ID] = -1
        self.array[SEQUENCE] = 1
        self.array[OFFSET] = offset

    # -- where the loop stands -------------------------------------------------------

    @property
    def phase(self) -> Phase:
        return _PHASES[self.array.item(PHASE)]

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self.array[PHASE] = phase

    @property
    def checksum(self) -> bool | None:
        """True if events have a CRC32; None before the format description."""
        checksum = self.array.item(CHECKSUM)
        return None if checksum < 0 else checksum == 1

    @checksum.setter
    def checksum(self, has_checksum: bool) -> None:
        self.array[CHECKSUM] = has_checksum

    # -- where reading stops ---------------------------------------------------------

    def limit_from_here(self, transactions: int | None, log_bytes: int | None) -> None:
        """Stop after this many transactions or bytes of the log, counted from now. None
        is no limit."""
        self.array[ALL_TRANSACTIONS] = self.array[ALL_BYTES] = 0
        self.array[STOP_TRANSACTIONS] = transactions or _NEVER
        self.array[STOP_BYTES] = log_bytes or _NEVER

    def count_transaction(self, log_bytes: int) -> None:
        """Count a complete transaction of `log_bytes` bytes, which the loop did not
        count."""
        self.array[ALL_TRANSACTIONS] += 1
        self.array[ALL_BYTES] += log_bytes

    def stop_at(self, offset: int | None) -> None:
        """Stop at the first end of a transaction at or after `offset` of the current
        file."""
        self.array[STOP_OFFSET] = _NEVER if offset is None else offset

    def stop_here(self) -> None:
        """Stop at the next end of a transaction."""
        self.array[STOP_TRANSACTIONS] = 0

    # -- the ring's room -------------------------------------------------------------

    def truncate_open(self, events: int = 0, put: int | None = None) -> None:
        """Keep only the first `events` events of the open transaction. `put`: the
        ring's sequence after the last of them."""
        self.array[EVENTS] = self.array[COMPLETE_EVENTS] + events
        self.array[PUT] = self.array[GET] if put is None else put

    def empty_ring(self) -> None:
        """Free the ring after all its events, those of the open transaction, went to a
        file."""
        self.array[EVENTS] = 0
        self.array[GET] = self.array[ACK] = self.array[PUT]
        self.array[ALONE] = 1

    def free_complete(self) -> None:
        """Free the complete transactions' room; the open one moves to the first row."""
        self.array[EVENTS] -= self.array[COMPLETE_EVENTS]
        self.array[COMPLETE_EVENTS] = self.array[TRANSACTIONS] = self.array[ALONE] = 0
        self.array[ACK] = self.array[GET]


_PHASES: Final = tuple(Phase)
