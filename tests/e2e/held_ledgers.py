"""Embedded ledgers that stay up from one command of a project to the next.

The last user of one stops it, and a command is its only user: to start and to stop it takes longer
than most commands do. Belongs here: which ones are held meanwhile. Does not: that they start and
stop by themselves, which `tests.ledger.test_embedded` proves, and every command that begins cold.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from weakref import WeakSet

from lockstep.resources.postgres.embedded import EmbeddedServer

MOST = 2
"""A module's project, and a test's."""

_QUICKLY = {"fsync": "off", "full_page_writes": "off"}


class HeldLedgers:
    """Servers by their folder, the one held longest first."""

    _all: ClassVar[WeakSet[HeldLedgers]] = WeakSet()

    def __init__(self) -> None:
        self._servers: dict[Path, EmbeddedServer] = {}
        self._all.add(self)

    @classmethod
    def let_go_below(cls, folder: Path) -> None:
        """All of this process, before a folder is removed."""
        for held in cls._all:
            for ledger in [one for one in held._servers if one.is_relative_to(folder)]:
                held._servers.pop(ledger).close()

    def hold(self, project: Path) -> None:
        """That of a project's folder, if it has one."""
        folder = _ledger(project)
        if folder in self._servers or not (folder / "data").exists():
            return
        while len(self._servers) >= MOST:
            self._servers.pop(next(iter(self._servers))).close()
        self._servers[folder] = EmbeddedServer(folder, _QUICKLY)

    def let_go(self, project: Path) -> None:
        """Before its files are copied, replaced or removed."""
        server = self._servers.pop(_ledger(project), None)
        if server is not None:
            server.close()

    def close(self) -> None:
        while self._servers:
            self._servers.popitem()[1].close()


def _ledger(project: Path) -> Path:
    return project / ".lockstep" / "ledger"
