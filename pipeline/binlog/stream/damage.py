"""What the compiled loop may find wrong with the bytes, as errors a person can act on."""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays import outcomes
from pipeline.errors import DamagedEvent
from pipeline.position import Coordinates

_SENTENCES: Final = {
    outcomes.NO_HEADER: "an event is too short to have a header",
    outcomes.WRONG_SIZE: "an event is not as long as it says",
    outcomes.WRONG_CHECKSUM: "an event's checksum does not match its bytes",
    outcomes.WRONG_OFFSET: "an event does not end where it says",
    outcomes.WRONG_PACKET: "a packet of the server's stream is missing or doubled",
    outcomes.NO_MAP: "rows refer to a table map that is not there",
    outcomes.SHORT: "a row event or table map ends within its head",
}


def damage(code: int, at: Coordinates) -> DamagedEvent:
    """The error for one of the `outcomes`, at the place of the event concerned."""
    return damaged(_SENTENCES[code], at)


def damaged(what: str, at: Coordinates) -> DamagedEvent:
    return DamagedEvent(
        f"{what}, at {at}",
        hint="it was not recorded; run again, and if that fails, look at that place with "
        f"mysqlbinlog --verify-binlog-checksum --start-position={at.offset} {at.file}",
    )
