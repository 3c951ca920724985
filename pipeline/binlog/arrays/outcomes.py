"""What a call of the compiled loop ends with.

Belongs here: the answers, damage among them. Does not: what is done about them (`buffer`),
nor the sentences that tell damage (`damage`).
"""

from __future__ import annotations

MORE, EVENT, FULL, STOPPED, PACKET, LARGE, NEW_MAP, EMITTED, HUGE = range(9)
"""MORE: the input is used up, or ends within an event. EVENT: one for Python. FULL: the
ring or an index is. STOPPED: a STOP_… is reached. PACKET: one that holds no event. LARGE:
the first of several packets that hold one event. NEW_MAP: a table map not seen before.
EMITTED: a transaction that is ALONE is complete. HUGE: a row event larger than the ring; the
next row of the index tells of it, its AT the place in the input."""

# … and what it may find wrong.
NO_HEADER, WRONG_SIZE, WRONG_CHECKSUM, WRONG_OFFSET, WRONG_PACKET, NO_MAP, SHORT = range(10, 17)

NONE = -1
"""Inside the loop: nothing yet, go on."""
