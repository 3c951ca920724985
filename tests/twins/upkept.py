"""Upkeep's commits, in memory: `pipeline.ports.upkept`."""

from __future__ import annotations

from datetime import datetime

from pipeline.decisions import Lease
from resources.postgres.refusals import refusal
from tests.twins.books import MemorySubject


class MemoryUpkept(MemorySubject):
    def upkept(self, source: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for of, mirror, made in self.books.upkept:
            if of == source:
                found[mirror] = max(made, found.get(mirror, -1))
        return found

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        with self._step(lease) as books:
            written = {
                entry.delta_version
                for number, entry in books.written.items()
                if books.intents[number][0] == lease.source and entry.mirror == mirror
            }
            if shows not in written:
                raise refusal("upkept_of_a_write")
            if any(shows < version <= delta_version for version in written):
                raise refusal("upkept_unchanged")
            books.upkept[lease.source, mirror, delta_version] = shows

    def clock(self) -> datetime:
        return self._clock()
