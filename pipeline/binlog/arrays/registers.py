"""What the compiled loop knows from call to call: the registers, an array of integers.

Belongs here: their places and meanings. Does not: what is done with them (`stream`,
`assembly`).
"""

from __future__ import annotations

from typing import Final

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
) = range(25)
COUNT: Final = 25
"""AT: the next unread byte of the input; NEXT: the one behind the event at hand, which
begins at EVENT_AT and has EVENT_SIZE bytes (checksum included). CHECKSUM: 1 if the log has
CRC32, 0 if none, -1 before its format description. SEQUENCE: number of the next packet.
FILE, OFFSET: the place in the log of the event at AT. STATEMENT: number of the statement
whose table maps are in force. PUT, GET, ACK: the ring's sequences. EVENTS, TRANSACTIONS: rows
of the indexes, complete ones first. STOP_…: stop at the first end of a transaction at or
beyond it. ALONE: 1 if the open transaction comes out by itself, because part of it is in a
file. TEXTS, TEXT_PUT: rows of the index of statements' texts, and the bytes of all of them."""
