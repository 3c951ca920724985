"""Tables that are made aside, in memory: `pipeline.ports.mirrors`.

Belongs here: a place of its own for a table, and its coming to where it was to go. Does not: the
mirrors that write there (`lake`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lockstep.pipeline.values.errors import ConfigurationError
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors


@dataclass(frozen=True, slots=True)
class MemoryCopies:
    """`pipeline.ports.Copies`: a lake of its own, whose files are the other one's."""

    lake: MemoryLake

    @contextmanager
    def begun(self, name: str, into: str) -> Iterator[MemoryMirrors]:
        self._require_free(into)
        aside = MemoryLake(files=self.lake.files)
        yield MemoryMirrors(aside)
        self._require_free(into)
        self.lake.tables[into] = aside.tables.pop(name)

    def _require_free(self, into: str) -> None:
        if into in self.lake.tables:
            raise ConfigurationError(f"{into} exists already", hint="name another place")
