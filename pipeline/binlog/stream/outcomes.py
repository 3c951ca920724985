"""The codes that a call of the compiled loop can return, and the errors for damaged events."""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.values.errors import DamagedEvent
from lockstep.pipeline.values.position import Coordinates

MORE, EVENT, FULL, STOPPED, PACKET, LARGE, NEW_MAP, EMITTED, HUGE = range(9)
"""MORE: the input is used up, or ends within an event. EVENT: Python has to handle the event.
FULL: the ring or an index is full. STOPPED: a limit is reached (the registers STOP_…). PACKET: a
packet without an event. LARGE: the first of several packets that hold one event. NEW_MAP: a table
map that is new to the loop. EMITTED: a transaction for which the register ALONE is set is complete.
HUGE: a row event larger than the ring; the next free row of the index of events describes it, with
its offset in the input in the column AT."""

# Outcomes for a damaged event, by the kind of damage.
NO_HEADER, WRONG_SIZE, WRONG_CHECKSUM, WRONG_OFFSET, WRONG_PACKET, NO_MAP, SHORT = range(10, 17)

NONE = -1
"""Inside the loop: nothing to report, go on."""

_SENTENCES: Final = {
    NO_HEADER: "an event is too short to have a header",
    WRONG_SIZE: "an event's length is not the one in its header",
    WRONG_CHECKSUM: "an event's checksum does not match its bytes",
    WRONG_OFFSET: "an event does not end at the offset in its header",
    WRONG_PACKET: "a packet of the server's stream is missing or duplicated",
    NO_MAP: "a row event refers to a table map that its statement does not have",
    SHORT: "a row event or table map ends within its fixed part",
}


def damage(code: int, at: Coordinates) -> DamagedEvent:
    """Return the error for an outcome of the loop, at the place of the event concerned."""
    return damaged(_SENTENCES[code], at)


def damaged(what: str, at: Coordinates | None = None) -> DamagedEvent:
    """Return the error for a damaged event, at its place if that is known."""
    if at is None:
        return DamagedEvent(
            what, hint="it was not recorded; look at that place with mysqlbinlog -vv"
        )
    return DamagedEvent(
        f"{what}, at {at}",
        hint="it was not recorded; run again, and if that fails, look at that place with "
        f"mysqlbinlog --verify-binlog-checksum --start-position={at.offset} {at.file}",
    )
