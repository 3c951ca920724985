"""Tables that are made aside, and whole before anybody sees them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pipeline.ports.mirrors import Mirrors


class Copies(Protocol):
    """Places aside. Nothing stays of one whose context does not end well, however its process
    ends."""

    def begun(self, name: str, into: str) -> AbstractContextManager[Mirrors]:
        """What writes and reads tables there, by any name; `path` answers for the lake's own files,
        of which the tables are made. `into`: an absolute path, in a folder that may be made, where
        the table `name` is once the context ended, at once and durably. `ConfigurationError` where
        something is there, or came to be there meanwhile."""
