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

REGISTER_COUNT: Final = 26

(
    # The current event in the input.
    AT,  # the next unread byte; the current event, or its packet, begins there
    NEXT,  # the byte after the current event
    EVENT_AT,  # the event's first byte
    EVENT_SIZE,  # its bytes, checksum included
    EVENT_CRC,  # its CRC32
    # The state of the reading.
    PHASE,  # the phase of the transaction buffer (`rules`)
    CHECKSUM,  # 1 if the log has CRC32s, 0 if not, -1 before its format description
    SERVER_ID,  # id of the server that wrote the log, -1 before its format description
    SEQUENCE,  # sequence number of the next packet
    FILE,  # index of the log file of the event at AT
    OFFSET,  # offset of that event in its file
    STATEMENT,  # number of the statement whose table maps are valid now
    # The ring and the indexes.
    PUT,  # the ring's sequence after the open transaction
    GET,  # the ring's sequence after the complete transactions
    ACK,  # the ring's sequence before the complete transactions
    EVENTS,  # rows used in the index of events
    COMPLETE_EVENTS,  # rows of complete transactions in the index of events
    TRANSACTIONS,  # rows of complete transactions in their index; the open one has the next row
    TEXTS,  # rows used in the index of statements' texts
    TEXT_PUT,  # bytes that the texts use
    ALONE,  # 1 if rows of a transaction are in a file; it must be handed out in a group of its own
    # Reading stops at the end of the first transaction that reaches a limit.
    ALL_TRANSACTIONS,  # transactions and bytes since the limits were set
    ALL_BYTES,
    STOP_OFFSET,  # the limit of OFFSET
    STOP_TRANSACTIONS,  # the limit of ALL_TRANSACTIONS
    STOP_BYTES,  # the limit of ALL_BYTES
) = range(REGISTER_COUNT)

_NEVER: Final = int(np.iinfo(np.int64).max)
"""A limit that no count and no offset reaches."""

_PHASES: Final = tuple(Phase)


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

    def __init__(self, offset: int) -> None:
        """Set the registers for a dump that begins at `offset` of its first file."""
        self.array: Integers = np.zeros(REGISTER_COUNT, np.int64)
        self.array[CHECKSUM] = self.array[SERVER_ID] = -1
        self.array[SEQUENCE] = 1
        self.array[OFFSET] = offset

    # -- phase and checksums ---------------------------------------------------------

    @property
    def phase(self) -> Phase:
        return _PHASES[self.array.item(PHASE)]

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self.array[PHASE] = phase

    @property
    def has_checksums(self) -> bool | None:
        """True if events have a CRC32; None before the format description."""
        checksum = self.array.item(CHECKSUM)
        return None if checksum < 0 else checksum == 1

    @has_checksums.setter
    def has_checksums(self, has_checksums: bool) -> None:
        self.array[CHECKSUM] = has_checksums

    # -- where reading stops ---------------------------------------------------------

    def limit_from_here(self, transactions: int | None, log_bytes: int | None) -> None:
        """Stop after this many transactions or bytes of the log, counted from now. None
        is no limit."""
        self.array[ALL_TRANSACTIONS] = self.array[ALL_BYTES] = 0
        self.array[STOP_TRANSACTIONS] = _NEVER if transactions is None else transactions
        self.array[STOP_BYTES] = _NEVER if log_bytes is None else log_bytes

    def count_transaction(self, log_bytes: int) -> None:
        """Count a complete transaction of `log_bytes` bytes, which the loop did not
        count."""
        self.array[ALL_TRANSACTIONS] += 1
        self.array[ALL_BYTES] += log_bytes

    def stop_at(self, offset: int | None) -> None:
        """Stop at the first end of a transaction at or after `offset` of the current
        file. None is no limit."""
        self.array[STOP_OFFSET] = _NEVER if offset is None else offset

    def stop_here(self) -> None:
        """Stop between two transactions, as soon as one has been read since the limits
        were set."""
        self.array[STOP_TRANSACTIONS] = 1

    # -- the ring's room -------------------------------------------------------------

    def truncate_open(self, kept_count: int = 0, put: int | None = None) -> None:
        """Keep only the first `kept_count` events of the open transaction. `put`: the
        ring's sequence after the last of them; None if none is kept."""
        self.array[EVENTS] = self.array[COMPLETE_EVENTS] + kept_count
        self.array[PUT] = self.array[GET] if put is None else put

    def empty_ring(self) -> None:
        """Free the ring after all its events went to a file. All of them belong to the
        open transaction."""
        self.array[EVENTS] = 0
        self.array[GET] = self.array[ACK] = self.array[PUT]
        self.array[ALONE] = 1

    def free_complete(self) -> None:
        """Free the room of the complete transactions. The open one moves to the first
        row of the index."""
        self.array[EVENTS] -= self.array[COMPLETE_EVENTS]
        self.array[COMPLETE_EVENTS] = self.array[TRANSACTIONS] = self.array[ALONE] = 0
        self.array[ACK] = self.array[GET]
