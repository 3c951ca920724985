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
    def build(self, name: str, target: str) -> Iterator[MemoryMirrors]:
        self._require_free(target)
        aside = MemoryLake(files=self.lake.files)
        yield MemoryMirrors(aside)
        self._require_free(target)
        self.lake.tables[target] = aside.tables.pop(name)

    def _require_free(self, target: str) -> None:
        if target in self.lake.tables:
            raise ConfigurationError(f"{target} exists already", hint="name another folder")
