"""Savepoints of the transaction that is open.

Belongs here: which there are, and where. Does not: dropping what came after one
(`assembly`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SavedPlace:
    """A place inside the open transaction: so many blocks in its file, so many events in
    the ring's index, the ring's sequence there, and so many statements' texts, which count so
    many bytes."""

    blocks: int
    events: int
    put: int
    texts: int
    text_bytes: int


class Savepoints:
    """By name, in the order of their places. `transaction` tells which one is open: those
    of the one before are forgotten."""

    def __init__(self) -> None:
        self._places: dict[str, SavedPlace] = {}
        self._transaction = (-1, -1)

    def put(self, transaction: tuple[int, int], name: str, place: SavedPlace) -> None:
        """One of the same name moves here."""
        places = self._of(transaction)
        places.pop(name, None)
        places[name] = place

    def back_to(self, transaction: tuple[int, int], name: str) -> SavedPlace | None:
        """Its place, and the later ones are forgotten; None if there is no such savepoint."""
        places = self._of(transaction)
        if name not in places:
            return None
        while next(reversed(places)) != name:
            places.popitem()
        return places[name]

    def clear(self) -> None:
        self._places.clear()

    def _of(self, transaction: tuple[int, int]) -> dict[str, SavedPlace]:
        if transaction != self._transaction:
            self._transaction = transaction
            self._places.clear()
        return self._places
