"""Delta tables that are built in a temporary place and appear there complete or not at all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from lockstep.pipeline.ports.mirrors import Mirrors


class Copies(Protocol):
    """Temporary places for tables. If a context fails or its process is killed, nothing of the
    place stays."""

    def begun(self, name: str, into: str) -> AbstractContextManager[Mirrors]:
        """Return the port that writes and reads tables there, by any name; its `path` still answers
        for the lake's own files, from which the tables are built. `into`: the absolute path to
        which the table `name` moves when the context ends, atomically and durably, creating the
        folder above it. `ConfigurationError` if that path exists, or exists by then."""
