"""A bounds-checked reader over one event's body: the integers and strings that events share.

A length beyond the body's end raises `DamagedEvent`; no method returns fewer bytes than asked for.
"""

from __future__ import annotations

from lockstep.pipeline.binlog.stream.outcomes import damaged


class Reader:
    """Reads forward through `data`; `what` names it in errors."""

    __slots__ = ("_data", "_what", "at")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self.at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self._data):
            raise damaged(f"{self._what} ends after {len(self._data)} bytes, {end} are needed")
        piece = self._data[self.at : end]
        self.at = end
        return piece

    def integer(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def length_encoded(self) -> int:
        """Read a length-encoded integer (MySQL protocol, "Protocol::LengthEncodedInteger")."""
        first = self.integer(1)
        if first < 0xFB:
            return first
        if first == 0xFC:
            return self.integer(2)
        if first == 0xFD:
            return self.integer(3)
        if first == 0xFE:
            return self.integer(8)
        raise damaged(f"{self._what} holds {first:#x} where a length should be")

    def serialized(self) -> int:
        """Read an unsigned integer of `mysql::serialization`: the lowest bits of the first byte
        are a one for each byte that follows it, then a zero, then the value."""
        first = self.integer(1)
        following = 0
        while following < 8 and first >> following & 1:
            following += 1
        if following == 8:
            return self.integer(8)
        value = first | int.from_bytes(self.take(following), "little") << 8
        return value >> following + 1

    def length_encoded_text(self) -> bytes:
        return self.take(self.length_encoded())

    def rest(self) -> bytes:
        return self.take(self.left)
