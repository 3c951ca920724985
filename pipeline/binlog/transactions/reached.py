"""How far whoever takes the groups has come, and what proves it.

Belongs here: the place behind the last group and the event that ends there, before the group as
well as after it. Does not: where the reading itself stands, which is further (`log_place`).
"""

from __future__ import annotations

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import TransactionGroup
from pipeline.binlog.transactions.identity import gtid_text
from pipeline.binlog.transactions.log_place import LogPlace
from pipeline.position import Coordinates, Witness


class ReachedGroups:
    """`before`: where the group handed out last begins, and the event that ends there; None
    where what lies before it is not known so well."""

    def __init__(self, start: Coordinates) -> None:
        self.before: tuple[Coordinates, Witness] | None = None
        self._end = start
        self._witness: Witness | None = None

    def note(self, group: TransactionGroup, log: LogPlace) -> None:
        """A group is handed out."""
        self.before = self._place_before(group, log)
        last = group.transactions[-1]
        offset, size, crc = (
            int(last[c]) for c in (columns.LAST_OFFSET, columns.LAST_SIZE, columns.LAST_CRC)
        )
        self._end = group.end(-1)
        gtid = gtid_text(last, group.sources)
        self._witness = Witness(offset, size, crc, gtid, log.created)

    def _place_before(
        self, group: TransactionGroup, log: LogPlace
    ) -> tuple[Coordinates, Witness] | None:
        begin, event = group.begin(0), log.last
        if self._end == begin and self._witness is not None:
            return begin, self._witness
        if event is None or event.after != begin:
            return None
        return begin, log.witness(event)

    def place(
        self, log: LogPlace, *, waiting: bool, between: bool
    ) -> tuple[Coordinates, Witness | None]:
        """The place behind the last transaction handed out, or behind what moved the position
        after it, unless transactions are `waiting`; and the event that ends there, if one was
        read. `between`: whether the reading stands between transactions."""
        event = log.last
        if event is None or waiting or event.after < self._end:
            return self._end, self._witness
        # A ROTATE leads to the next file's beginning; it is read when that file is.
        return (log.at if between else event.after), log.witness(event)
