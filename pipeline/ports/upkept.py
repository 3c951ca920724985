"""Versions of mirrors that show the same rows.

Belongs here: the port to what the ledger knows of upkeep. Does not: upkeep (`ports.upkeep`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pipeline.decisions import Lease


class Upkept(Protocol):
    """Part of `Ledger`; mirrors are paths relative to the lake."""

    def upkept(self, source: str) -> dict[str, int]:
        """Mirror → the newest Delta version that upkeep made of it."""

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        """A commit of upkeep shows the rows of the version `shows`, which a settled write made:
        version sets name the newest such version from here on. Repeating it changes nothing."""

    def clock(self) -> datetime:
        """What time it is where the ledger is."""
