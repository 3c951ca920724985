"""Tables that are made aside, in memory: `pipeline.ports.copies`.

Belongs here: a place of its own for a table, and its coming to where it was to go. Does not: the
mirrors that write there (`lake`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline.errors import ConfigurationError
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors


@dataclass(frozen=True, slots=True)
class MemoryCopy:
    """A lake of its own, whose files are the other one's."""

    lake: MemoryLake
    aside: MemoryLake
    into: str | None
    mirrors: MemoryMirrors

    def finish(self, name: str) -> None:
        if self.into is None or self.into in self.lake.tables:
            raise ConfigurationError(f"{self.into} is there already", hint="name another place")
        self.lake.tables[self.into] = self.aside.tables.pop(name)


@dataclass(frozen=True, slots=True)
class MemoryCopies:
    """`pipeline.ports.Copies`."""

    lake: MemoryLake

    @contextmanager
    def begun(self, into: str | None) -> Iterator[MemoryCopy]:
        if into is not None and into in self.lake.tables:
            raise ConfigurationError(f"{into} is there already", hint="name another place")
        aside = MemoryLake(files=self.lake.files)
        yield MemoryCopy(self.lake, aside, into, MemoryMirrors(aside))
