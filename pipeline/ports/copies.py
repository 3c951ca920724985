"""Tables that are made aside, and whole before anybody sees them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pipeline.ports.mirrors import Mirrors


class Copy(Protocol):
    """One place aside."""

    @property
    def mirrors(self) -> Mirrors:
        """Writes and reads tables there, by any name. `path` answers for the lake's own files, of
        which the tables are made."""

    def finish(self, name: str) -> None:
        """The table of that name is where it was to go, at once and durably;
        `ConfigurationError` where something came to be there meanwhile."""


class Copies(Protocol):
    """Places aside. Nothing stays of one that is not finished, however its process ends."""

    def begun(self, into: str | None) -> AbstractContextManager[Copy]:
        """`into`: the absolute path of the table to come, in a folder that may be made; None for
        one that goes with the context. `ConfigurationError` where something is there."""
