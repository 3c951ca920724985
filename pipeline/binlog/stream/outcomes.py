"""What a call of the compiled loop ends with, and damage as an error that a person can act on."""

from __future__ import annotations

from typing import Final

from pipeline.errors import DamagedEvent
from pipeline.position import Coordinates

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

_SENTENCES: Final = {
    NO_HEADER: "an event is too short to have a header",
    WRONG_SIZE: "an event is not as long as it says",
    WRONG_CHECKSUM: "an event's checksum does not match its bytes",
    WRONG_OFFSET: "an event does not end where it says",
    WRONG_PACKET: "a packet of the server's stream is missing or doubled",
    NO_MAP: "rows refer to a table map that is not there",
    SHORT: "a row event or table map ends within its head",
}


def damage(code: int, at: Coordinates) -> DamagedEvent:
    """The error for one of the `outcomes`, at the place of the event concerned."""
    return damaged(_SENTENCES[code], at)


def damaged(what: str, at: Coordinates | None = None) -> DamagedEvent:
    """`at`: the place of the event concerned, if it is known."""
    if at is None:
        return DamagedEvent(
            what, hint="it was not recorded; look at that place with mysqlbinlog -vv"
        )
    return DamagedEvent(
        f"{what}, at {at}",
        hint="it was not recorded; run again, and if that fails, look at that place with "
        f"mysqlbinlog --verify-binlog-checksum --start-position={at.offset} {at.file}",
    )
